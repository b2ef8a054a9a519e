"""Journal of workflow runs in `$TASKYARD_HOME/workflows/<run>/`, from which any process can resume.

A run has the id of the job that started it; it is found by that id, or by any job that worked on it. The
journal is append-only:

    workflow    the spec; the last one counts              run     a job starts or resumes the run
    begin       a step, and the id of its job: written     end     how a step ended
                before that job is created                 skip    a step does not run, and why
    again       steps to retry                             done    the run is over

The process that works on a run holds its lock; the kernel releases it when that process exits.
"""

from __future__ import annotations

import json
import os

from taskyard.core.files import check_private_folder, make_private_folder
from taskyard.core.system import now_ms
from taskyard.core.values import as_list, as_object, as_text
from taskyard.errors import BadJobId, BadValue, Conflict, Damaged, JobNotFound, OutputGone
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.gc import remove_folder
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import is_job_id
from taskyard.jobs.query import read_job
from taskyard.jobs.workflow import model, parse
from taskyard.jobs.workflow.model import COMPLETED, FAILED, INTERRUPTED, RUNNING, SKIPPED, WAITING, StepState
from taskyard.storage.journal import Journal
from taskyard.storage.locks import RangeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.jobs.model import Job
    from taskyard.jobs.workflow.model import Definition


#: Seconds to wait for the lock of the previous process, which may just be being killed.
_LOCK_TIMEOUT = 10.0


class Run:
    """The directory of one run."""

    def __init__(self, home: str, run_id: str) -> None:
        self.home, self.id = home, run_id
        self.path = f"{home}/workflows/{run_id}"
        self._journal = Journal(f"{self.path}/journal")

    def is_there(self) -> bool:
        """Return whether the run has a journal."""
        try:
            check_private_folder(f"{self.path}/journal")
        except FileNotFoundError:
            return False
        return True

    def hold(self) -> RangeLock:
        """Lock the run until the returned lock is closed.

        Raises:
            Busy: Another process works on it.
        """
        make_private_folder(f"{self.path}/journal")
        lock = RangeLock(f"{self.path}/lock")
        try:
            lock.take(0, timeout=_LOCK_TIMEOUT, what=f"the run {self.id}")
        except BaseException:
            lock.close()
            raise
        return lock

    def note(self, do: str, **facts: object) -> None:
        """Append an entry."""
        self._journal.append(json.dumps({"do": do, "at": now_ms(), **facts}).encode("utf-8", "surrogatepass"))

    def entries(self) -> list[dict[str, object]]:
        """Return the entries in order; partially written ones are left out."""
        return [entry for _, entry in self._journal.since()]

    def wanted(self) -> dict[str, object]:
        """Return the spec of the run.

        Raises:
            Damaged: The journal has none.
        """
        for entry in reversed(self.entries()):
            if entry.get("do") == "workflow" and (found := as_object(entry.get("wanted"))) is not None:
                return found
        raise Damaged(self.path, "it does not describe the workflow")

    def jobs(self) -> list[str]:
        """Return the jobs that worked on the run, in order."""
        return [job for entry in self.entries() if entry.get("do") == "run" and is_job_id(job := entry.get("job"))]

    def states(self, step_ids: Iterable[str]) -> dict[str, StepState]:
        """Return the state of each step according to the journal."""
        found = {step_id: StepState() for step_id in step_ids}
        for entry in self.entries():
            if entry.get("do") == "again":
                named = as_list(entry.get("steps")) or []
                found.update({str(step_id): StepState() for step_id in named if step_id in found})
            elif (step_id := as_text(entry.get("step"))) in found:
                found[step_id] = _apply_entry(found[step_id], entry)
        return found

    def close(self) -> None:
        """Close the open file."""
        self._journal.close()


def _apply_entry(state: StepState, entry: Mapping[str, object]) -> StepState:
    """Return the state of a step after an entry."""
    do, at = entry.get("do"), entry.get("at")
    when = at if isinstance(at, int) else 0
    if do == "begin" and is_job_id(job := entry.get("job")):
        return StepState(RUNNING, job, at=when)
    if do == "skip":
        return StepState(SKIPPED, why=as_text(entry.get("why")), at=when)
    if do == "end" and entry.get("status") in (COMPLETED, FAILED):
        code = entry.get("exit_code")
        return state._replace(
            status=as_text(entry.get("status")),
            exit_code=code if isinstance(code, int) else None,
            output=as_text(entry.get("output")),
            why=as_text(entry.get("why")),
            at=when,
        )
    return state


def remove_old_runs(home: str, age_limit: float) -> None:
    """Remove runs without a change for `age_limit` seconds, as for ended jobs."""
    folder = f"{home}/workflows"
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in filter(is_job_id, names):
        path = f"{folder}/{name}"
        try:
            newest = max(os.lstat(f"{path}/journal/{part}").st_mtime for part in os.listdir(f"{path}/journal"))
        except (OSError, ValueError):
            continue  # being created, or removed
        if now_ms() / 1000 - newest > age_limit:
            _remove_run(path)


def _remove_run(path: str) -> None:
    with RangeLock(f"{path}/lock") as lock:
        if lock.try_take(0):
            remove_folder(path)


def find_run(home: str, job_id: str) -> tuple[Run, dict[str, object]]:
    """Find a run by its id or by a job; return it and its spec.

    Raises:
        BadJobId, JobNotFound: There is none.
        BadValue: The job is not a workflow.
        Conflict: The job is known, but `taskyard gc` removed its spec.
    """
    if not is_job_id(job_id):
        raise BadJobId(job_id)
    run = Run(home, job_id)
    if run.is_there() and run.jobs():
        return run, run.wanted()
    job = read_job(home, job_id)
    if job.type != "local_workflow":
        raise BadValue("The job", job_id, f"a workflow, or a run of one; it is a {job.type}")
    arguments = as_object((read_json(JobPaths(home, job_id).arguments) or {}).get("arguments"))
    if arguments is None:
        raise Conflict(f"The definition of workflow {job_id} was removed by `taskyard gc`. Run its file again.")
    if is_job_id(earlier := arguments.get("resumes")):
        run = Run(home, earlier)
    return run, arguments


def active_job(home: str, run: Run, job_id: str) -> Job | None:
    """Return the job that works on a run now; None if there is none."""
    for each in dict.fromkeys([*reversed(run.jobs()), job_id]):
        try:
            job = read_job(home, each)
        except (JobNotFound, OutputGone):
            continue
        if not job.is_final:
            return job
    return None


def step_states(run: Run, workflow: Definition) -> dict[str, StepState]:
    """Return the state of each step of a run; all waiting, if it has no journal."""
    ids = [step.id for step in workflow.steps]
    return run.states(ids) if run.is_there() else {step_id: StepState() for step_id in ids}


def reconcile_states(home: str, states: Mapping[str, StepState]) -> dict[str, StepState]:
    """Update the states of a run without an active job: running steps have ended meanwhile, or were interrupted."""
    return {step_id: _reconcile_state(home, state) for step_id, state in states.items()}


def _reconcile_state(home: str, state: StepState) -> StepState:
    if state.status != RUNNING or state.job is None:
        return state
    try:
        job = read_job(home, state.job)
    except (JobNotFound, OutputGone):
        return StepState(why="was planned but never started")
    if job.end is None:
        return state
    if job.end.cause in INTERRUPTED:
        return StepState(WAITING, job.id, why="was interrupted; `resume` runs it again")
    is_good = job.status.value == COMPLETED
    return StepState(
        COMPLETED if is_good else FAILED, job.id, job.end.exit_code, why="ended while the workflow did not run"
    )


def list_runs(home: str) -> list[Run]:
    """Return every run, most recently changed first."""
    try:
        with os.scandir(f"{home}/workflows") as entries:
            found = [(entry.stat().st_mtime, entry.name) for entry in entries if is_job_id(entry.name)]
    except FileNotFoundError:
        return []
    runs = (Run(home, name) for _, name in sorted(found, reverse=True))
    return [run for run in runs if run.is_there() and run.jobs()]


def resumable_run(
    home: str, job_id: str, *, failed: bool, changes: Mapping[str, object] | None = None
) -> tuple[str, dict[str, object]]:
    """Return the id of a run that can be resumed, and its spec with `changes` applied.

    Args:
        home: `$TASKYARD_HOME`.
        job_id: The run, or a job that worked on it.
        failed: Failed steps are to be retried.
        changes: Fields of the spec to replace.

    Raises:
        Conflict: Another job works on it, or nothing is left to do.
    """
    run, wanted = find_run(home, job_id)
    try:
        worker = active_job(home, run, job_id)
        if worker is not None:
            raise Conflict(f"Job {worker.id} works on the run {run.id}: `taskyard wait {worker.id}`.")
        wanted = {**wanted, **(changes or {})}
        workflow, _ = parse.parse_definition(wanted.get("definition"), has_agents=True)
        states = step_states(run, workflow)
        if all(state.is_over for state in states.values()):
            again = model.steps_to_retry(workflow, states)
            if not again:
                raise Conflict(f"Nothing of the run {run.id} is left to do: every step is over.")
            if not failed:
                raise Conflict(
                    f"Every step of the run {run.id} is over. `taskyard workflow resume --failed {run.id}` runs"
                    f" {', '.join(again)} again."
                )
    finally:
        run.close()
    return run.id, wanted
