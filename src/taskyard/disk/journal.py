"""
An append-only log in segments: `<folder>/<first position>.jsonl`.

An entry is one write of newline, JSON, newline: a torn tail left by a killed writer then spoils
its own line and not the next one. Its id is its position: the segment's first position plus the
offset in it, so ids grow for ever and finding one takes one read. Appends are made under a lock
by whoever appends; whoever finds a segment full starts the next, whose name follows from its size.
"""

from __future__ import annotations

import json
import os

from taskyard.disk.files import storage_error
from taskyard.errors import StorageError
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.disk.kernel_lock import RangeLock

#: A full segment is small enough to read whole and large enough that few are needed.
SEGMENT_SIZE = 64 * 1024 * 1024

#: The byte of the caller's lock file that guards appends: far beyond every task id.
APPEND_BYTE = 1 << 40

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20


class Journal:
    """One log, for one process; safe to use from its threads, each with a lock of its own."""

    def __init__(self, folder: str, *, segment_size: int = SEGMENT_SIZE, sync: bool = False) -> None:
        self.folder = folder
        self._limit = segment_size
        self._sync = sync
        self._base = -1
        self._fd = -1

    def append(self, entry: bytes, lock: RangeLock | None, *, timeout: float) -> int:
        """Add one entry and answer its id. `lock` is None where the caller already excludes everybody.

        Raises:
            StorageError: the disk refused; then nothing of the entry is left.
        """
        if lock is not None:
            lock.take(APPEND_BYTE, timeout=timeout, what="the event log")
        try:
            size = self._seek_end()
            self._write(b"\n" + entry + b"\n", size)
            return self._base + size
        finally:
            if lock is not None:
                lock.drop(APPEND_BYTE)

    def end(self) -> int:
        """The id the next entry will have, or a smaller one if others append meanwhile."""
        size = self._seek_end()
        return self._base + size

    def _seek_end(self) -> int:
        """Have the last segment open; its size."""
        if self._fd < 0:
            self._open(self._bases()[-1])
        size = os.fstat(self._fd).st_size
        while size >= self._limit:
            self._open(self._base + size)
            size = os.fstat(self._fd).st_size
        return size

    def _open(self, base: int) -> None:
        path = os.path.join(self.folder, f"{base}.jsonl")
        try:
            fd = os.open(path, _APPEND, 0o600)
        except OSError as error:
            raise storage_error(path, error) from error
        self.close()
        self._base, self._fd = base, fd

    def _write(self, data: bytes, size: int) -> None:
        try:
            written = os.write(self._fd, data)
            if written < len(data):
                os.write(self._fd, data[written:])
            if self._sync:
                os.fdatasync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, size)
            raise storage_error(self.folder, error) from error

    def read(self, position: int) -> dict[str, object] | None:
        """The entry with this id; None if it cannot be read (any more)."""
        for _, entry in self.since(position):
            return entry
        return None

    def since(self, position: int = 0) -> Iterator[tuple[int, dict[str, object]]]:
        """Every readable entry from this id on, oldest first. Torn lines are passed over."""
        bases = self._bases()
        for base, following in zip(bases, [*bases[1:], None]):
            if following is not None and following <= position:
                continue
            for entry_id, entry in self._segment(base, max(position - base, 0)):
                if entry_id >= position:  # a start within an entry finds the rest of that one
                    yield entry_id, entry

    def _segment(self, base: int, offset: int) -> Iterator[tuple[int, dict[str, object]]]:
        path = os.path.join(self.folder, f"{base}.jsonl")
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(path, error) from error
        try:
            for start, line in _lines(fd, offset):
                if (entry := _parsed(line)) is not None:
                    yield base + start - 1, entry  # an entry begins with the newline before its text
        finally:
            os.close(fd)

    def _bases(self) -> list[int]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return [0]
        except OSError as error:
            raise StorageError(self.folder, error.strerror or str(error)) from error
        found = (name[:-6] for name in names if name.endswith(".jsonl"))
        return sorted(int(base) for base in found if base.isdigit()) or [0]

    def close(self) -> None:
        """Let go of the open segment."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _lines(fd: int, offset: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines from `offset` on, each with where it starts; an unfinished last one is left out."""
    rest = b""
    while chunk := os.pread(fd, _CHUNK, offset + len(rest)):
        text = rest + chunk
        start = 0
        while (stop := text.find(b"\n", start)) >= 0:
            if stop > start:
                yield offset + start, text[start:stop]
            start = stop + 1
        rest = text[start:]
        offset += start


def _parsed(line: bytes) -> dict[str, object] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return as_object(entry)
