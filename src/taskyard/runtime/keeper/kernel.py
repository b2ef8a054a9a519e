"""The few system calls that Python does not have: reaping grandchildren, a name for `ps`, holes in files."""

from __future__ import annotations

import ctypes
import errno
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_KEEP_SIZE, _PUNCH_HOLE = 1, 2

_BLOCK = 4096

#: Bytes that programs write at once. A write that is refused for its size leaves the room that is too small for it.
_LARGE_WRITE = 128 * 1024

_PLENTY = 64 * 1024 * 1024

#: How a disk says that there is no room: for anybody, or for this user.
FULL = (errno.ENOSPC, errno.EDQUOT)

#: `sched_setattr` by its number, where we know it: libc has no name for it.
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}.get(os.uname().machine)
_RESET_ON_FORK = 1

#: The shortest turn the kernel gives, in nanoseconds: whoever asks for it is let in sooner.
_SHORT_TURN = 100_000

_libc = ctypes.CDLL(None, use_errno=True)


class _Turns(ctypes.Structure):
    """The kernel's `struct sched_attr`."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("turn", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


# Found and described once, so that a forked keeper only has to call them.
_prctl, _set_name, _fallocate = _libc["prctl"], _libc["prctl"], _libc["fallocate"]
_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_set_name.argtypes = [ctypes.c_int, ctypes.c_char_p]
_fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends; False where the kernel cannot."""
    return bool(_prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def adopts_orphans() -> bool:
    """Whether this process is the parent of every orphan below it: only then its children tell of all descendants."""
    answer = ctypes.c_int(0)
    return _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(answer), 0, 0, 0) == 0 and answer.value == 1


def be_told_of_parents_death(number: int) -> None:
    """Get this signal when the process that started this one ends, however it does."""
    _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def be_called(name: str) -> None:
    """Show `name` (15 characters of it) in `ps`."""
    _set_name(_PR_SET_NAME, name.encode()[:15])


def ask_for_short_turns() -> None:
    """Be let in between two turns of others, for less at a time; children are as everybody is.

    Where a kernel does not know of it, nothing happens.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if _SCHED_SETATTR is None or nice < 0:  # a child would lose a priority that was raised for it
        return
    wish = _Turns(ctypes.sizeof(_Turns), 0, _RESET_ON_FORK, nice, 0, _SHORT_TURN)
    _libc.syscall(_SCHED_SETATTR, 0, ctypes.byref(wish), 0)


def reserve(fd: int, start: int, length: int) -> None:
    """Have blocks ready for a write, without a change that readers see.

    Raises:
        OSError: there are none to be had.
    """
    if _fallocate(fd, _KEEP_SIZE, start, length) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def why_full(fd: int, size: int) -> str:
    """Why a write behind the first `size` bytes of a file may fail now for want of room; "" if there is enough.

    A block is reserved by it, which the next write takes; a truncation to the size it has gives it back.
    """
    try:
        reserve(fd, size, _BLOCK)
    except OSError as error:
        if error.errno in FULL:
            return named(error)
        # Nothing can be reserved here, such as on NFS. What the file system says of itself must do.
    return "" if _has(fd, _LARGE_WRITE) else named(OSError(errno.ENOSPC, ""))


def has_plenty(fd: int) -> bool:
    """Whether there is so much room around a file that only a quota can refuse a write."""
    return _has(fd, _PLENTY)


def _has(fd: int, size: int) -> bool:
    room = os.fstatvfs(fd)
    free = room.f_bfree if os.geteuid() == 0 else room.f_bavail
    return not room.f_blocks or free * room.f_frsize >= size


def named(error: OSError) -> str:
    """An error by its name and in words: `ENOSPC: No space left on device`."""
    code = error.errno or errno.EIO
    return f"{errno.errorcode.get(code, code)}: {os.strerror(code)}"


def punch(fd: int, start: int, length: int) -> bool:
    """Free the blocks of a file between two offsets, which read as zeros from then on.

    False where the file system cannot, or not now: a full disk may have no room for the list of holes.
    """
    return bool(_fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, start, length) == 0)
