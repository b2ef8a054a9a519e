"""Recover jobs whose supervisor is gone: kill what is left of the command and record the end, once.

The recovering process holds the job's lock and checks again under it: the supervisor may have written the
end after all. Remains of the command are found by recorded pid *and* start time, by the job's id in the
initial environment of its processes, and, if the supervisor was killed just as it started the command, by
the supervisor's process name and open files; no other process is ever signalled. Without a supervisor there
is no proof, and the end states that.

`resolve_uncreated` decides whether a job exists whose starter was killed during its creation. Its
supervisor may still be about to create it. It first creates a live name that must not exist before
(`supervisor.create`), so taking that name ensures that the job will never exist.

`SupervisorWatcher` notices killed supervisors at once for followers of events: the kernel makes a
descriptor readable when the process exits. Reading the job then finds its end, or recovers it, which logs
an event like any end.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import threading
import time

from taskyard.core import files
from taskyard.core.files import create_plain, open_plain
from taskyard.core.system import (
    boottime,
    is_running,
    now_ms,
    proc_folder,
    process_start,
    stat_fields,
    this_host,
)
from taskyard.errors import TaskyardError
from taskyard.jobs import event_log, exit_record, notice_payload, sinks
from taskyard.jobs.job_dir import JobPaths, live_folder
from taskyard.jobs.model import End, end_from_json, end_to_json
from taskyard.jobs.query import list_jobs, read_job
from taskyard.jobs.supervisor import terminate
from taskyard.jobs.supervisor.child_jobs import ChildJobs
from taskyard.jobs.supervisor.io import supervisor_name
from taskyard.jobs.supervisor.terminate import freeze_tree
from taskyard.jobs.wait import watch_exit
from taskyard.storage.locks import RangeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from taskyard.jobs.model import Job
    from taskyard.jobs.wait import ExitWatch


#: Why it is unknown how a job ended. A supervisor that exits normally records it, even on a full disk.
_LOST_REASON = "its supervisor is gone and left no record of how it ended"

#: Seconds that child jobs of a lost job have to end after the stop request.
_GRACE = 3.0

#: Seconds for killed processes to be gone: they may have forked just before, and the machine may be busy.
_KILL_TIMEOUT = 2.0

#: Empty scans in a row that are required: a process that forks and exits during a scan hides its child.
_EMPTY_SCANS = 2

#: Fewest rounds, however slow the machine is.
_MIN_ROUNDS = 5

#: Seconds between two rounds of SIGKILL.
_ROUND_DELAY = 0.002


def recover_lost(folder: JobPaths, record: Mapping[str, object]) -> None:
    """Record the end of a job without a supervisor; do nothing if another process does, or it has one after all."""
    with RangeLock(folder.lock) as lock:
        if not lock.try_take(0):
            return
        if not os.path.lexists(folder.end) and exit_record.read_decision(folder) is None:
            event_log.ensure_started_logged(folder, record)
            end = end_from_json(exit_record.read_draft(folder) or {}) or _lost_end(folder, record)
            told = notice_payload.end_notice(folder, record, end)
            exit_record.commit_end(folder, end_to_json(end), told, hooks=record.get("hooks"))
            if told is not None:
                sinks.start_sinks(folder.home, told, terminal=sinks.terminal_of(record))
        else:
            exit_record.complete_end(folder, hooks=record.get("hooks"))


def _lost_end(folder: JobPaths, record: Mapping[str, object]) -> End:
    """Kill what is left, and return how the job was lost."""
    end = End("lost", at=now_ms(), proof="best_effort", size=_output_size(folder))
    if record.get("host") != this_host():
        return end._replace(error="the machine was restarted")
    survivors = _terminate_remains(folder, record)
    why = "the program around it is gone" if record.get("isInside") else _LOST_REASON
    return end._replace(error=why, survivors=tuple(survivors))


def _output_size(folder: JobPaths) -> int:
    """Return the size of its transcript, else of its output, in bytes; links are not followed."""
    for path in (folder.transcript, folder.output):
        try:
            return os.lstat(path).st_size
        except OSError:
            continue
    return 0


def _terminate_remains(folder: JobPaths, record: Mapping[str, object]) -> list[int]:
    ChildJobs(folder).stop_children(by=f"the loss of {folder.id}", grace=_GRACE)
    return kill_processes(folder, record)


def kill_processes(folder: JobPaths, record: Mapping[str, object]) -> list[int]:
    """Kill what a killed supervisor left of its command; return the survivors."""
    others = ChildJobs(folder)
    deadline, looks, rounds = boottime() + _KILL_TIMEOUT, 0, 0
    while True:
        rounds += 1
        supervisors = others.supervisors() | {os.getpid()}  # this process must survive to record the end
        left = _find_processes(folder, record, supervisors)
        looks = 0 if left else looks + 1
        if looks == _EMPTY_SCANS or (rounds > _MIN_ROUNDS and boottime() > deadline):
            return left
        for pid in left:
            terminate.signal_all(freeze_tree(pid, supervisors), signal.SIGKILL)
        terminate.signal_all(left, signal.SIGKILL)
        time.sleep(_ROUND_DELAY)


def _find_processes(folder: JobPaths, record: Mapping[str, object], supervisors: Collection[int]) -> list[int]:
    """Return processes that certainly belong to the command."""
    found = {*_marked(folder.id), *_starting_processes(folder)}
    pid, start = record.get("pid"), record.get("pidStart")
    if isinstance(pid, int) and isinstance(start, int) and pid > 1 and start and process_start(pid) == start:
        found.add(pid)
        found.update(terminate.descendants(pid, exclude=supervisors))
    below_keepers = {pid for keeper in supervisors for pid in terminate.descendants(keeper)}
    return sorted(pid for pid in found - below_keepers - set(supervisors) if _is_running(pid))


def _marked(job_id: str) -> list[int]:
    """Return processes that were started with the job's id in their environment."""
    mark = f"TASKYARD_JOB={job_id}".encode()
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"{proc_folder(name)}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue  # gone, or another user's
    return found


def _starting_processes(folder: JobPaths) -> list[int]:
    """Return forks of a killed supervisor that have its name and files, but no job id in the environment yet."""
    name = supervisor_name(folder.id)
    everybody = map(int, filter(str.isdigit, os.listdir("/proc")))
    return [pid for pid in everybody if _comm(pid) == name and _has_open(pid, folder.control)]


def _has_open(pid: int, path: str) -> bool:
    folder = f"{proc_folder(str(pid))}/fd"
    try:
        return any(os.readlink(f"{folder}/{fd}") == path for fd in os.listdir(folder))
    except OSError:
        return False  # it exited, or became the command and has the job id in its environment


def _comm(pid: int) -> str:
    """Return a process's name as shown by `ps`; "" if it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""


def _is_running(pid: int) -> bool:
    fields = stat_fields(str(pid))
    return fields is not None and is_running(str(pid), fields)


_FLOCK = struct.Struct("hhqqi4x")
_LOCK_QUERY = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)

#: Seconds after which a supervisor that neither locked its name nor created its job counts as killed (both
#: take milliseconds), and seconds after which we stop waiting for one that is running.
_DEAD_AFTER, _CREATE_TIMEOUT = 1.0, 30.0

#: Seconds between two checks.
_POLL_INTERVAL = 0.02


def resolve_uncreated(home: str, job_id: str) -> bool:
    """Return whether a job exists; if not, it never will."""
    folder = JobPaths(home, job_id)
    files.make_private_folder(live_folder(home))
    began = free_since = boottime()
    while not os.path.lexists(folder.path):
        if _claim_name(folder):
            return os.path.lexists(folder.path)
        now = boottime()
        if _is_locked(folder):
            free_since = now
        if now - free_since > _DEAD_AFTER or now - began > _CREATE_TIMEOUT:
            return os.path.lexists(folder.path)
        time.sleep(_POLL_INTERVAL)
    return True


def _claim_name(folder: JobPaths) -> bool:
    """Create the live name of a job that must not be created any more; return False if it is taken."""
    try:
        os.close(create_plain(folder.living))
    except FileExistsError:
        return False
    except OSError as error:
        raise files.storage_error(folder.living, error) from error
    if os.path.lexists(folder.path):
        files.remove(folder.living)  # it was created, and ended, between two checks
    return True


def _is_locked(folder: JobPaths) -> bool:
    try:
        fd = open_plain(folder.living)
    except OSError:
        return False
    try:
        found: int = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _LOCK_QUERY))[0]
    finally:
        os.close(fd)
    return found != fcntl.F_UNLCK


class SupervisorWatcher:
    """A thread that watches the supervisors of running jobs; a context manager."""

    def __init__(self, home: str, job: str | None = None) -> None:
        """Watch every live job, or only `job`; starts with `with`."""
        self._home = home
        self._job = job
        self._new: list[str] = []
        self._jobs: dict[int, tuple[str, ExitWatch]] = {}  #: by the descriptor that reports the exit
        self._poll = select.poll()

    def watch(self, job_id: str) -> None:
        """Also watch a job that started since."""
        self._new.append(job_id)
        try:
            os.write(self._tell, b"\0")
        except BlockingIOError:
            pass  # it will wake up anyway

    def __enter__(self) -> SupervisorWatcher:
        self._wake, self._tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        threading.Thread(target=self._sleep, name="taskyard-pidfds", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._tell)  # which ends the thread

    def _sleep(self) -> None:
        self._poll.register(self._wake, select.POLLIN)
        try:
            for job_id in self._living():
                self._watch(job_id)
            while self._is_going_on():
                pass
        finally:
            os.close(self._wake)
            for _, watched in self._jobs.values():
                watched.close()

    def _living(self) -> list[str]:
        try:
            return [self._job] if self._job is not None else [job.id for job in list_jobs(self._home)]
        except (TaskyardError, OSError):
            return []

    def _is_going_on(self) -> bool:
        """Sleep until a supervisor exits or a job is added; return False when closed."""
        for fd, what in self._poll.poll():
            if fd != self._wake:
                self._poll.unregister(fd)
                job_id, watched = self._jobs.pop(fd)
                watched.close()
                self._watch(job_id)  # ended now; or resumed by another supervisor
            elif not what & select.POLLIN:
                return False  # the watcher was closed
            else:
                os.read(self._wake, 4096)
                while self._new:
                    self._watch(self._new.pop())
        return True

    def _watch(self, job_id: str) -> None:
        job = self._look(job_id)
        if job is None or job.is_final:
            return
        watched = watch_exit(JobPaths(self._home, job_id))
        if watched is None:
            self._look(job_id)  # it has no supervisor any more
        else:
            self._jobs[watched.fileno()] = job_id, watched
            self._poll.register(watched, select.POLLIN)

    def _look(self, job_id: str) -> Job | None:
        try:
            return read_job(self._home, job_id)
        except (TaskyardError, OSError):
            return None  # gone by now, or read-only here: another process may recover it
