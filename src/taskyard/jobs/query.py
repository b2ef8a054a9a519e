"""Read jobs from their files and the kernel: status, lookup, job trees and jobs of a task.

    end.json exists           the job has ended, and this is how
    a live supervisor         it runs, or waits in the start queue
    neither                   it is lost: the first reader to notice records that, once

Live jobs are listed by the names in `jobs/.living`, so the cost does not depend on the number of ended
jobs. A name that stays there although its supervisor is gone is unfinished work of a killed process; the
next reader completes it.

A resumable job's work runs elsewhere: a reader that finds it without a supervisor starts another one. The
record has what a supervisor needs (`resumes`), except the environment, which is the reader's. If required
variables are missing there, the job stays as it is and is shown as disconnected.

`facts.resumes` of a job names the ended agent job whose work it continues.
"""

from __future__ import annotations

import json
import os
import time

from taskyard.core import files
from taskyard.core.system import now_ms
from taskyard.core.values import as_list, as_number, as_object, folder_name, is_id, nearest
from taskyard.errors import (
    BadJobId,
    BadValue,
    Busy,
    Damaged,
    JobNotFound,
    OutputGone,
    StorageError,
    TaskyardError,
    UsageError,
    quote_value,
)
from taskyard.jobs import exit_record, job_dir
from taskyard.jobs.ended_index import find_entry, load_ended
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import (
    JobPaths,
    is_stopped,
    is_supervisor,
    job_exists,
    live_folder,
    supervisor_pid,
)
from taskyard.jobs.model import End, Job, JobStatus, end_from_json, is_job_id, job_from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


#: Request fields kept in the record; the first ones only matter until the job has started.
_UNTIL_BEGUN = ("slots", "starts_per_minute", "after", "after_any")
_RESUME_FIELDS = (
    *_UNTIL_BEGUN, "timeout", "output_cap", "grace", "stdin", "retry_delay", "event_segments", "on_parent_exit",
    "starter",
)  # fmt: skip

#: Seconds that another reader may take to start a supervisor, on a busy machine.
_START_TIMEOUT = 10.0


def with_resume_fields(request: Mapping[str, object], needs_env: Sequence[str]) -> dict[str, object]:
    """Return a request whose record states how to supervise the job again; no variable values are included."""
    resume_fields = {name: request[name] for name in _RESUME_FIELDS} | {"env": list(needs_env)}
    record = as_object(request["record"]) or {}
    return {**request, "record": {**record, "resumes": resume_fields}, "resumes": True}


def is_resumable(folder: JobPaths, record: Mapping[str, object]) -> bool:
    """Return whether a job without a supervisor has work running elsewhere, and its end is not decided."""
    from taskyard.jobs.exit_record import read_decision

    return "resumes" in record and not os.path.lexists(folder.end) and read_decision(folder) is None


def ensure_supervisor(folder: JobPaths, record: Mapping[str, object]) -> str:
    """Start a supervisor if the job has none; return "" or why it cannot be. Of concurrent callers, one does."""
    resume_fields = as_object(record.get("resumes")) or {}
    missing = [str(name) for name in as_list(resume_fields.get("env")) or [] if not os.environ.get(str(name))]
    if missing:
        return f"no process follows it: ${missing[0]} is not set here"
    from taskyard.storage.locks import RangeLock

    try:
        with RangeLock(f"{folder.path}/resuming.lock") as lock:
            lock.take(0, timeout=_START_TIMEOUT, what=f"job {folder.id}")
            if job_dir.supervisor_pid(folder) is None:
                from taskyard.jobs.start import start_supervisor

                start_supervisor(_build_request(folder, record, resume_fields))
    except (StorageError, Busy) as error:
        return f"no process follows it: {error}"
    return ""


def disconnected_facts(record: Mapping[str, object], why: str) -> dict[str, object]:
    """Return the facts of a job that cannot be followed from here."""
    return {"disconnected": {"since": record.get("startTime") or now_ms(), "why": why}}


def _build_request(
    folder: JobPaths, record: Mapping[str, object], resume_fields: Mapping[str, object]
) -> dict[str, object]:
    from taskyard.jobs.start import command_plan

    has_begun = not record.get("waitsFor")
    kept = {
        name: resume_fields[name]
        for name in _RESUME_FIELDS
        if name in resume_fields and not (has_begun and name in _UNTIL_BEGUN)
    }
    task = record.get("task")
    return {
        "id": folder.id,
        "home": folder.home,
        "plan": command_plan(
            folder.home, None, folder.id, argv=(), cwd="/", task=task if isinstance(task, str) else None
        ),  # the folder where it was started may be gone by now
        "record": {},
        "parent": job_dir.supervised_job() or os.environ.get("TASKYARD_JOB") or None,
        "arguments": {},
        **kept,
        "resumes": True,
        "again": True,
    }


if TYPE_CHECKING:
    Report = Callable[[TaskyardError], object]

#: Stands for an end that exists and cannot be parsed: it happened, and is not written again.
_UNREADABLE = End("error", error="how it ended cannot be read", proof="best_effort")

#: Description of a job whose record cannot be read: it can be stopped and waited for all the same.
_UNKNOWN = "(its record cannot be read)"

#: Stands for an end that cannot be written: the disk is full or read-only.
_UNWRITTEN = End("lost", error="its supervisor is gone", proof="best_effort")


def read_job(home: str, job_id: str) -> Job:
    """Return one job as it is now.

    Raises:
        BadJobId: no job can have this id.
        JobNotFound: no job ever had this id; names the nearest.
        Damaged: it has no supervisor, and its record cannot be read.
        StorageError: its folder or a file in it was replaced by something else.
    """
    if not is_job_id(job_id):
        raise BadJobId(job_id)
    folder = JobPaths(home, job_id)
    found = (_read_current(folder) if job_exists(folder) else None) or load_ended(home, job_id)
    if found is None:
        raise JobNotFound(job_id, nearest=nearest(job_id, all_ids(home)))
    return found


def list_jobs(home: str, *, ended: bool = False, report: Report | None = None) -> list[Job]:
    """Return live jobs, oldest first; with `ended` also ended ones. `report` receives errors of unreadable ones."""
    names = all_ids(home) if ended else live_ids(home)
    found = [
        job
        for name in names
        if (job := _try_read(JobPaths(home, name), include_ended=ended, report=report)) is not None
    ]
    return sorted(found, key=lambda job: (job.start_time, job.id))


def find_damage(home: str) -> Iterator[Damaged | StorageError]:
    """Yield damage in job folders, of ended jobs too. Writes nothing."""
    for name in all_ids(home):
        folder = JobPaths(home, name)
        try:
            if not job_exists(folder):
                continue
            if _read_record(folder) is None and job_exists(folder):
                yield Damaged(folder.record, "it does not describe the job")
            if _read_end(folder) is _UNREADABLE:
                yield Damaged(folder.end, "it does not record how the job ended")
        except StorageError as error:
            yield error


def peek(home: str, job_id: str) -> Job | None:
    """Return one job as its files show it, None if they do not. Writes nothing, even for a lost job."""
    folder = JobPaths(home, job_id)
    if not is_job_id(job_id) or not job_exists(folder):
        return None
    end = _read_end(folder)
    if end is not None and end is not _UNREADABLE:
        return _build_job(folder, _read_record(folder), end.status, end)
    keeper = supervisor_pid(folder)
    is_kept = keeper is not None or is_resumable(folder, _read_record(folder) or {})
    return _check_supervisor(_live_job(folder), keeper or 0) if is_kept else None


def stopped_supervisors(home: str) -> Iterator[tuple[str, int]]:
    """Yield the jobs whose supervisor was stopped by a signal, each with the supervisor's pid."""
    for name in live_ids(home):
        keeper = supervisor_pid(JobPaths(home, name))
        if keeper and is_stopped(keeper) and is_supervisor(keeper, name):
            yield name, keeper


def recover_all(home: str) -> None:
    """Recover every job whose supervisor is gone: its exit record is written and its notice sent."""
    for name in live_ids(home):
        folder = JobPaths(home, name)
        if supervisor_pid(folder) is None:
            _try_read(folder, include_ended=False)


def _try_read(folder: JobPaths, *, include_ended: bool, report: Report | None = None) -> Job | None:
    """Read one job of many: an unreadable or foreign one is reported, and does not hide the others."""
    try:
        return _read_current(folder, include_ended=include_ended) if job_exists(folder) else None
    except (Damaged, StorageError) as error:
        if report is not None and os.path.lexists(folder.path):  # not collected meanwhile
            report(error)
        return None


def all_ids(home: str) -> Iterator[str]:
    """Return the ids of all stored jobs, ended or not."""
    return filter(is_job_id, _query_listed(f"{home}/jobs"))


def live_ids(home: str) -> Iterator[str]:
    """Return the ids of jobs that are live or not fully recorded yet."""
    return filter(is_job_id, _query_listed(live_folder(home)))


def _query_listed(path: str) -> list[str]:
    try:
        files.check_folder(path, os.lstat(path))
        return os.listdir(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(path, error) from error


def _read_current(folder: JobPaths, *, include_ended: bool = True) -> Job | None:
    """Return a job; None if it has ended and `include_ended` is false."""
    record: dict[str, object] | None = None
    for _ in range(3):
        end = _read_end(folder)
        if end is not None and end is not _UNREADABLE:
            return _ended_job(folder, end, include_ended=include_ended)
        if (keeper := supervisor_pid(folder)) is not None:
            return _check_supervisor(_live_job(folder), keeper)
        if end is not None:
            return _ended_job(folder, end, include_ended=include_ended)
        record = _read_record(folder)
        if record is None:
            raise Damaged(folder.record, "it does not describe the job, and no supervisor runs")
        if "resumes" in record and is_resumable(folder, record):
            return _resumed_job(folder, record)
        _recover(folder, record)
    # The end cannot be written here and now, and is true all the same.
    end = end_from_json(as_object((exit_record.read_decision(folder) or {}).get("end")) or {}) or _UNWRITTEN
    return _build_job(folder, record, end.status, end) if include_ended else None


def _read_record(folder: JobPaths) -> dict[str, object] | None:
    """Return the job's record; None if it cannot be read or is another job's."""
    record = exit_record.read_own_json(folder.record)
    return record if record is not None and record.get("id") == folder.id else None


def _build_job(folder: JobPaths, record: dict[str, object] | None, status: JobStatus, end: End | None = None) -> Job:
    """Return the job of a record; without a record, what is known anyway."""
    job = None if record is None else job_from_json(record, status=status, end=end)
    if job is not None and record is not None:
        return _with_facts(folder, record, job)
    at = None if end is None else end.at or None
    return Job(folder.id, "unknown", status, _UNKNOWN, end_time=at, output_file=folder.output, end=end)


def _read_end(folder: JobPaths) -> End | None:
    """Return how a job ended; None if it has not."""
    raw = exit_record.read_own_json(folder.end)
    if raw is None and os.path.lexists(folder.end):
        raw = exit_record.read_own_json(folder.end) or {}  # written between the two reads, or unreadable
    return None if raw is None else end_from_json(raw) or _UNREADABLE


def _ended_job(folder: JobPaths, end: End, *, include_ended: bool) -> Job | None:
    if not include_ended:
        _finish_end(folder)
        return None
    if os.path.lexists(folder.notice):
        _finish_end(folder)
    job = _build_job(folder, _read_record(folder), end.status, end)
    is_dismissed = os.path.lexists(folder.dismissed)
    return job._replace(notified=not os.path.lexists(folder.notice), is_dismissed=is_dismissed)


def _finish_end(folder: JobPaths) -> None:
    """Complete the recording of an end if its supervisor was killed meanwhile."""
    if supervisor_pid(folder) is None:
        _recover(folder, exit_record.read_json(folder.record) or {})


def _live_job(folder: JobPaths) -> Job:
    record = _read_record(folder)
    return _build_job(folder, record, JobStatus.PENDING if (record or {}).get("waitsFor") else JobStatus.RUNNING)


def _check_supervisor(job: Job, keeper: int) -> Job:
    """Return a live job, marked as disconnected if its supervisor is stopped by a signal."""
    if keeper == os.getpid() or not is_stopped(keeper):
        return job
    why = f"the program it runs in (process {keeper}) is stopped by a signal: continue it with `kill -CONT {keeper}`"
    if is_supervisor(keeper, job.id):
        why = (
            f"its supervisor (process {keeper}) is stopped by a signal, so no time limit or output cap is enforced: "
            "`taskyard doctor --fix` resumes it"
        )
    return job._replace(is_disconnected=True, facts={**job.facts, "disconnected": {"why": why}})


def _resumed_job(folder: JobPaths, record: dict[str, object]) -> Job:
    """Return a resumable job with a new supervisor, or as disconnected if none can be started here."""
    if not (why := ensure_supervisor(folder, record)):
        return _live_job(folder)
    job = _build_job(folder, record, JobStatus.PENDING if record.get("waitsFor") else JobStatus.RUNNING)
    return job._replace(is_disconnected=True, facts={**job.facts, **disconnected_facts(record, why)})


def _with_facts(folder: JobPaths, record: dict[str, object], job: Job) -> Job:
    """Return a job with the facts that its own process wrote, if it is of a kind with facts."""
    if not record.get("hasFacts"):
        return job
    from taskyard.jobs.exit_record import read_facts

    facts = read_facts(folder)
    if job.type == "local_agent":
        from taskyard.jobs.agent_reports import load_reported

        facts |= load_reported(folder)
    asks = facts.pop("needsInput", False) is True and not job.is_final
    is_cut_off = not job.is_final and as_object(facts.get("disconnected")) is not None
    if not is_cut_off:
        facts.pop("disconnected", None)
    return job._replace(facts={**job.facts, **facts}, needs_input=job.needs_input or asks, is_disconnected=is_cut_off)


def _recover(folder: JobPaths, record: dict[str, object]) -> None:
    from taskyard.jobs.recovery import recover_lost

    try:
        recover_lost(folder, record)
    except StorageError:
        pass  # read-only here: the next reader that may write completes it


def find_folder(home: str, job_id: str) -> JobPaths:
    """Return the paths of the job with this id.

    Raises:
        BadJobId: no job can have this id; nothing was searched.
        OutputGone: it ended, and gc removed its folder.
        JobNotFound: no job ever had this id; names the nearest.
    """
    if not is_job_id(job_id):
        raise BadJobId(job_id)
    folder = JobPaths(home, job_id)
    if os.path.lexists(folder.path):
        return folder
    known = find_entry(home, job_id)
    if known is not None:
        code = known.get("exitCode")
        raise OutputGone(
            job_id,
            status=str(known.get("status")),
            cause=str(known.get("cause")),
            exit_code=code if isinstance(code, int) else None,
        )
    raise JobNotFound(job_id, nearest=nearest(job_id, _list_ids(home)))


def _list_ids(home: str) -> list[str]:
    try:
        return [name for name in os.listdir(f"{home}/jobs") if is_job_id(name)]
    except OSError:
        return []


#: Refers to the job that was started most recently in this project.
LAST = "last"

#: Fewest characters of an id prefix: the first one alone only states the kind.
_MIN_PREFIX = 2

#: Most candidates that an error lists.
_MAX_NAMED = 5


def resolve(text: str, known: Callable[[], Iterable[Job]], *, project: str = "") -> str:
    """Return the id of the job that `text` (id, prefix of one, name or `last`) refers to.

    `known` lists all jobs and is called only if `text` is no id. A name refers to the job that runs under
    it, else to the newest one that did.

    Raises:
        UsageError: several jobs match.
        BadJobId: `text` can be neither an id nor a prefix of one, and no job has that name.
        JobNotFound: no job matches; names the nearest.
    """
    if is_job_id(text):
        return text
    jobs = sorted(known(), key=lambda job: job.start_time, reverse=True)
    if text == LAST:
        return _last_job(jobs, project)
    named = [job for job in jobs if job.description == text]
    running = [job for job in named if not job.is_final]
    if len(running) > 1:
        raise _ambiguous(text, running)
    if named:
        return (running or named)[0].id
    starting = [job for job in jobs if len(text) >= _MIN_PREFIX and job.id.startswith(text)]
    if len(starting) > 1:
        raise _ambiguous(text, starting)
    if starting:
        return starting[0].id
    if is_job_id(text.ljust(9, "0")):
        raise JobNotFound(text, nearest=nearest(text, [job.id for job in jobs]))
    raise BadJobId(text)


def _last_job(jobs: Sequence[Job], project: str) -> str:
    for job in jobs:
        if not project or job.project in ("", project):
            return job.id
    raise JobNotFound(LAST, nearest=())


def _ambiguous(text: str, jobs: Sequence[Job]) -> UsageError:
    some = ", ".join(f"{job.id} ({quote_value(job.description)})" for job in jobs[:_MAX_NAMED])
    more = f" and {len(jobs) - _MAX_NAMED} more" if len(jobs) > _MAX_NAMED else ""
    return UsageError(f"{quote_value(text)} fits {len(jobs)} jobs: {some}{more}. Use a full id.")


#: First characters of the ids of resumable jobs: agents here, main conversations, agents elsewhere.
_RESUMABLE = ("a", "s", "r")


def latest_resume(home: str, job_id: str) -> str | None:
    """Return the last job in the chain that resumes `job_id`; None if none does. Reads every agent's record."""
    if not job_id.startswith(_RESUMABLE):
        return None
    after: dict[str, tuple[float, str]] = {}
    for name in all_ids(home):
        record = read_json(JobPaths(home, name).record) if name.startswith(_RESUMABLE) else None
        earlier = (as_object((record or {}).get("facts")) or {}).get("resumes")
        if isinstance(earlier, str):
            at = as_number((record or {}).get("startTime")) or 0
            after[earlier] = max(after.get(earlier, (0, "")), (at, name))
    found, seen = job_id, {job_id}
    while (following := after.get(found)) is not None and following[1] not in seen:
        found = following[1]
        seen.add(found)
    return found if found != job_id else None


#: Environment variable with the task a process works on: `release/7`, a list and an id.
TASK_VARIABLE = "TASKYARD_TASK"

#: Job fact, in queries by task: the part of the job spent on that task.
PART_FACT = "part"

#: Most jobs that one query reads.
MAX_JOBS = 10_000


def check_task(task: str) -> str:
    """Return a task reference as jobs store it: the list's folder and the id.

    Raises:
        BadValue: it is no task reference.
    """
    name, sign, task_id = task.rpartition("/")
    if not sign or not is_id(task_id) or not name or len(name) > 200 or folder_name("a list", name) != name:
        raise BadValue("The task", task[:300], "a list and an id, such as release/7")
    return task


def record_task(home: str, task: str, job_id: str) -> None:
    """Record that a job is started for a task. A failure does not prevent the start."""
    try:
        folder = _task_folder(home, task)
        files.make_private_folder(folder)
        files.create(f"{folder}/{job_id}", b"")
    except (FileExistsError, StorageError):
        pass


def record_part(home: str, task: str, job_id: str, part: Mapping[str, object]) -> None:
    """Record the part of a job spent on one task, if it works on several."""
    try:
        folder = _task_folder(home, check_task(task))
        files.make_private_folder(folder)
        files.replace(f"{folder}/{job_id}", json.dumps(part).encode())
    except (BadValue, StorageError):
        pass


def read_part(home: str, task: str, job_id: str) -> dict[str, object] | None:
    """Return the part of a job spent on a task; None: all of it."""
    return read_json(f"{_task_folder(home, check_task(task))}/{job_id}")


def task_jobs(home: str, task: str) -> list[Job]:
    """Return the jobs started for a task, with `part` for those that work on several."""
    found = _read_jobs(home, _job_tree_listed(_task_folder(home, check_task(task))))
    parts = {job.id: read_part(home, task, job.id) for job in found}
    return [job._replace(facts={**job.facts, PART_FACT: parts[job.id]}) if parts[job.id] else job for job in found]


def remove_old(home: str, *, age: float) -> None:
    """Remove the records of a task's jobs once all of them are gone and none was added for `age` seconds.

    Raises:
        StorageError: a disk error.
    """
    before = time.time() - age
    for place in _folders(f"{home}/task-jobs"):
        for folder in _folders(place):
            names = _job_tree_listed(folder)
            if _mtime(folder) < before and not any(os.path.lexists(JobPaths(home, name).path) for name in names):
                for name in names:
                    files.remove(f"{folder}/{name}")
                _remove_if_empty(folder)
        _remove_if_empty(place)


def _folders(path: str) -> list[str]:
    """Return the folders in a folder; symlinks are skipped."""
    try:
        with os.scandir(path) as found:
            return sorted(entry.path for entry in found if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(path, error) from error


def _mtime(folder: str) -> float:
    try:
        return os.lstat(folder).st_mtime
    except OSError as error:
        raise files.storage_error(folder, error) from error


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass  # another job was recorded there just now, or a foreign file is in it


def with_descendants(home: str, jobs: Iterable[Job]) -> list[Job]:
    """Return these jobs and all jobs started inside them, at any depth."""
    found = {job.id: job for job in jobs}
    waiting = list(found)
    while waiting and len(found) < MAX_JOBS:
        inside = [name for name in _job_tree_listed(JobPaths(home, waiting.pop()).children) if name not in found]
        for job in _read_jobs(home, inside):
            found[job.id] = job
            waiting.append(job.id)
    return list(found.values())


def _read_jobs(home: str, ids: Iterable[str]) -> list[Job]:

    found: list[Job] = []
    for job_id in ids:
        try:
            found.append(read_job(home, job_id))
        except TaskyardError:
            continue  # it was never created, or cannot be read
    return found


def _job_tree_listed(folder: str) -> list[str]:
    try:
        return sorted(filter(is_job_id, os.listdir(folder)))[:MAX_JOBS]
    except OSError:
        return []  # there is none


def _task_folder(home: str, task: str) -> str:
    return f"{home}/task-jobs/{task}"
