"""
The one way to open a file that others may have put there: a list's files, a project's, another program's.

A named pipe must not block us, a device must not be read, a link must not lead elsewhere, and a folder or socket
must give a sentence instead of a traceback. So every such file is opened without blocking and refused unless it is a
plain file. A named pipe of ours is opened here too, and refused unless it is one. `tests/test_opens.py` finds any other
`os.open` of a file.
"""

from __future__ import annotations

import errno
import os
import stat

_ALWAYS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}


class NotPlain(OSError):
    """What stands there is no plain file; `strerror` says what it is."""

    def __init__(self, path: str, mode: int) -> None:
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        super().__init__(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, f"it is {kind}, not a plain file", path)


class NotPipe(OSError):
    """What stands there is no named pipe."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "it is not a named pipe", path)


def open_plain(
    path: str, flags: int = os.O_RDONLY, mode: int = 0o600, *, follow: bool = False, dir_fd: int | None = None
) -> int:
    """Open a plain file, never waiting for anything, and answer its descriptor.

    Args:
        path: The file.
        flags: As for `os.open`; `O_TRUNC` takes effect only after the check.
        mode: Of a new file.
        follow: Whether the last part of the path may be a link: only for a user's own settings.
        dir_fd: The open folder that a relative `path` is in.

    Raises:
        NotPlain: it is a pipe, a socket, a device or a folder.
        OSError: it cannot be opened; a link that is not to be followed gives ELOOP.
    """
    flags |= _ALWAYS if follow else _ALWAYS | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags & ~os.O_TRUNC, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EISDIR, errno.ENODEV):
            raise _named(path, error, dir_fd) from error
        raise
    try:
        found = os.fstat(fd).st_mode
        if not stat.S_ISREG(found):
            raise NotPlain(path, found)
        if flags & os.O_TRUNC:
            os.ftruncate(fd, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def create_plain(path: str, mode: int = 0o600, *, flags: int = os.O_WRONLY, dir_fd: int | None = None) -> int:
    """Make a plain file, open it and answer its descriptor.

    Raises:
        FileExistsError: something has the name already, also a link that leads nowhere.
        OSError: it cannot be made.
    """
    flags |= os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, mode, dir_fd=dir_fd)


def open_pipe(path: str, flags: int, *, dir_fd: int | None = None) -> int:
    """Open a named pipe, never waiting for its other end, and answer its descriptor.

    Raises:
        NotPipe: it is something else.
        OSError: it cannot be opened; ENXIO if it has no reader, ELOOP if it is a link.
    """
    fd = os.open(path, flags | _ALWAYS | os.O_NOFOLLOW, dir_fd=dir_fd)
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise NotPipe(path)


def read_plain(path: str, *, most: int, follow: bool = False) -> bytes:
    """Up to `most` bytes from the start of a plain file.

    Raises:
        OSError: as of `open_plain`.
    """
    fd = open_plain(path, follow=follow)
    try:
        parts: list[bytes] = []
        left = most
        while left > 0 and (data := os.read(fd, min(left, 1 << 20))):
            parts.append(data)
            left -= len(data)
        return b"".join(parts)
    finally:
        os.close(fd)


def _named(path: str, error: OSError, dir_fd: int | None) -> OSError:
    """The refusal of a pipe without a reader, a socket, a folder or a device, by what it is."""
    try:
        return NotPlain(path, os.lstat(path, dir_fd=dir_fd).st_mode)
    except OSError:
        return error
