"""
What Taskyard last knew of every task: one fixed-size row per id in `.taskyard/ledger`.

A row says what the file held after our last look or write (its size and checksum), where the log tells of it, and,
while a writer is between its first and last step, from where on the log may tell of that. So
another program's change is seen by comparing one row, and a dead writer's half-done work is found
by whoever comes next. Everything here can be rebuilt from the log and the files.
"""

from __future__ import annotations

import os
import struct
import zlib

from taskyard.disk.files import storage_error
from taskyard.names import LARGEST_ID, LAST_WITH_ROOM, is_id
from taskyard.plain_file import open_plain
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROW = struct.Struct("<QQII")
_GONE = 0xFFFFFFFF
_WRITE = os.O_RDWR | os.O_CREAT

#: Rows that are read of one ledger, 48 MB: more tasks than any list has; a file with more is not ours.
_MOST_ROWS = 2_000_000


class Row(NamedTuple):
    """What is known of one task."""

    entry: int | None = None  #: the id of its last log entry; None = never heard of
    intent: int | None = None  #: a writer began when the log ended here, and has not finished
    size: int = _GONE
    crc: int = 0

    @property
    def is_present(self) -> bool:
        """Whether the file was there."""
        return self.size != _GONE

    def holds(self, size: int, crc: int) -> bool:
        """Whether a file with this content is the one last known."""
        return self.size == size and self.crc == crc


class Ledger:
    """The rows of one list, read and written by position."""

    def __init__(self, path: str, *, writable: bool = True) -> None:
        """Open the ledger, and make it if it is missing; not `writable`: only one that is there, only to read."""
        try:
            self._fd = open_plain(path, _WRITE if writable else os.O_RDONLY)
        except OSError as error:
            raise storage_error(path, error) from error
        self._path = path

    def row(self, task_id: str) -> Row:
        """What is known of `task_id`."""
        try:
            data = os.pread(self._fd, _ROW.size, int(task_id) * _ROW.size)
        except OSError as error:
            raise storage_error(self._path, error) from error
        return _row(_ROW.unpack(data)) if len(data) == _ROW.size else Row()

    def put(self, task_id: str, row: Row) -> None:
        """Remember `row`."""
        entry = 0 if row.entry is None else row.entry + 1
        intent = 0 if row.intent is None else row.intent + 1
        data = _ROW.pack(entry, intent, row.size, row.crc)
        try:
            os.pwrite(self._fd, data, int(task_id) * _ROW.size)
        except OSError as error:
            raise storage_error(self._path, error) from error

    def intend(self, task_id: str, row: Row, start: int) -> None:
        """Say that a writer begins to change a task of which `row` is known, with the log ending at `start`."""
        data = _ROW.pack(0 if row.entry is None else row.entry + 1, start + 1, *row[2:])
        try:
            os.pwrite(self._fd, data, int(task_id) * _ROW.size)
        except OSError as error:
            raise storage_error(self._path, error) from error

    def highest(self) -> int:
        """The highest id any Taskyard ever knew of on this list, but for those that leave no room for others."""
        last = max(os.fstat(self._fd).st_size // _ROW.size - 1, 0)
        if last <= LAST_WITH_ROOM:
            return last
        return max((number for task_id, _ in self.rows() if (number := int(task_id)) <= LAST_WITH_ROOM), default=0)

    def intents(self) -> list[str]:
        """The ids some writer began to change and did not finish."""
        found: list[str] = []
        for first, data in _stretches(self._fd):
            # Looked at all at once: nearly always there is none among thousands.
            started = struct.unpack(f"<{len(data) // 8}Q", data)[1::3]
            if any(started):
                found += [str(first + index) for index, intent in enumerate(started) if intent]
        return [task_id for task_id in found if is_id(task_id)]

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Every id ever heard of, with its row; holes of a sparse file are skipped."""
        return _rows(self._fd)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def look(path: str) -> dict[str, Row] | None:
    """Every row of a ledger, read only; None if there is none, or it is not for us to read."""
    try:
        fd = open_plain(path)
    except OSError:
        return None
    try:
        return dict(_rows(fd))
    finally:
        os.close(fd)


def _rows(fd: int) -> Iterator[tuple[str, Row]]:
    for first, data in _stretches(fd):
        for index, fields in enumerate(_ROW.iter_unpack(data), first):
            if (fields[0] or fields[1]) and 0 < index <= LARGEST_ID:
                yield str(index), _row(fields)


def _stretches(fd: int) -> Iterator[tuple[int, bytes]]:
    """Whole rows, many at a time, each stretch with the number of its first; holes are passed over."""
    position, size = 0, min(os.fstat(fd).st_size, (LARGEST_ID + 1) * _ROW.size)
    left = _MOST_ROWS
    while position < size and left > 0:
        try:
            position = os.lseek(fd, position, os.SEEK_DATA)
        except OSError:
            return  # nothing but a hole up to the end
        position -= position % _ROW.size
        data = os.pread(fd, 4096 * _ROW.size, position)
        whole = len(data) - len(data) % _ROW.size
        if not whole:
            return
        left -= whole // _ROW.size
        yield position // _ROW.size, data[:whole]
        position += whole


def row_for(entry: int, data: bytes) -> Row:
    """The row of a task whose file holds `data`."""
    return Row(entry, None, len(data), zlib.crc32(data))


def _row(fields: tuple[int, ...]) -> Row:
    entry, intent, size, crc = fields
    if not entry and not intent:
        return Row()  # a hole between ids that were written: never heard of
    return Row(entry - 1 if entry else None, intent - 1 if intent else None, size, crc)
