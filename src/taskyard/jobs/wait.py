"""
Wait for jobs without polling: the kernel reports when a job's control pipe has no reader any more.

A supervisor keeps that pipe open until the end is recorded, or until it exits: once it is closed, the end
is there or the job is lost.
"""

from __future__ import annotations

import os
import select
import time

from taskyard.core.files import open_pipe
from taskyard.errors import BadValue
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.query import read_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.jobs.model import Job

#: Seconds to wait while another process recovers a lost job: it takes milliseconds, with no process to wait
#: for.
SETTLE_DELAY = 0.005

#: Longest pause between checks of a job that only other processes can complete, in seconds.
_MAX_PAUSE = 1.0

#: Seconds to wait for the notice of a job that has ended.
_NOTICE_TIMEOUT = 1.0

#: Longest `poll` in seconds (it takes an int of milliseconds); longer sleeps are split.
_MAX_POLL = 1e6


def wait(home: str, job_id: str, timeout: float | None = None) -> Job:
    """Return the job once it has ended, or as it is after `timeout` seconds.

    Raises:
        JobNotFound: there is no such job.
    """
    return wait_all(home, [job_id], timeout)[0]


def wait_all(home: str, job_ids: Sequence[str], timeout: float | None = None) -> list[Job]:
    """Return all jobs once they have ended, or as they are after `timeout` seconds, in the order given."""
    if timeout is not None and timeout != timeout:
        raise BadValue("timeout", timeout, "a number of seconds")
    deadline = None if timeout is None else time.monotonic() + timeout
    jobs = {job_id: read_job(home, job_id) for job_id in job_ids}
    for job_id, job in jobs.items():
        pause = 0.0  # it may have ended while we waited for the others
        while not job.is_final and (deadline is None or time.monotonic() < deadline):
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            if not _wait_exit(JobPaths(home, job_id), left):
                time.sleep(pause if left is None else min(pause, left))
                pause = next_pause(pause)
            job = jobs[job_id] = read_job(home, job_id)
        if job.is_final and _wait_notice_sent(JobPaths(home, job_id), deadline):
            jobs[job_id] = read_job(home, job_id)
    return [jobs[job_id] for job_id in job_ids]


def _wait_notice_sent(folder: JobPaths, deadline: float | None) -> bool:
    """Wait while the supervisor sends the notice of the end; return whether there was something to wait for."""
    longest = time.monotonic() + _NOTICE_TIMEOUT
    last = longest if deadline is None else min(longest, deadline)
    has_waited = False
    while is_sending_notice(folder) and time.monotonic() < last:
        time.sleep(SETTLE_DELAY)
        has_waited = True
    return has_waited


def is_sending_notice(folder: JobPaths) -> bool:
    """Return whether a job has ended and its supervisor has yet to send the notice.

    The end is recorded first. A client that waits for a job and then reads notices expects to find this
    one.
    """
    return os.path.lexists(folder.notice) and supervisor_pid(folder) is not None


def next_pause(pause: float) -> float:
    """Return the next pause for a job without a supervisor: a backoff, since only others may be able to complete it."""
    return min(max(2 * pause, SETTLE_DELAY), _MAX_PAUSE)


def _wait_exit(folder: JobPaths, seconds: float | None) -> bool:
    """Sleep until the supervisor closes the job; return False at once if it has no supervisor."""
    pipe = _open_control(folder)
    if pipe is None:
        return False
    try:
        poll = select.poll()
        poll.register(pipe, 0)  # a missing reader is an error, which `poll` always reports
        poll.poll(None if seconds is None else min(seconds, _MAX_POLL) * 1000)
    finally:
        os.close(pipe)
    return True


class ExitWatch:
    """A descriptor that becomes readable when the supervisor of a job closes it."""

    def __init__(self, *fds: int) -> None:
        """The first descriptor is the one to wait for; the others must stay open for it."""
        self._fds = fds

    def fileno(self) -> int:
        """Return the descriptor for `poll`."""
        return self._fds[0]

    def __enter__(self) -> ExitWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptors."""
        for fd in self._fds:
            os.close(fd)


def watch_exit(folder: JobPaths) -> ExitWatch | None:
    """Return a watch that becomes readable when the job ends; None if it has no supervisor."""
    pipe = _open_control(folder)
    if pipe is None:
        return None
    try:
        with select.epoll() as epoll:
            epoll.register(pipe, 0)
            return ExitWatch(os.dup(epoll.fileno()), pipe)
    except OSError:
        os.close(pipe)
        return None


def _open_control(folder: JobPaths) -> int | None:
    """Return the write end of the control pipe; None if it has no reader."""
    try:
        return open_pipe(folder.control, os.O_WRONLY)
    except OSError:
        return None


def supervisor_pidfd(folder: JobPaths) -> int | None:
    """Return a pidfd of the job's supervisor; None if it has none to wait for."""
    pid = supervisor_pid(folder)
    if not pid:
        return None
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    if supervisor_pid(folder) == pid:  # it still holds the lock, so the pidfd is of the right process
        return fd
    os.close(fd)
    return None
