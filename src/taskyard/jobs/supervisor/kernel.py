"""System calls that Python lacks, light-weight `signal` access, and the cgroup's OOM kill counter.

`signal` is the interpreter's own C module, with plain numbers: Python's module converts every number to an
enum and back, a dozen calls each, which is much of a supervisor's first millisecond. Type checkers see the
public module.

An OOM kill is read from the kernel's counters, never guessed. Every cgroup counts its OOM-killed processes.
A command that ended by SIGKILL while the count of the cgroup it shares with its supervisor rose was out of
memory; one that ended by SIGKILL without that was killed by another process.

    cgroup v1    /sys/fs/cgroup/memory/<path>/memory.oom_control    oom_kill N
    cgroup v2    /sys/fs/cgroup/<path>/memory.events                oom_kill N
    neither      /proc/vmstat                                       oom_kill N, of the whole machine
"""

from __future__ import annotations

import ctypes
import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_KEEP_SIZE, _PUNCH_HOLE = 1, 2

_BLOCK = 4096

#: Bytes that programs write at once. A write refused for its size leaves the space that was too small for
#: it.
_LARGE_WRITE = 128 * 1024

_AMPLE = 64 * 1024 * 1024

#: Errors of a full disk: for all users, or by this user's quota.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

#: Number of `sched_setattr`, where known: libc has no function for it.
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}.get(os.uname().machine)
_RESET_ON_FORK = 1

#: The shortest time slice the kernel grants, in nanoseconds: a process with it is scheduled sooner.
_SHORT_SLICE = 100_000

_libc = ctypes.CDLL(None, use_errno=True)


class _SchedAttr(ctypes.Structure):
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


# Looked up and declared once, so that a forked supervisor only has to call them.
_prctl, _set_name, _fallocate = _libc["prctl"], _libc["prctl"], _libc["fallocate"]
_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_set_name.argtypes = [ctypes.c_int, ctypes.c_char_p]
_fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def become_subreaper() -> bool:
    """Become the parent of every orphaned descendant (subreaper); return False if the kernel cannot."""
    return bool(_prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def is_subreaper() -> bool:
    """Return whether this process is a subreaper: only then its children account for all descendants."""
    answer = ctypes.c_int(0)
    return _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(answer), 0, 0, 0) == 0 and answer.value == 1


def set_parent_death_signal(number: int) -> None:
    """Receive this signal when the process that started this one exits, however it does."""
    _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def set_process_name(name: str) -> None:
    """Set the name shown by `ps` (its first 15 characters)."""
    _set_name(_PR_SET_NAME, name.encode()[:15])


def request_short_slices() -> None:
    """Request short time slices, to be scheduled between those of others; children get the default.

    No effect on kernels without support.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if _SCHED_SETATTR is None or nice < 0:  # a child would lose its raised priority
        return
    wish = _SchedAttr(ctypes.sizeof(_SchedAttr), 0, _RESET_ON_FORK, nice, 0, _SHORT_SLICE)
    _libc.syscall(_SCHED_SETATTR, 0, ctypes.byref(wish), 0)


def reserve_blocks(fd: int, start: int, length: int) -> None:
    """Reserve blocks for a write, without a change visible to readers.

    Raises:
        OSError: no space.
    """
    if _fallocate(fd, _KEEP_SIZE, start, length) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def full_reason(fd: int, size: int) -> str:
    """Return why a write behind the first `size` bytes may fail for lack of space; "" if there is enough.

    This reserves a block, which the next write uses; a truncation to the current size frees it.
    """
    try:
        reserve_blocks(fd, size, _BLOCK)
    except OSError as error:
        if error.errno in DISK_FULL:
            return error_name(error)
        # Blocks cannot be reserved here, such as on NFS: use the file system's free space instead.
    return "" if _has_space(fd, _LARGE_WRITE) else error_name(OSError(errno.ENOSPC, ""))


def has_ample_space(fd: int) -> bool:
    """Return whether the file system has so much space that only a quota can refuse a write."""
    return _has_space(fd, _AMPLE)


def _has_space(fd: int, size: int) -> bool:
    room = os.fstatvfs(fd)
    free = room.f_bfree if os.geteuid() == 0 else room.f_bavail
    return not room.f_blocks or free * room.f_frsize >= size


def error_name(error: OSError) -> str:
    """Return an error by its name and text: `ENOSPC: No space left on device`."""
    code = error.errno or errno.EIO
    return f"{errno.errorcode.get(code, code)}: {os.strerror(code)}"


def punch_hole(fd: int, start: int, length: int) -> bool:
    """Free a file's blocks from `start` on; they read as zeros from then on.

    Return False if the file system cannot, or not now: a full disk may lack space for the extent list.
    """
    return bool(_fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, start, length) == 0)


if TYPE_CHECKING:
    import signal as signal
else:
    import _signal as signal

#: Signals that a supervisor ignores, since it outlives terminals and their key presses.
IGNORED_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGTTOU,
    signal.SIGTTIN,
    signal.SIGTSTP,
)

#: Signals that a supervisor handles: a child's exit, output growth, a stop request.
HANDLED_SIGNALS = (signal.SIGCHLD, signal.SIGIO, signal.SIGTERM)

#: All signals that can be handled or ignored.
ALL_SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


_MAX_READ = 65536


#: Path of this cgroup's counter, once found; a forked supervisor inherits it from its server.
_counter_path: str | None = None


def oom_kills(root: str = "/") -> int:
    """Return how many processes of our cgroup the kernel has OOM-killed so far; 0 if unknown."""
    global _counter_path
    if root == "/" and _counter_path is not None:
        return _count(_counter_path) or 0
    for path in _counters(root):
        if (count := _count(path)) is not None:
            if root == "/":
                _counter_path = path
            return count
    return 0


def _counters(root: str) -> Iterator[str]:
    """Yield possible paths of the counter, the most exact first."""
    mounted = os.path.join(root, "sys/fs/cgroup")
    for line in _read_text(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            yield f"{mounted}/memory{path}/memory.oom_control"
            yield f"{mounted}/memory/memory.oom_control"  # of a container that sees the path outside of it
        elif number == "0":
            yield f"{mounted}{path}/memory.events"
            yield f"{mounted}/memory.events"
    yield os.path.join(root, "proc/vmstat")


def _count(path: str) -> int | None:
    for line in _read_text(path).splitlines():
        name, _, number = line.partition(" ")
        if name == "oom_kill" and number.isdigit():
            return int(number)
    return None


def _read_text(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, _MAX_READ).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
