"""The few system calls that Python does not have: reaping grandchildren, a name for `ps`, holes in files."""

from __future__ import annotations

import ctypes
import errno
import os

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_KEEP_SIZE, _PUNCH_HOLE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)

# Found and described once, so that a forked keeper only has to call them.
_prctl, _set_name, _fallocate = _libc["prctl"], _libc["prctl"], _libc["fallocate"]
_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_set_name.argtypes = [ctypes.c_int, ctypes.c_char_p]
_fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends; False where the kernel cannot."""
    return bool(_prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def be_called(name: str) -> None:
    """Show `name` (15 characters of it) in `ps`."""
    _set_name(_PR_SET_NAME, name.encode()[:15])


def reserve(fd: int, start: int, length: int) -> None:
    """Have blocks ready for a write, without a change that readers see.

    Raises:
        OSError: there are none to be had.
    """
    if _fallocate(fd, _KEEP_SIZE, start, length) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def punch(fd: int, start: int, length: int) -> bool:
    """Free the blocks of a file between two offsets, which read as zeros from then on.

    False where the file system cannot.
    """
    if _fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, start, length) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(code, os.strerror(code))
