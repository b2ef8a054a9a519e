"""Ids of jobs for completion: those that a verb could be about, the newest first. Nothing is written by looking."""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.looking import glance
from taskyard.runtime.model import JobStatus
from taskyard.view.job_text import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.runtime.model import Job

#: Verbs that have something to do with a job that is over.
_ENDED_TOO = ("logs", "wait")

#: So many jobs are looked into: whoever means an older one knows its id.
_MOST = 200


def job_candidates(verb: str, typed: str) -> list[tuple[str, str]]:
    """Ids that begin with `typed`, with what each job is; for `logs` and `wait` also those that are over, last."""
    found = list(_jobs(typed, ended=verb in _ENDED_TOO))
    found = [job for job in found if _suits(job, verb)]
    found.sort(key=lambda job: (job.is_final, -job.start_time))
    return [(job.id, f"{state(job)}: {job.description}") for job in found]


def _jobs(typed: str, *, ended: bool) -> Iterator[Job]:
    home = paths.home()
    try:
        with os.scandir(f"{home}/jobs") as entries:
            folders = [
                (entry.stat(follow_symlinks=False).st_mtime, entry.name) for entry in entries if _fits(entry, typed)
            ]
    except OSError:
        return
    if not ended:
        folders = [(at, name) for at, name in folders if not os.path.lexists(f"{home}/jobs/{name}/end.json")]
    for _, name in sorted(folders, reverse=True)[:_MOST]:
        if (job := glance(home, name)) is not None:
            yield job


def _fits(entry: os.DirEntry[str], typed: str) -> bool:
    return entry.name.startswith(typed) and is_job_id(entry.name)


def _suits(job: Job, verb: str) -> bool:
    """Whether a verb could be about this job: nobody types into one that does not read."""
    if verb in _ENDED_TOO:
        return True
    if job.is_final:
        return False
    if verb == "send":
        return job.takes_input and job.status is JobStatus.RUNNING
    if verb == "resume":
        return job.is_paused
    return job.status is JobStatus.RUNNING and not job.is_paused if verb == "pause" else True
