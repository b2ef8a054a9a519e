"""Who keeps a job, by the kernel's word: the holder of its `keeper.lock`."""

from __future__ import annotations

import fcntl
import os
import struct

from taskyard.disk.processes import stat_fields
from taskyard.plain_file import open_plain
from taskyard.runtime.keeper.control import name_of_keeper
from taskyard.runtime.keeper.signals import signal

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


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal: a supervisor in that state enforces no limit and takes no request."""
    fields = stat_fields(str(pid)) if pid else None
    return fields is not None and fields[0] in ("T", "t")


def is_supervisor(pid: int, job_id: str) -> bool:
    """Whether a process is called as the supervisor of a job is."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n") == name_of_keeper(job_id)
    except OSError:
        return False  # it ended meanwhile


def resume_supervisor(folder: JobFolder) -> bool:
    """Send SIGCONT to the job's supervisor if a signal has stopped it; whether that was done.

    A program that a job lives in is left as it is: its user may have stopped it.
    """
    pid = keeper_of(folder)
    if not pid or not is_stopped(pid) or not is_supervisor(pid, folder.id):
        return False
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if keeper_of(folder) != pid:  # the number is another's by now
            return False
        signal.pidfd_send_signal(fd, signal.SIGCONT)
    except OSError:
        return False  # it ended meanwhile, or belongs to another user
    finally:
        os.close(fd)
    return True


def keeper_of(folder: JobFolder) -> int | None:
    """The process number of the living keeper; None if there is none. 0: somebody else is closing the job's books."""
    if _hosted and _hosted.get(folder.lock) == os.getpid():
        return os.getpid()
    try:
        fd = open_plain(folder.lock)
    except OSError:
        return None
    try:
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _ASK))
    except OSError:
        return None  # it is nothing that could be locked
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)
