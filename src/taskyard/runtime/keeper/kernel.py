"""The few system calls that Python does not have: reaping grandchildren, a name for `ps`, holes in files."""

from __future__ import annotations

import ctypes
import errno
import os

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_KEEP_SIZE, _PUNCH_HOLE = 1, 2

_BLOCK = 4096

#: How a disk says that there is no room: for anybody, or for this user.
FULL = (errno.ENOSPC, errno.EDQUOT)

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends; False where the kernel cannot."""
    return bool(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def be_called(name: str) -> None:
    """Show `name` (15 characters of it) in `ps`."""
    _libc.prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]), 0, 0, 0)


def reserve(fd: int, start: int, length: int) -> None:
    """Have blocks ready for a write, without a change that readers see.

    Raises:
        OSError: there are none to be had.
    """
    if _libc.fallocate(fd, _KEEP_SIZE, ctypes.c_long(start), ctypes.c_long(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def why_full(fd: int, size: int) -> str:
    """Why a write behind the first `size` bytes of a file would fail now for want of room; "" if it would not.

    A block may be reserved by it, which the next write takes.
    """
    try:
        reserve(fd, size, _BLOCK)
    except OSError as error:
        if error.errno in FULL:
            return named(error)
        room = os.fstatvfs(fd)  # where nothing can be reserved, such as on NFS
        if room.f_blocks and not (room.f_bfree if os.geteuid() == 0 else room.f_bavail):
            return named(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    return ""


def named(error: OSError) -> str:
    """An error by its name and in words: `ENOSPC: No space left on device`."""
    code = error.errno or errno.EIO
    return f"{errno.errorcode.get(code, code)}: {os.strerror(code)}"


def punch(fd: int, start: int, length: int) -> bool:
    """Free the blocks of a file between two offsets, which read as zeros from then on.

    False where the file system cannot.
    """
    if _libc.fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_long(start), ctypes.c_long(length)) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(code, os.strerror(code))
