"""
The file a job prints into, opened so that nothing planted is followed, and read by logical offsets.

A logical offset counts from the first byte the job ever printed. It stays true in both forms of the file:

    while it runs    as the command wrote it; behind the head of a large one may be a hole, its blocks were freed
    after its end    the head, a line that says how much was left out, then the newest part (see `keeper.life`)
"""

from __future__ import annotations

import errno
import json
import os
import re

from taskyard.disk import files
from taskyard.errors import Damaged, StorageError
from taskyard.plain_file import open_plain
from taskyard.runtime.folder import TRANSCRIPT
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.records import end_from_json
from taskyard.shapes import as_number, as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.model import End

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: Kinds whose output is a link to their transcript. A link in any other job's folder was planted.
_LINKED = frozenset({"local_agent", "in_process_teammate"})

#: The line a keeper puts before what was kept, when it tidies an output at the end.
_LEFT_OUT = re.compile(rb"\n?\[([0-9,]{1,26}) bytes were left out here: the output was larger than its cap\]\n")
_LONGEST_HEADER = 128


class OutputFile:
    """An open output, in whichever form."""

    __slots__ = ("_base", "_head", "_header", "_is_over", "fd", "path")

    def __init__(self, fd: int, path: str, *, is_over: bool, head: int = 0, header: int = 0, base: int = 0) -> None:
        """Behind the first `head` bytes, `header` bytes are a note; the byte behind it has the offset `base`."""
        self.fd = fd
        self.path = path
        self._is_over = is_over
        self._head = head
        self._header = header
        self._base = base

    def gap(self) -> tuple[int, int]:
        """From which offset to which nothing is there any more; twice the same if nothing is missing."""
        if self._header:
            return self._head, self._base
        return gap_in(self.fd, head=self._head, size=self._size())

    def end(self) -> int:
        """The offset behind the newest byte."""
        if not self._header:
            return self._size()
        return self._size() - self._head - self._header + self._base

    def _size(self) -> int:
        """The file's, but for a zero at the very end of one whose job has no end yet.

        A keeper tries whether its disk is full by one byte more, which it takes back at once: who had read it would
        believe the output truncated. A zero that the command printed itself is read as soon as something follows.
        """
        while True:
            size = os.fstat(self.fd).st_size
            if self._is_over or not size:
                return size
            if last := os.pread(self.fd, 1, size - 1):
                return size - (last == b"\0")

    def read(self, offset: int, most: int) -> tuple[int, bytes]:
        """At most `most` bytes from `offset` on, or from the oldest byte behind it that is there; and where they begin.

        Raises:
            StorageError: the disk refused.
        """
        start = offset
        while True:
            gone, there = self.gap()
            if gone <= start < there:
                start = there
            stop = gone if start < gone < there else self.end()
            at = start - self._base + self._head + self._header if self._header and start >= there else start
            try:
                data = os.pread(self.fd, max(min(most, stop - start), 0), at)
            except OSError as error:
                raise files.storage_error(self.path, error) from error
            gone, there = self.gap()  # what was freed while we read came as zeros
            if gone <= start < there:
                if there < start + len(data):
                    return there, data[there - start :]
                if data:
                    continue
            elif start < gone < there:
                data = data[: gone - start]
            return start, data

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.fd)

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_output(folder: JobFolder, *, transcripts: str | None = None) -> OutputFile | None:
    """The output of a job, as it is now; None if there is none yet. `transcripts` is where an agent's may lead.

    Raises:
        StorageError: something else is in its place: a link, a pipe, another user's folder.
    """
    place = _open_folder(folder)
    if place is None:
        return None
    try:
        end = _end_in(place)
        fd = _open_file(place, folder, transcripts)
        if end is None and (end := _end_in(place)) is not None:
            # It ended while we looked: what we opened may be the form from before.
            if fd is not None:
                os.close(fd)
            fd = _open_file(place, folder, transcripts)
        if fd is None:
            return None
        head = _head_in(place)
        header, base = _left_out(fd, folder, head) if end is None else _told_by(end, fd)
        if end is not None and header:
            head = end.head
        return OutputFile(fd, folder.output, is_over=end is not None, head=head, header=header, base=base)
    finally:
        os.close(place)


def gap_in(fd: int, *, head: int, size: int) -> tuple[int, int]:
    """Where blocks of an output were freed, from which offset to which; twice the same if none were.

    The hole begins behind the head, or at the very beginning, where it had to make room on a full disk.
    """
    for start in (0, head) if head else (0,):
        try:
            if start < size and os.lseek(fd, start, os.SEEK_HOLE) == start:
                return start, os.lseek(fd, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from there on
                return start, size
            break  # this file system makes no holes
    return 0, 0


def _open_folder(folder: JobFolder) -> int | None:
    jobs = _open_below(None, f"{folder.home}/jobs", f"{folder.home}/jobs")
    if jobs is None:
        return None
    try:
        place = _open_below(jobs, folder.id, folder.path)
    finally:
        os.close(jobs)
    if place is not None and (owner := os.fstat(place).st_uid) != os.geteuid():
        os.close(place)
        raise StorageError(folder.path, f"it belongs to user {owner}, not to us")
    return place


def _open_below(parent: int | None, name: str, path: str) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            files.check_folder(path, os.lstat(name, dir_fd=parent))  # says whether it is a link or a file
        raise StorageError(path, files.storage_error(path, error).why) from error


def _open_file(place: int, folder: JobFolder, transcripts: str | None) -> int | None:
    try:
        fd = open_plain("output", dir_fd=place)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP or _kind_in(place) not in _LINKED:
            raise StorageError(folder.output, files.storage_error(folder.output, error).why) from error
        linked = _follow(os.readlink("output", dir_fd=place), folder, transcripts)
        if linked is None:
            return None
        fd = linked
    if not os.fstat(fd).st_size and _is_unlinked(place):
        os.close(fd)
        return _walk(folder.path, [], TRANSCRIPT, folder.output)
    return fd


def _is_unlinked(place: int) -> bool:
    """Whether no link to its transcript could be made for an agent's output, which is an empty file then."""
    record = _record_in(place, "job.json") or {}
    return record.get("isUnlinked") is True and record.get("type") in _LINKED


def _follow(target: str, folder: JobFolder, transcripts: str | None) -> int | None:
    """What an agent's link leads to: inside its own folder or the transcripts, with no further link on the way."""
    path = os.path.normpath(os.path.join(folder.path, target))
    for root in (folder.path, transcripts):
        if root is not None and path.startswith(f"{os.path.normpath(root)}/"):
            *between, name = os.path.relpath(path, root).split("/")
            return _walk(root, between, name, folder.output)
    raise StorageError(folder.output, "it is a symbolic link that leads out of where it may lead")


def _walk(root: str, between: list[str], name: str, shown: str) -> int | None:
    here = _open_below(None, root, root)
    for part in between:
        if here is None:
            return None
        before = here
        try:
            here = _open_below(before, part, shown)
        finally:
            os.close(before)
    if here is None:
        return None
    try:
        return open_plain(name, dir_fd=here)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(shown, files.storage_error(shown, error).why) from error
    finally:
        os.close(here)


def _kind_in(place: int) -> str:
    return str((_record_in(place, "job.json") or {}).get("type") or "")


def _end_in(place: int) -> End | None:
    found = _record_in(place, "end.json")
    return None if found is None else end_from_json(found)


def _record_in(place: int, name: str) -> dict[str, object] | None:
    try:
        fd = open_plain(name, dir_fd=place)
    except OSError:
        return None
    try:
        return as_object(json.loads(files.read_open(fd, name)))
    except (Damaged, StorageError, ValueError, RecursionError):
        return None
    finally:
        os.close(fd)


def _told_by(end: End, fd: int) -> tuple[int, int]:
    """Header and base by the end's record, if they can be true."""
    sane = end.header > 0 and 0 <= end.head <= end.base and end.head + end.header <= os.fstat(fd).st_size
    return (end.header, end.base) if sane else (0, 0)


def _head_in(place: int) -> int:
    """How much of the oldest output stays, by the job's record."""
    return max(as_number((_record_in(place, "job.json") or {}).get("outputHead")), 0)


def _left_out(fd: int, folder: JobFolder, head: int) -> tuple[int, int]:
    """Header and base of a file without an end: tidied already if its keeper is just about to write one.

    A command may print the very line itself. Then its keeper has this file open; the tidied one it has closed.
    """
    found = _LEFT_OUT.match(os.pread(fd, _LONGEST_HEADER, head))
    if found is None or _has_open(keeper_of(folder), os.fstat(fd)):
        return 0, 0
    return found.end(), head + int(found.group(1).replace(b",", b""))


def _has_open(pid: int | None, file: os.stat_result) -> bool:
    try:
        for name in os.listdir(f"/proc/{pid}/fd") if pid else ():
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), file):
                return True
    except OSError:
        pass  # it ended meanwhile
    return False
