"""
Waiting for jobs without asking again and again: the kernel tells when a keeper ends.

A keeper ends after it has written its job's end: whoever sees it gone finds the end there, or knows that the job is
lost.
"""

from __future__ import annotations

import os
import select
import time

from taskyard.errors import BadValue
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.looking import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.runtime.model import Job

#: Somebody closes a lost job's books: that takes milliseconds, and has no process to wait for.
MOMENT = 0.005

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
        while not job.is_final and (deadline is None or time.monotonic() < deadline):
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            _sleep(JobFolder(home, job_id), left)
            job = jobs[job_id] = look(home, job_id)
    return [jobs[job_id] for job_id in job_ids]


def _sleep(folder: JobFolder, seconds: float | None) -> None:
    """Until the job's keeper is gone."""
    fd = keeper_pidfd(folder)
    if fd is None:
        time.sleep(MOMENT if seconds is None else min(MOMENT, seconds))
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(None if seconds is None else min(seconds, _LONGEST) * 1000)
    finally:
        os.close(fd)


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
