"""Paths of a job's folder `$TASKYARD_HOME/jobs/<id>/` (private to its user), and its supervisor's pid.

The supervisor of a job is the process that the kernel reports as the holder of its `keeper.lock`.
"""

from __future__ import annotations

import fcntl
import os
import struct

from taskyard.core import files
from taskyard.core.files import open_plain
from taskyard.core.system import stat_fields
from taskyard.core.values import NamedTuple
from taskyard.errors import StorageError

#: Name of the transcript in a job's folder.
TRANSCRIPT = "transcript.jsonl"


class JobPaths(NamedTuple):
    """Paths of the files of one job."""

    home: str
    id: str

    @property
    def path(self) -> str:
        """The job's folder."""
        return f"{self.home}/jobs/{self.id}"

    @property
    def incomplete(self) -> str:
        """Its name until its supervisor holds the lock: a visible job always has had a supervisor."""
        return f"{self.home}/jobs/.new-{self.id}"

    @property
    def record(self) -> str:
        """What the job is and its state so far; replaced by its supervisor alone."""
        return f"{self.path}/job.json"

    @property
    def end(self) -> str:
        """How it ended; written once."""
        return f"{self.path}/end.json"

    @property
    def notice(self) -> str:
        """The notice of its end, until it is in an outbox."""
        return f"{self.path}/notice"

    @property
    def reserved_end(self) -> str:
        """An empty file for `end`, created with the job: when it ends the disk may have no free inode."""
        return f"{self.path}/.end"

    @property
    def reserved_notice(self) -> str:
        """An empty file for `notice`, created with the job."""
        return f"{self.path}/.notice"

    @property
    def output(self) -> str:
        """What it printed."""
        return f"{self.path}/output"

    @property
    def transcript(self) -> str:
        """An agent's transcript, one JSON object per line; its output is a link to this."""
        return f"{self.path}/{TRANSCRIPT}"

    @property
    def lock(self) -> str:
        """Locked by its supervisor as long as that runs."""
        return f"{self.path}/keeper.lock"

    @property
    def living(self) -> str:
        """Hard link to its lock, there until its end is recorded and its notice sent; lists the live jobs."""
        return f"{live_folder(self.home)}/{self.id}"

    @property
    def control(self) -> str:
        """A pipe to its supervisor: stop, pause, answer."""
        return f"{self.path}/control"

    @property
    def arguments(self) -> str:
        """Arguments of a handler."""
        return f"{self.path}/arguments.json"

    @property
    def facts(self) -> str:
        """Facts written by the job's own process."""
        return f"{self.path}/facts.json"

    @property
    def elsewhere(self) -> str:
        """Where its remote work runs, by which its process finds it again; removed when it ends."""
        return f"{self.path}/remote.json"

    @property
    def dismissed(self) -> str:
        """Exists once the user dismissed the ended job: views leave it out. In a folder that views watch."""
        return f"{dismissed_folder(self.home)}/{self.id}"

    @property
    def hooks(self) -> str:
        """Exists once the JobEnded hooks were started."""
        return f"{self.path}/hooks"

    @property
    def children(self) -> str:
        """The jobs started inside it, a file each."""
        return f"{self.path}/children"


def job_exists(folder: JobPaths) -> bool:
    """Return whether a job has its folder: a real one, owned by this user.

    Raises:
        StorageError: it was replaced by something else.
    """
    jobs = os.path.dirname(folder.path)
    try:
        files.check_folder(jobs, os.lstat(jobs))
        found = os.lstat(folder.path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise files.storage_error(folder.path, error) from error
    files.check_folder(folder.path, found)
    if found.st_uid != os.geteuid():
        raise StorageError(folder.path, f"it belongs to user {found.st_uid}, not to us")
    return True


def dismissed_folder(home: str) -> str:
    """Return the folder with the names of dismissed jobs."""
    return f"{home}/dismissed"


def live_folder(home: str) -> str:
    """Return the folder with a name for every job that has not ended."""
    return f"{home}/jobs/.living"


def remove_live_name(folder: JobPaths) -> None:
    """Remove a job's live name, if it has one.

    Raises:
        StorageError: it cannot be removed, or the folder is a link.
    """
    names = live_folder(folder.home)
    try:
        files.check_folder(names, os.lstat(names))
    except FileNotFoundError:
        return
    files.remove(folder.living)


def outbox_path(home: str, recipient: str) -> str:
    """Return the folder in which notices for `recipient` (the name of a box) wait."""
    return f"{home}/outbox/{recipient}"


_FLOCK = struct.Struct("hhqqi4x")
_LOCK_QUERY = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


#: Jobs that run in this very process, by lock file, with the pid that registered them: a forked child hosts
#: none. These files must not be opened here, since closing one would release its lock.
_in_process_jobs: dict[str, int] = {}


#: The job that this process is the supervisor of, if any.
_supervised_id = ""


def set_supervised(job_id: str) -> None:
    """Register this process as the dedicated supervisor of a job."""
    global _supervised_id
    _supervised_id = job_id


def supervised_job() -> str:
    """Return the job that this process is the supervisor of; "" if none."""
    return _supervised_id


def register_in_process(folder: JobPaths) -> None:
    """Register a job that this process supervises itself."""
    _in_process_jobs[folder.lock] = os.getpid()


def unregister_in_process(folder: JobPaths) -> None:
    """Unregister a job that has ended and whose lock is released."""
    _in_process_jobs.pop(folder.lock, None)


def is_stopped(pid: int) -> bool:
    """Return whether a signal stopped a process: a stopped supervisor enforces no limit and handles no request."""
    fields = stat_fields(str(pid)) if pid else None
    return fields is not None and fields[0] in ("T", "t")


def is_supervisor(pid: int, job_id: str) -> bool:
    """Return whether a process has the name of a job's supervisor."""
    from taskyard.jobs.supervisor.io import supervisor_name

    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n") == supervisor_name(job_id)
    except OSError:
        return False  # it exited meanwhile


def resume_supervisor(folder: JobPaths) -> bool:
    """Send SIGCONT to the job's supervisor if a signal has stopped it; return whether that was done.

    A program that hosts an in-process job is left as it is: its user may have stopped it.
    """
    from taskyard.jobs.supervisor.kernel import signal

    pid = supervisor_pid(folder)
    if not pid or not is_stopped(pid) or not is_supervisor(pid, folder.id):
        return False
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if supervisor_pid(folder) != pid:  # the pid was reused
            return False
        signal.pidfd_send_signal(fd, signal.SIGCONT)
    except OSError:
        return False  # it exited meanwhile, or belongs to another user
    finally:
        os.close(fd)
    return True


def supervisor_pid(folder: JobPaths) -> int | None:
    """Return the pid of the running supervisor; None if there is none, 0 while another process recovers the job."""
    if _in_process_jobs and _in_process_jobs.get(folder.lock) == os.getpid():
        return os.getpid()
    try:
        fd = open_plain(folder.lock)
    except OSError:
        return None
    try:
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _LOCK_QUERY))
    except OSError:
        return None  # not a file that can be locked
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)
