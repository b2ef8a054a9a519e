"""Finding a run again: by its own id, or by any job that worked on it."""

from __future__ import annotations

import os

from taskyard.errors import BadJobId, BadValue, Conflict, JobNotFound, OutputGone
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.looking import look
from taskyard.shapes import as_object
from taskyard.workflows import plan, reading
from taskyard.workflows.journal import Run
from taskyard.workflows.model import COMPLETED, CUT_SHORT, FAILED, RUNNING, WAITING, StepState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import Job
    from taskyard.workflows.model import Definition


def find(home: str, job_id: str) -> tuple[Run, dict[str, object]]:
    """The run, and what it was asked for.

    Raises:
        BadJobId, JobNotFound: there is none.
        BadValue: the job is no workflow.
        Conflict: the job is known, and what it did was taken by `taskyard gc`.
    """
    if not is_job_id(job_id):
        raise BadJobId(job_id)
    run = Run(home, job_id)
    if run.is_there() and run.jobs():
        return run, run.wanted()
    job = look(home, job_id)
    if job.type != "local_workflow":
        raise BadValue("The job", job_id, f"a workflow, or a run of one; it is a {job.type}")
    arguments = as_object((read(JobFolder(home, job_id).arguments) or {}).get("arguments"))
    if arguments is None:
        raise Conflict(f"What the workflow {job_id} was is no longer known: `taskyard gc` took it. Run its file again.")
    if is_job_id(earlier := arguments.get("resumes")):
        run = Run(home, earlier)
    return run, arguments


def worker_of(home: str, run: Run, job_id: str) -> Job | None:
    """The job that works on a run now; None if there is none."""
    for each in dict.fromkeys([*reversed(run.jobs()), job_id]):
        try:
            job = look(home, each)
        except (JobNotFound, OutputGone):
            continue
        if not job.is_final:
            return job
    return None


def standing(run: Run, workflow: Definition) -> dict[str, StepState]:
    """How each step of a run stands by its journal."""
    ids = [step.id for step in workflow.steps]
    return run.states(ids) if run.is_there() else {step_id: StepState() for step_id in ids}


def as_left(home: str, states: Mapping[str, StepState]) -> dict[str, StepState]:
    """The same of a run that nobody works on: what it left at work has ended meanwhile, or was cut short."""
    return {step_id: _as_left(home, state) for step_id, state in states.items()}


def _as_left(home: str, state: StepState) -> StepState:
    if state.status != RUNNING or state.job is None:
        return state
    try:
        job = look(home, state.job)
    except (JobNotFound, OutputGone):
        return StepState(why="was announced, and never begun")
    if job.end is None:
        return state
    if job.end.cause in CUT_SHORT:
        return StepState(WAITING, job.id, why="was cut short, and runs again with `resume`")
    is_good = job.status.value == COMPLETED
    return StepState(COMPLETED if is_good else FAILED, job.id, job.end.exit_code, why="ended unnoticed")


def all_runs(home: str) -> list[Run]:
    """Every run that is known, the one touched last first."""
    try:
        with os.scandir(f"{home}/workflows") as entries:
            found = [(entry.stat().st_mtime, entry.name) for entry in entries if is_job_id(entry.name)]
    except FileNotFoundError:
        return []
    runs = (Run(home, name) for _, name in sorted(found, reverse=True))
    return [run for run in runs if run.is_there() and run.jobs()]


def unfinished(
    home: str, job_id: str, *, failed: bool, changes: Mapping[str, object] | None = None
) -> tuple[str, dict[str, object]]:
    """The id of a run that somebody may go on with, and what it was asked for, with `changes` to that.

    Raises:
        Conflict: somebody works on it, or nothing is left to do.
    """
    run, wanted = find(home, job_id)
    try:
        worker = worker_of(home, run, job_id)
        if worker is not None:
            raise Conflict(f"Job {worker.id} works on the run {run.id}: `taskyard wait {worker.id}`.")
        wanted = {**wanted, **(changes or {})}
        workflow, _ = reading.check(wanted.get("definition"), has_agents=True)
        states = standing(run, workflow)
        if all(state.is_over for state in states.values()):
            again = plan.to_do_again(workflow, states)
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
