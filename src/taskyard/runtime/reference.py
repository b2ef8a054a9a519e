"""Which job a person means: by its id, the beginning of one, its name, or `last`."""

from __future__ import annotations

from taskyard.errors import BadJobId, JobNotFound, UsageError, shown
from taskyard.names import nearest
from taskyard.runtime.ids import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskyard.runtime.model import Job

#: The job that was started most recently in this project.
LAST = "last"

#: Characters that the beginning of an id must have at least: the letter of its kind alone says too little.
_SHORTEST = 2

#: Candidates that an error lists.
_MOST_NAMED = 5


def resolve(text: str, known: Callable[[], Iterable[Job]], *, project: str = "") -> str:
    """The id of the job that `text` refers to; `known` lists all jobs and is asked only if `text` is no id.

    A name refers to the job that runs under it, else to the newest one that did.

    Raises:
        UsageError: several jobs fit.
        BadJobId: `text` can be neither an id nor the beginning of one, and no job has that name.
        JobNotFound: no job fits; names the nearest.
    """
    if is_job_id(text):
        return text
    jobs = sorted(known(), key=lambda job: job.start_time, reverse=True)
    if text == LAST:
        return _last(jobs, project)
    named = [job for job in jobs if job.description == text]
    running = [job for job in named if not job.is_final]
    if len(running) > 1:
        raise _ambiguous(text, running)
    if named:
        return (running or named)[0].id
    starting = [job for job in jobs if len(text) >= _SHORTEST and job.id.startswith(text)]
    if len(starting) > 1:
        raise _ambiguous(text, starting)
    if starting:
        return starting[0].id
    if is_job_id(text.ljust(9, "0")):
        raise JobNotFound(text, nearest=nearest(text, [job.id for job in jobs]))
    raise BadJobId(text)


def _last(jobs: Sequence[Job], project: str) -> str:
    for job in jobs:
        if not project or job.project in ("", project):
            return job.id
    raise JobNotFound(LAST, nearest=())


def _ambiguous(text: str, jobs: Sequence[Job]) -> UsageError:
    some = ", ".join(f"{job.id} ({shown(job.description)})" for job in jobs[:_MOST_NAMED])
    more = f" and {len(jobs) - _MOST_NAMED} more" if len(jobs) > _MOST_NAMED else ""
    return UsageError(f"{shown(text)} fits {len(jobs)} jobs: {some}{more}. Use a full id.")
