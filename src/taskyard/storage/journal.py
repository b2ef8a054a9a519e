"""An append-only log in segments: `<folder>/<first position>.jsonl`.

An entry is one write of newline, JSON, newline: a torn tail left by a killed writer then spoils its own
line and not the next one. A whole entry is followed by the end of the log, or by the first newline of the
next entry. If the disk took all of an entry but its last newline, the next entry's first newline ends that
line, no second one follows it, and it is no entry. So its writer, which got an error, and its readers
agree.

An entry's id is its position: the segment's first position plus the offset in it, so ids only grow and
finding one takes one read.

Appending takes no lock, so no process can be stopped while holding one: the kernel gives every write in
append mode its own place. A segment counts up to its limit; a writer that finds its entry beyond it writes
it again to the next segment, and readers skip what lies beyond.
"""

from __future__ import annotations

import json
import os
from _thread import allocate_lock

from taskyard.core.files import open_plain, storage_error
from taskyard.core.values import as_object
from taskyard.errors import StorageError
from taskyard.storage.locks import after_fork_in_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes; a full segment is small enough to read whole and large enough that few are needed.
SEGMENT_SIZE = 64 * 1024 * 1024

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND

#: Bytes of the first read, for callers that want one entry, and of the following ones.
_FIRST_CHUNK, _CHUNK = 1 << 14, 1 << 20

#: Bytes; no change of a list comes near this. A larger entry was not written by us.
LARGEST_ENTRY = 256 * 1024 * 1024

_NEWLINE = ord("\n")

#: Incremented in every forked child: it shares its parent's file offsets, and must open its own files.
_forks = 0


class Journal:
    """One log, for one process and its threads."""

    def __init__(self, folder: str, *, segment_size: int = SEGMENT_SIZE, sync: bool = False) -> None:
        self.folder = folder
        self.limit = segment_size  #: a segment counts up to this position
        self._sync = sync
        self._base = -1
        self._fd = -1
        self._known: int | None = None
        after_fork_in_child(_count_fork)
        self._born = _forks
        self._mutex = allocate_lock()

    def append(self, entry: bytes) -> int:
        """Append one entry and return its id.

        Raises:
            StorageError: the write failed; the part that was written is no entry.
        """
        with self._mutex:
            self._ready()
            while True:
                offset = self._write(b"\n" + entry + b"\n")
                if offset < self.limit:
                    self._known = self._base + offset
                    return self._known
                self._open(max([self.following(self._base), *self.segments()]))

    def _write(self, data: bytes) -> int:
        """Write at the end of the open segment; return the offset."""
        try:
            written = os.write(self._fd, data)
            place = os.lseek(self._fd, 0, os.SEEK_CUR) - written
            if self._sync:
                os.fdatasync(self._fd)
        except OSError as error:
            raise storage_error(self.folder, error) from error
        if written < len(data):
            raise StorageError(self.folder, "the disk is full")
        return place

    def end(self) -> int:
        """Return the id of the next entry, or a smaller one if other processes append meanwhile."""
        base = max(self.segments(), default=0)
        try:
            return base + os.stat(self.path(base)).st_size
        except FileNotFoundError:
            return base
        except OSError as error:
            raise storage_error(self.folder, error) from error

    def known_end(self) -> int:
        """Return a lower bound of the next entry's id: the end of the log as last seen."""
        if self._known is None:
            with self._mutex:
                self._ready()
                self._known = self._base + os.fstat(self._fd).st_size
        return self._known

    def _ready(self) -> None:
        """Ensure that the last segment is open."""
        if self._fd < 0 or self._born != _forks:
            self._open(max(self.segments(), default=0))

    def _open(self, base: int) -> None:
        try:
            fd = open_plain(self.path(base), _APPEND)
        except OSError as error:
            raise storage_error(self.path(base), error) from error
        self.close()
        self._base, self._fd, self._born = base, fd, _forks

    def path(self, base: int) -> str:
        """Return the file of the segment that begins with position `base`."""
        return f"{self.folder}/{base}.jsonl"

    def following(self, base: int) -> int:
        """Return the first position of the next segment."""
        return base + 2 * self.limit

    def read(self, position: int) -> dict[str, object] | None:
        """Return the entry with this id; None if it cannot be read (any more)."""
        for entry_id, entry in self.since(position):
            return entry if entry_id == position else None
        return None

    def since(self, position: int = 0) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield every readable entry from this id on, oldest first. Torn lines are skipped."""
        bases = self.segments()
        for base, following in zip(bases, [*bases[1:], None]):
            if following is not None and following <= position:
                continue
            try:
                yield from self._entries(base, position)
            except FileNotFoundError:
                continue

    def _entries(self, base: int, position: int) -> Iterator[tuple[int, dict[str, object]]]:
        for entry_id, line in self.lines(base, max(position - base, 0)):
            entry = None if entry_id < position or line is None else parse_entry(line)
            if entry is not None:  # a start within an entry finds the rest of that one
                yield entry_id, entry

    def lines(self, base: int, offset: int = 0) -> Iterator[tuple[int, bytes | None]]:
        """Yield the raw entries of one segment from `offset` on with their ids; None for a torn one.

        Raises:
            FileNotFoundError: there is no such segment.
        """
        path = self.path(base)
        try:
            fd = open_plain(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(path, error) from error
        try:
            if offset > os.fstat(fd).st_size:
                return  # an invalid position, for example from a damaged index
            for start, line in _lines(fd, offset, self.limit):
                yield base + start - 1, line  # an entry begins with the newline before its text
        except OSError as error:
            raise storage_error(path, error) from error
        finally:
            os.close(fd)

    def segments(self) -> list[int]:
        """Return the first positions of the existing segments, oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(self.folder, error.strerror or str(error)) from error
        found = (name[:-6] for name in names if name.endswith(".jsonl"))
        return sorted(int(base) for base in found if _is_base(base))

    def close(self) -> None:
        """Close the open segment."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def append_once(folder: str, entry: bytes, *, segment_size: int = SEGMENT_SIZE) -> tuple[int, int]:
    """Append one entry, as `Journal.append` does; return its id and the number of files in the log.

    For small processes that append rarely: in the usual case it does only the necessary system calls.

    Raises:
        StorageError: the write failed; the part that was written is no entry.
    """
    base, data = 0, b"\n" + entry + b"\n"
    try:
        names = os.listdir(folder)
        for name in names:
            if name.endswith(".jsonl") and _is_base(name[:-6]):
                base = max(base, int(name[:-6]))
        fd = open_plain(f"{folder}/{base}.jsonl", _APPEND)
        try:
            written = os.write(fd, data)
            offset = os.lseek(fd, 0, os.SEEK_CUR) - written
        finally:
            os.close(fd)
    except OSError as error:
        raise storage_error(folder, error) from error
    if written < len(data):
        raise StorageError(folder, "the disk is full")
    if offset < segment_size:
        return base + offset, len(names)
    journal = Journal(folder, segment_size=segment_size)  # finds or creates the next segment
    try:
        return journal.append(entry), len(names) + 1
    finally:
        journal.close()


def _is_base(text: str) -> bool:
    """Return whether a segment can have this name; other files in the folder are not ours."""
    return text.isascii() and text.isdigit() and len(text) <= 18 and str(int(text)) == text


def _lines(fd: int, offset: int, limit: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield lines that start at `offset` or later and not beyond `limit`, each with its start.

    None for a line that was not written whole, and never will be. A line larger than any entry, or with a zero
    byte, is not kept in memory: a hole in a file has no content, however large it is.
    """
    parts: list[bytes] = []  # of the line that begins at `offset`
    held, size, is_spoiled = 0, _FIRST_CHUNK, False
    while offset <= limit and (chunk := os.pread(fd, size, offset + held)):
        size = _CHUNK
        if b"\n" not in chunk[:-1] and (is_spoiled or b"\0" in chunk or held > LARGEST_ENTRY):
            if not is_spoiled:
                is_spoiled, parts = True, []
                yield offset, None
            # A newline at its end may be the first of an entry.
            offset, held = offset + held + len(chunk) - (len(chunk) > 1 and chunk[-1] == _NEWLINE), 0
            continue
        if b"\n" not in chunk:  # joined once it is whole: a large entry costs no more than its size
            parts.append(chunk)
            held += len(chunk)
            continue
        text = b"".join([*parts, chunk])
        start, last = 0, len(text) - 1  # a newline at the end: the next byte decides whether the line is whole
        while 0 <= (stop := text.find(b"\n", start)) < last:
            if offset + start > limit:
                return
            if stop > start and not is_spoiled:
                yield offset + start, text[start:stop] if text[stop + 1] == _NEWLINE else None
            start, is_spoiled = stop + 1, False
        offset += start
        parts, held = [text[start:]], len(text) - start
    rest = b"".join(parts)
    if len(rest) > 1 and rest[-1] == _NEWLINE and offset <= limit and not is_spoiled:
        yield offset, rest[:-1]


def parse_entry(line: bytes) -> dict[str, object] | None:
    """Return the entry in a line; None if there is none."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return as_object(entry)


def _count_fork() -> None:
    global _forks
    _forks += 1
