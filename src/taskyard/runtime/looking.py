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

from taskyard.disk import files
from taskyard.errors import BadJobId, Damaged, JobNotFound, StorageError
from taskyard.names import nearest
from taskyard.runtime import ending, resuming
from taskyard.runtime.ended import remembered
from taskyard.runtime.folder import JobFolder, is_there, living_folder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import is_stopped, is_supervisor, keeper_of
from taskyard.runtime.model import End, Job, JobStatus
from taskyard.runtime.records import end_from_json, job_from_json
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard.errors import TaskyardError

    #: Gets what is wrong with a job that cannot be shown.
    Report = Callable[[TaskyardError], object]

#: What stands for an end that is there and cannot be understood: it happened, and is not written anew.
_UNREADABLE = End("error", error="how it ended cannot be read", proof="best_effort")

#: What stands for the description of a job whose record cannot be read: it can be stopped and waited for all the same.
_UNKNOWN = "(its record cannot be read)"

#: And for one that cannot be written: the disk is full, or may only be read.
_UNWRITTEN = End("lost", error="its keeper is gone", proof="best_effort")


def look(home: str, job_id: str) -> Job:
    """One job as it is now.

    Raises:
        BadJobId: no job can have it.
        JobNotFound: there never was one of this id; names the nearest.
        Damaged: nobody keeps it, and its record cannot be read.
        StorageError: something else is in the place of its folder or of a file in it.
    """
    if not is_job_id(job_id):
        raise BadJobId(job_id)
    folder = JobFolder(home, job_id)
    found = (_look(folder) if is_there(folder) else None) or remembered(home, job_id)
    if found is None:
        raise JobNotFound(job_id, nearest=nearest(job_id, kept_names(home)))
    return found


def everything(home: str, *, ended: bool = False, report: Report | None = None) -> list[Job]:
    """Every job that lives, oldest first; with `ended` also those that are over. `report` gets what cannot be read."""
    names = kept_names(home) if ended else living_names(home)
    found = [
        job for name in names if (job := _seen(JobFolder(home, name), even_ended=ended, report=report)) is not None
    ]
    return sorted(found, key=lambda job: (job.start_time, job.id))


def damage(home: str) -> Iterator[Damaged | StorageError]:
    """What is wrong with the folders of jobs, over or not. Nothing is written."""
    for name in kept_names(home):
        folder = JobFolder(home, name)
        try:
            if not is_there(folder):
                continue
            if _record(folder) is None and is_there(folder):
                yield Damaged(folder.record, "it does not say what the job is")
            if _end_of(folder) is _UNREADABLE:
                yield Damaged(folder.end, "it does not say how the job ended")
        except StorageError as error:
            yield error


def glance(home: str, job_id: str) -> Job | None:
    """One job as its files tell, if they do: for those who look in passing. Nothing is written, also of a lost one."""
    folder = JobFolder(home, job_id)
    if not is_job_id(job_id) or not is_there(folder):
        return None
    end = _end_of(folder)
    if end is not None and end is not _UNREADABLE:
        return _job(folder, _record(folder), end.status, end)
    keeper = keeper_of(folder)
    is_kept = keeper is not None or resuming.goes_on(folder, _record(folder) or {})
    return _supervised(_living(folder), keeper or 0) if is_kept else None


def stopped_supervisors(home: str) -> Iterator[tuple[str, int]]:
    """The jobs whose supervisor was stopped by a signal, each with the supervisor's pid."""
    for name in living_names(home):
        keeper = keeper_of(JobFolder(home, name))
        if keeper and is_stopped(keeper) and is_supervisor(keeper, name):
            yield name, keeper


def settle_all(home: str) -> None:
    """Close the books of every job whose keeper is gone: its end is written, the news of it on its way."""
    for name in living_names(home):
        folder = JobFolder(home, name)
        if keeper_of(folder) is None:
            _seen(folder, even_ended=False)


def _seen(folder: JobFolder, *, even_ended: bool, report: Report | None = None) -> Job | None:
    """A job among others: one that cannot be read, or is not ours, is reported, and hides no other."""
    try:
        return _look(folder, even_ended=even_ended) if is_there(folder) else None
    except (Damaged, StorageError) as error:
        if report is not None and os.path.lexists(folder.path):  # not collected meanwhile
            report(error)
        return None


def kept_names(home: str) -> Iterator[str]:
    """The ids of all jobs that are kept, over or not."""
    return filter(is_job_id, _listed(f"{home}/jobs"))


def living_names(home: str) -> Iterator[str]:
    """The ids of jobs that live, or that somebody has yet to finish the books of."""
    return filter(is_job_id, _listed(living_folder(home)))


def _listed(path: str) -> list[str]:
    try:
        files.check_folder(path, os.lstat(path))
        return os.listdir(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(path, error) from error


def _look(folder: JobFolder, *, even_ended: bool = True) -> Job | None:
    """A job; None if it is over, and only the living are asked for."""
    record: dict[str, object] | None = None
    for _ in range(3):
        end = _end_of(folder)
        if end is not None and end is not _UNREADABLE:
            return _over(folder, end, even_ended=even_ended)
        if (keeper := keeper_of(folder)) is not None:
            return _supervised(_living(folder), keeper)
        if end is not None:
            return _over(folder, end, even_ended=even_ended)
        record = _record(folder)
        if record is None:
            raise Damaged(folder.record, "it does not say what the job is, and nobody keeps it")
        if "resumes" in record and resuming.goes_on(folder, record):
            return _taken_up(folder, record)
        _settle(folder, record)
    # It cannot be written down here and now, and is true all the same.
    end = end_from_json(as_object((ending.decided(folder) or {}).get("end")) or {}) or _UNWRITTEN
    return _job(folder, record, end.status, end) if even_ended else None


def _record(folder: JobFolder) -> dict[str, object] | None:
    """What the job's record says; None if it cannot be read, or is of another job."""
    record = ending.read_ours(folder.record)
    return record if record is not None and record.get("id") == folder.id else None


def _job(folder: JobFolder, record: dict[str, object] | None, status: JobStatus, end: End | None = None) -> Job:
    """The job that a record tells of; where there is none, what is known without one."""
    job = None if record is None else job_from_json(record, status=status, end=end)
    if job is not None and record is not None:
        return _with_facts(folder, record, job)
    at = None if end is None else end.at or None
    return Job(folder.id, "unknown", status, _UNKNOWN, end_time=at, output_file=folder.output, end=end)


def _end_of(folder: JobFolder) -> End | None:
    """How a job ended; None if it did not."""
    raw = ending.read_ours(folder.end)
    if raw is None and os.path.lexists(folder.end):
        raw = ending.read_ours(folder.end) or {}  # it came between the two, or cannot be read
    return None if raw is None else end_from_json(raw) or _UNREADABLE


def _over(folder: JobFolder, end: End, *, even_ended: bool) -> Job | None:
    if not even_ended:
        _finish(folder)
        return None
    if os.path.lexists(folder.notice):
        _finish(folder)
    job = _job(folder, _record(folder), end.status, end)
    is_dismissed = os.path.lexists(folder.dismissed)
    return job._replace(notified=not os.path.lexists(folder.notice), is_dismissed=is_dismissed)


def _finish(folder: JobFolder) -> None:
    """Do what is left to do of an end, if its keeper died over it."""
    if keeper_of(folder) is None:
        _settle(folder, ending.read(folder.record) or {})


def _living(folder: JobFolder) -> Job:
    record = _record(folder)
    return _job(folder, record, JobStatus.PENDING if (record or {}).get("waitsFor") else JobStatus.RUNNING)


def _supervised(job: Job, keeper: int) -> Job:
    """A living job, with what is wrong if its supervisor does not run."""
    if keeper == os.getpid() or not is_stopped(keeper):
        return job
    why = f"the program it runs in (process {keeper}) is stopped by a signal: continue it with `kill -CONT {keeper}`"
    if is_supervisor(keeper, job.id):
        why = (
            f"its supervisor (process {keeper}) is stopped by a signal, so no time limit or output cap is enforced: "
            "`taskyard doctor --fix` resumes it"
        )
    return job._replace(is_disconnected=True, facts={**job.facts, "disconnected": {"why": why}})


def _taken_up(folder: JobFolder, record: dict[str, object]) -> Job:
    """A job whose work goes on elsewhere, with another keeper; or as one that nobody can follow from here."""
    if not (why := resuming.take_up(folder, record)):
        return _living(folder)
    job = _job(folder, record, JobStatus.PENDING if record.get("waitsFor") else JobStatus.RUNNING)
    return job._replace(is_disconnected=True, facts={**job.facts, **resuming.unfollowed(record, why)})


def _with_facts(folder: JobFolder, record: dict[str, object], job: Job) -> Job:
    """A job with what its own process says of it, where it is of a kind that says something."""
    if not record.get("hasFacts"):
        return job
    from taskyard.runtime.facts import shown

    facts = shown(folder)
    if job.type == "local_agent":
        from taskyard.runtime.agent_reports import reported

        facts |= reported(folder)
    asks = facts.pop("needsInput", False) is True and not job.is_final
    is_cut_off = not job.is_final and as_object(facts.get("disconnected")) is not None
    if not is_cut_off:
        facts.pop("disconnected", None)
    return job._replace(facts={**job.facts, **facts}, needs_input=job.needs_input or asks, is_disconnected=is_cut_off)


def _settle(folder: JobFolder, record: dict[str, object]) -> None:
    from taskyard.runtime.lost import settle

    try:
        settle(folder, record)
    except StorageError:
        pass  # we may only look: the next who may write will settle it
