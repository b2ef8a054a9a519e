"""
Any job, seen by any process: what is known of it now, by its files and the kernel.

    end.json                      it is over, and that is how
    a living keeper               it runs, or waits for its turn
    neither                       it is lost: whoever finds that out writes it down, once
"""

from __future__ import annotations

import os

from taskyard.errors import BadJobId, JobNotFound, StorageError
from taskyard.names import nearest
from taskyard.runtime import ending
from taskyard.runtime.ended import ended_index
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.model import Job, JobStatus
from taskyard.runtime.records import end_from_json, job_from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def look(home: str, job_id: str) -> Job:
    """One job as it is now.

    Raises:
        BadJobId: no job can have it.
        JobNotFound: there never was one of this id; names the nearest.
    """
    if not is_job_id(job_id):
        raise BadJobId(job_id)
    found = _look(JobFolder(home, job_id)) or _remembered(home, job_id)
    if found is None:
        raise JobNotFound(job_id, nearest=nearest(job_id, _names(home)))
    return found


def _remembered(home: str, job_id: str) -> Job | None:
    """A job whose folder was collected, by the line that is kept of it."""
    known = ended_index(home, job_id)
    end = end_from_json(known) if known is not None else None
    if known is None or end is None:
        return None
    return job_from_json(known, status=end.status, end=end, notified=True)


def everything(home: str, *, ended: bool = False) -> list[Job]:
    """Every job that lives, oldest first; with `ended` also those that are over."""
    found = [job for name in _names(home) if (job := _look(JobFolder(home, name), even_ended=ended)) is not None]
    return sorted(found, key=lambda job: (job.start_time, job.id))


def _names(home: str) -> Iterator[str]:
    try:
        names = os.listdir(f"{home}/jobs")
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from filter(is_job_id, names)


def _look(folder: JobFolder, *, even_ended: bool = True) -> Job | None:
    """A job, or None if there is none that can be read (or it is over, and only the living are asked for)."""
    for _ in range(3):
        if (raw_end := ending.read(folder.end)) is not None:
            return _over(folder, raw_end) if even_ended else None
        keeper = keeper_of(folder)
        if keeper is not None:
            return _living(folder)
        record = ending.read(folder.record)
        if record is None:
            return None
        _settle(folder, record)
    return None


def _over(folder: JobFolder, raw_end: dict[str, object]) -> Job | None:
    end = end_from_json(raw_end)
    record = ending.read(folder.record)
    if end is None or record is None:
        return None
    job = job_from_json(record, status=end.status, end=end, notified=not os.path.lexists(folder.notice))
    return None if job is None else _with_facts(folder, record, job)


def _living(folder: JobFolder) -> Job | None:
    record = ending.read(folder.record)
    if record is None:
        return None
    job = job_from_json(record, status=JobStatus.PENDING if record.get("waitsFor") else JobStatus.RUNNING)
    return None if job is None else _with_facts(folder, record, job)


def _with_facts(folder: JobFolder, record: dict[str, object], job: Job) -> Job:
    """A job with what its own process says of it, where it is of a kind that says something."""
    if not record.get("hasFacts"):
        return job
    from taskyard.runtime.facts import shown

    facts = shown(folder)
    asks = facts.pop("needsInput", False) is True and not job.is_final
    return job._replace(facts={**job.facts, **facts}, needs_input=job.needs_input or asks)


def _settle(folder: JobFolder, record: dict[str, object]) -> None:
    from taskyard.runtime.lost import settle

    try:
        settle(folder, record)
    except StorageError:
        pass  # we may only look: the next who may write will settle it
