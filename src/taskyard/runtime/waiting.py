"""
Waiting for jobs without asking again and again: the kernel tells when a job's control pipe has no reader any more.

Whoever keeps a job reads that pipe until the end is written, or until its own end: whoever sees it let go finds the
end there, or knows that the job is lost.
"""

from __future__ import annotations

import os
import select
import time

from taskyard.errors import BadValue
from taskyard.plain_file import open_pipe
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.looking import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.runtime.model import Job

#: Somebody closes a lost job's books: that takes milliseconds, and has no process to wait for.
MOMENT = 0.005

#: Between two looks at a job that only others can settle, in seconds.
_LONGEST_PAUSE = 1.0

#: How long to wait for the notice of a job that has ended, in seconds.
_SEND_TIMEOUT = 1.0

#: `poll` counts in milliseconds of an int: longer sleeps are taken in parts.
_LONGEST = 1e6


def wait(home: str, job_id: str, timeout: float | None = None) -> Job:
    """The job at its end, or as it is after `timeout` seconds.

    Raises:
        JobNotFound: there is none.
    """
    return wait_all(home, [job_id], timeout)[0]


def wait_all(home: str, job_ids: Sequence[str], timeout: float | None = None) -> list[Job]:
    """All jobs at their ends, or as they are after `timeout` seconds, in the order asked for."""
    if timeout is not None and timeout != timeout:
        raise BadValue("timeout", timeout, "a number of seconds")
    deadline = None if timeout is None else time.monotonic() + timeout
    jobs = {job_id: look(home, job_id) for job_id in job_ids}
    for job_id, job in jobs.items():
        pause = 0.0  # it may have ended while we looked at the others
        while not job.is_final and (deadline is None or time.monotonic() < deadline):
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            if not _slept(JobFolder(home, job_id), left):
                time.sleep(pause if left is None else min(pause, left))
                pause = next_pause(pause)
            job = jobs[job_id] = look(home, job_id)
        if job.is_final and _sent_notice(JobFolder(home, job_id), deadline):
            jobs[job_id] = look(home, job_id)
    return [jobs[job_id] for job_id in job_ids]


def _sent_notice(folder: JobFolder, deadline: float | None) -> bool:
    """Wait while the supervisor sends the notice of the end; whether there was something to wait for."""
    longest = time.monotonic() + _SEND_TIMEOUT
    last = longest if deadline is None else min(longest, deadline)
    has_waited = False
    while is_sending_notice(folder) and time.monotonic() < last:
        time.sleep(MOMENT)
        has_waited = True
    return has_waited


def is_sending_notice(folder: JobFolder) -> bool:
    """Whether a job has ended and its supervisor has yet to send the notice of it.

    The end is written first. Whoever waits for a job and then reads notices expects to find the one of this job.
    """
    return os.path.lexists(folder.notice) and keeper_of(folder) is not None


def next_pause(pause: float) -> float:
    """How long to wait for a job without a keeper to be settled, after a first time: one that can only be taken up
    by somebody else may take for ever.
    """
    return min(max(2 * pause, MOMENT), _LONGEST_PAUSE)


def _slept(folder: JobFolder, seconds: float | None) -> bool:
    """Sleep until whoever keeps the job lets go of it; False, and at once, if nobody does."""
    pipe = _opened(folder)
    if pipe is None:
        return False
    try:
        poll = select.poll()
        poll.register(pipe, 0)  # that nobody reads it is an error, and those are always told
        poll.poll(None if seconds is None else min(seconds, _LONGEST) * 1000)
    finally:
        os.close(pipe)
    return True


class Watched:
    """Something that becomes readable when whoever keeps a job lets go of it."""

    def __init__(self, *fds: int) -> None:
        """The first is the one to wait for; the others are what it hangs on."""
        self._fds = fds

    def fileno(self) -> int:
        """For `poll`."""
        return self._fds[0]

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait no longer."""
        for fd in self._fds:
            os.close(fd)


def watch(folder: JobFolder) -> Watched | None:
    """What tells of the end of a job, for those who can only wait for something to read; None if nobody keeps it."""
    pipe = _opened(folder)
    if pipe is None:
        return None
    try:
        with select.epoll() as epoll:
            epoll.register(pipe, 0)
            return Watched(os.dup(epoll.fileno()), pipe)
    except OSError:
        os.close(pipe)
        return None


def _opened(folder: JobFolder) -> int | None:
    """Our end of the control pipe; None if nobody reads it."""
    try:
        return open_pipe(folder.control, os.O_WRONLY)
    except OSError:
        return None


def keeper_pidfd(folder: JobFolder) -> int | None:
    """A descriptor that becomes readable when the job's keeper ends; None if there is no keeper to wait for."""
    pid = keeper_of(folder)
    if not pid:
        return None
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    if keeper_of(folder) == pid:  # it still held the lock after the descriptor was made: it is the very process
        return fd
    os.close(fd)
    return None
