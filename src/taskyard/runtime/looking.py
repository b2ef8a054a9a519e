"""
Any job, seen by any process: what is known of it now, by its files and the kernel.

    end.json                      it is over, and that is how
    a living keeper               it runs, or waits for its turn
    neither                       it is lost: whoever finds that out writes it down, once

Who asks for the living reads the names in `jobs/.living`, so that it does not matter how many are over. A name that
stays there although its keeper is gone is work that somebody died over; whoever finds it completes it.
"""

from __future__ import annotations

import os

from taskyard.errors import BadJobId, JobNotFound, StorageError
from taskyard.names import nearest
from taskyard.runtime import ending
from taskyard.runtime.ended import ended_index
from taskyard.runtime.folder import JobFolder, living_folder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.model import End, Job, JobStatus
from taskyard.runtime.records import end_from_json, job_from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


#: What stands for an end that is there and cannot be understood: it happened, and is not written anew.
_UNREADABLE = End("error", error="how it ended cannot be read", proof="best_effort")

#: And for one that cannot be written: the disk is full, or may only be read.
_UNWRITTEN = End("lost", error="its keeper is gone", proof="best_effort")


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
    job = job_from_json(known, status=end.status, end=end)
    return None if job is None else job._replace(notified=True)


def everything(home: str, *, ended: bool = False) -> list[Job]:
    """Every job that lives, oldest first; with `ended` also those that are over."""
    names = _names(home) if ended else _living_names(home)
    found = [job for name in names if (job := _look(JobFolder(home, name), even_ended=ended)) is not None]
    return sorted(found, key=lambda job: (job.start_time, job.id))


def settle_all(home: str) -> None:
    """Close the books of every job whose keeper is gone: its end is written, the news of it on its way."""
    for name in _living_names(home):
        folder = JobFolder(home, name)
        if keeper_of(folder) is None:
            _look(folder, even_ended=False)


def _names(home: str) -> Iterator[str]:
    return filter(is_job_id, _listed(f"{home}/jobs"))


def _living_names(home: str) -> Iterator[str]:
    return filter(is_job_id, _listed(living_folder(home)))


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _look(folder: JobFolder, *, even_ended: bool = True) -> Job | None:
    """A job, or None if there is none that can be read (or it is over, and only the living are asked for)."""
    record: dict[str, object] | None = None
    for _ in range(3):
        if (end := _end_of(folder)) is not None:
            if even_ended:
                return _over(folder, end)
            _finish(folder)
            return None
        keeper = keeper_of(folder)
        if keeper is not None:
            return _living(folder)
        record = ending.read(folder.record)
        if record is None:
            return None
        _settle(folder, record)
    # It cannot be written down here and now, and is true all the same.
    return job_from_json(record, status=JobStatus.FAILED, end=_UNWRITTEN) if record is not None and even_ended else None


def _end_of(folder: JobFolder) -> End | None:
    """How a job ended; None if it did not."""
    raw = ending.read(folder.end)
    if raw is None and os.path.lexists(folder.end):
        raw = ending.read(folder.end) or {}  # it came between the two, or cannot be read
    return None if raw is None else end_from_json(raw) or _UNREADABLE


def _over(folder: JobFolder, end: End) -> Job | None:
    record = ending.read(folder.record)
    if record is None:
        return None
    if os.path.lexists(folder.notice):
        _finish(folder)
    job = job_from_json(record, status=end.status, end=end)
    return (
        None if job is None else _with_facts(folder, record, job._replace(notified=not os.path.lexists(folder.notice)))
    )


def _finish(folder: JobFolder) -> None:
    """Do what is left to do of an end, if its keeper died over it."""
    if keeper_of(folder) is None:
        _settle(folder, ending.read(folder.record) or {})


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
