"""What the commands about jobs share: the jobs of this user, and how a job ends a command."""

from __future__ import annotations

import os

from taskyard import config, paths
from taskyard.names import check_name
from taskyard.runtime.jobs import Jobs
from taskyard.runtime.model import JobStatus
from taskyard.surroundings import hook_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.cli.command import Args
    from taskyard.runtime.model import Job

#: As shells and `timeout` say it.
NOT_FINISHED, OUR_FAULT = 124, 125

EXITS = ("N  the job's own exit code", "124  not finished in time", "125  Taskyard itself failed", "128+N  signal N")


def jobs_of(args: Args) -> Jobs:
    """The jobs of this user, for whoever is behind this command line."""
    name = args.by or os.environ.get("TASKYARD_AGENT")
    agent = check_name("an agent", name) if name else None
    return Jobs(paths.home(), agent=agent, settings=config.load(), hook_files=hook_files, alone=True)


def exit_code(jobs: Iterable[Job]) -> int:
    """What a command that waited for jobs ends with: the first code that is not 0."""
    return next((code for job in jobs if (code := _code(job))), 0)


def _code(job: Job) -> int:
    if job.end is None:
        return NOT_FINISHED
    if job.end.exit_code is not None:
        return job.end.exit_code
    if job.end.signal is not None:
        return 128 + job.end.signal
    return 0 if job.status is JobStatus.COMPLETED else OUR_FAULT


def ended_line(job: Job) -> str:
    """How a job ended, in a line."""
    from taskyard.view.text import duration, safe

    what = f"{job.id} {safe(job.description)}"
    if job.end is None:
        return f"{what}: {job.status.value}"
    how = {
        "exited": f"exit code {job.end.exit_code}",
        "signal": f"killed by signal {job.end.signal}",
    }.get(job.end.cause, safe(job.end.cause))
    more = f", {safe(job.end.error)}" if job.end.error else ""
    lost = f"; output lost: {safe(job.end.output_lost)}" if job.end.output_lost else ""
    return f"{what}: {job.status.value} ({how}{more}) after {duration(job.end.duration_ms / 1000)}{lost}"
