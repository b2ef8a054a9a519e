"""
The mark: the highest id a list ever gave out, in `.highwatermark`, shared with Claude Code.

Decimal text without a newline; garbage counts as 0. It is read and raised in place, under the
list's lock: it only ever grows, so no moment shows a smaller number.
"""

from __future__ import annotations

import os

from taskyard.disk.files import storage_error
from taskyard.names import LARGEST_ID
from taskyard.plain_file import open_plain

_OPEN = os.O_RDWR | os.O_CREAT


class Mark:
    """One list's mark, kept open, and opened anew when somebody put another file in its place."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._size = 0

    def read(self) -> int:
        """The highest id given out, as the mark has it."""
        try:
            found = os.fstat(self._fd) if self._fd >= 0 else None
            if found is None or not found.st_nlink:
                self.close()
                self._fd = open_plain(self._path, _OPEN, 0o644)
                found = os.fstat(self._fd)
            self._size = found.st_size
            return number_in(os.pread(self._fd, 64, 0))
        except OSError as error:
            raise storage_error(self._path, error) from error

    def write(self, value: int) -> None:
        """Put `value` in; `read` came first."""
        data = b"%d" % value
        try:
            os.pwrite(self._fd, data, 0)
            if self._size > len(data):  # garbage of another program behind it, or an id taken back
                os.ftruncate(self._fd, len(data))
        except OSError as error:
            raise storage_error(self._path, error) from error

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def number_in(data: bytes) -> int:
    """Digits as JavaScript's parseInt reads them: up to the first other character, after white space."""
    text = data.strip()
    if not text.isdigit():
        end = 0
        while end < len(text) and 48 <= text[end] <= 57:
            end += 1
        text = text[:end]
    if len(text) > 20:
        return LARGEST_ID + 1
    return int(text or b"0")
