"""The kernel's file events, read without waiting: four calls of libc."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import termios

CREATE, DELETE, MODIFY, CLOSE_WRITE, MOVED_FROM, MOVED_TO = 0x100, 0x200, 0x2, 0x8, 0x40, 0x80
DELETE_SELF, MOVE_SELF, IGNORED, OVERFLOW, ISDIR = 0x400, 0x800, 0x8000, 0x4000, 0x40000000

#: What says that a file in a folder is not as it was.
CHANGES = CREATE | DELETE | MODIFY | CLOSE_WRITE | MOVED_FROM | MOVED_TO | DELETE_SELF | MOVE_SELF

_NOTHING = struct.pack("i", 0)
_EVENT = struct.Struct("iIII")
_ONLYDIR = 0x01000000

_libc = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """One queue of file events."""

    def __init__(self) -> None:
        """Open it.

        Raises:
            OSError: this system has none, or no more of them.
        """
        self.fd: int = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: str, changes: int = CHANGES) -> int:
        """Follow what happens in `folder`, or of that only some `changes`; the number its events carry."""
        return _checked(_libc.inotify_add_watch(self.fd, os.fsencode(folder), changes | _ONLYDIR))

    def remove(self, number: int) -> None:
        """Follow it no longer."""
        _libc.inotify_rm_watch(self.fd, number)

    def read(self) -> list[tuple[int, int, str]]:
        """The events since last asked: (number, mask, name of the file). Never waits."""
        events: list[tuple[int, int, str]] = []
        while fcntl.ioctl(self.fd, termios.FIONREAD, _NOTHING) != _NOTHING:  # cheaper than an exception each time
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return events
            position = 0
            while position < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, position)
                position += _EVENT.size
                name = data[position : position + length].rstrip(b"\0")
                events.append((number, mask, os.fsdecode(name)))
                position += length
        return events

    def close(self) -> None:
        """Give the queue back."""
        os.close(self.fd)


def _checked(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
