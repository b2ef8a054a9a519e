"""
The file a job prints into, opened so that nothing planted is followed, and read by logical offsets.

A logical offset counts from the first byte the job ever printed. It stays true in both forms of the file:

    while it runs    as the command wrote it; the head of a large one may be a hole, its blocks were freed
    after its end    a line that says how much was left out, then what was kept (see `keeper.life`)
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat

from taskyard.disk import files
from taskyard.errors import Damaged, StorageError
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.records import end_from_json
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.model import End

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

#: Kinds whose output is a link to their transcript. A link in any other job's folder was planted.
_LINKED = frozenset({"local_agent", "in_process_teammate"})

#: The line a keeper puts before what was kept, when it tidies an output at the end.
_LEFT_OUT = re.compile(rb"\[([0-9,]{1,26}) bytes were left out here: the output was larger than its cap\]\n")
_LONGEST_HEADER = 128


class OutputFile:
    """An open output, in whichever form."""

    __slots__ = ("_base", "_header", "_is_over", "fd", "path")

    def __init__(self, fd: int, path: str, *, is_over: bool, header: int = 0, base: int = 0) -> None:
        """`header` bytes of the file are not the job's; the byte behind them has the logical offset `base`."""
        self.fd = fd
        self.path = path
        self._is_over = is_over
        self._header = header
        self._base = base

    def first(self) -> int:
        """The offset of the oldest byte that is still there."""
        if self._header:
            return self._base
        size = self._size()  # asked first: what is printed meanwhile is no hole
        try:
            return os.lseek(self.fd, 0, os.SEEK_DATA)
        except OSError as error:
            # ENXIO: nothing but a hole, or nothing at all. EINVAL: this file system makes no holes.
            return size if error.errno == errno.ENXIO else 0

    def end(self) -> int:
        """The offset behind the newest byte."""
        return self._size() - self._header + self._base

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
            start = max(start, self.first())
            count = max(min(most, self.end() - start), 0)
            try:
                data = os.pread(self.fd, count, start - self._base + self._header)
            except OSError as error:
                raise files.storage_error(self.path, error) from error
            freed = self.first() - start  # what was freed while we read came as zeros
            if freed <= 0 or not data:
                return start, data
            if freed < len(data):
                return start + freed, data[freed:]

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
        header, base = _left_out(fd, folder) if end is None else _told_by(end, fd)
        return OutputFile(fd, folder.output, is_over=end is not None, header=header, base=base)
    finally:
        os.close(place)


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
        fd = os.open("output", _FILE, dir_fd=place)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP or _kind_in(place) not in _LINKED:
            raise StorageError(folder.output, files.storage_error(folder.output, error).why) from error
        linked = _follow(os.readlink("output", dir_fd=place), folder, transcripts)
        if linked is None:
            return None
        fd = linked
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StorageError(folder.output, "it is no plain file")
    return fd


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
        return os.open(name, _FILE, dir_fd=here)
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
        fd = os.open(name, _FILE, dir_fd=place)
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
    sane = 0 < end.header <= os.fstat(fd).st_size and end.base >= 0
    return (end.header, end.base) if sane else (0, 0)


def _left_out(fd: int, folder: JobFolder) -> tuple[int, int]:
    """Header and base of a file without an end: tidied already if its keeper is just about to write one.

    A command may print the very line itself. Then its keeper has this file open; the tidied one it has closed.
    """
    found = _LEFT_OUT.match(os.pread(fd, _LONGEST_HEADER, 0))
    if found is None or _has_open(keeper_of(folder), os.fstat(fd)):
        return 0, 0
    return found.end(), int(found.group(1).replace(b",", b""))


def _has_open(pid: int | None, file: os.stat_result) -> bool:
    try:
        for name in os.listdir(f"/proc/{pid}/fd") if pid else ():
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), file):
                return True
    except OSError:
        pass  # it ended meanwhile
    return False
