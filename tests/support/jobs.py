"""Jobs for tests: a home of their own, and what the kernel knows of their processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from support.wait import until
from taskyard.core.system import stat_fields
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job


def marked(word: str) -> list[int]:
    """Living processes with `word` in their command line: a test's own, if the word is."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        fields = stat_fields(name)
        if word.encode() in words and fields is not None and fields[0] not in ("Z", "X"):
            found.append(int(name))
    return found


def kill_keeper(jobs: Jobs, job: Job) -> None:
    """Kill the keeper of a job, as the kernel would when memory runs out; it is gone when this returns."""
    folder = JobPaths(jobs.home, job.id)
    keeper = supervisor_pid(folder)
    assert keeper
    os.kill(keeper, signal.SIGKILL)
    until(lambda: supervisor_pid(folder) is None)


def wait_until_told(jobs: Jobs, job_id: str) -> None:
    """Wait for a job's end and, a moment later, for its notice to be on its way."""
    jobs.wait(job_id, timeout=20)
    until(lambda: not os.path.lexists(JobPaths(jobs.home, job_id).notice), what="the notice to be sent")
