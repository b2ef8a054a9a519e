"""Who keeps a job, by the kernel's word: the holder of its `keeper.lock`."""

from __future__ import annotations

import fcntl
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder

_FLOCK = struct.Struct("hhqqi4x")
_ASK = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


#: Jobs that live in this very process, by their lock file, with the process that said so: a forked child hosts none.
#: Nobody here may open those files, since closing one would give its lock back.
_hosted: dict[str, int] = {}


#: The job that this process is the keeper of, if it is one.
_kept = ""


def keep(job_id: str) -> None:
    """Note that this process is the keeper of a job, and nothing else."""
    global _kept
    _kept = job_id


def kept_here() -> str:
    """The job that this process is the keeper of; "" if it is none."""
    return _kept


def host(folder: JobFolder) -> None:
    """Note that this process keeps a job itself."""
    _hosted[folder.lock] = os.getpid()


def host_no_longer(folder: JobFolder) -> None:
    """The job has ended, and its lock is given back."""
    _hosted.pop(folder.lock, None)


def keeper_of(folder: JobFolder) -> int | None:
    """The process number of the living keeper; None if there is none. 0: somebody else is closing the job's books."""
    if _hosted and _hosted.get(folder.lock) == os.getpid():
        return os.getpid()
    try:
        fd = os.open(folder.lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _ASK))
    except OSError:
        return None  # it is nothing that could be locked
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)
