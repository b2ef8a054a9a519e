"""
What happened in a run, on disk: `$TASKYARD_HOME/workflows/<run>/`. Any process can go on from it.

A run has the id of the job that began it. Entries are only ever added:

    workflow    what is to be done; the last one counts     run     a job takes the run up
    begin       a step, and the id its job is going to     end     how a step ended
                have: written before there is such a job   skip    a step does not run, and why
    again       steps that get another chance              done    the run is over

The lock belongs to the process that works on the run; the kernel frees it when that dies.
"""

from __future__ import annotations

import json
import os

from taskyard.clock import now_ms
from taskyard.disk.files import check_private_folder, make_private_folder
from taskyard.disk.journal import Journal
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import Damaged
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.sweeping import remove_folder
from taskyard.shapes import as_list, as_object, as_text
from taskyard.workflows.model import COMPLETED, FAILED, RUNNING, SKIPPED, StepState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Seconds a run waits for the process before it, whose death may just have been ordered.
_PATIENCE = 10.0


class Run:
    """One run's folder."""

    def __init__(self, home: str, run_id: str) -> None:
        self.home, self.id = home, run_id
        self.path = f"{home}/workflows/{run_id}"
        self._journal = Journal(f"{self.path}/journal")

    def is_there(self) -> bool:
        """Whether anything was written of it."""
        try:
            check_private_folder(f"{self.path}/journal")
        except FileNotFoundError:
            return False
        return True

    def hold(self) -> RangeLock:
        """Take the run, for as long as the lock is not closed.

        Raises:
            Busy: another process works on it.
        """
        make_private_folder(f"{self.path}/journal")
        lock = RangeLock(f"{self.path}/lock")
        try:
            lock.take(0, timeout=_PATIENCE, what=f"the run {self.id}")
        except BaseException:
            lock.close()
            raise
        return lock

    def note(self, do: str, **facts: object) -> None:
        """Add what happened."""
        self._journal.append(json.dumps({"do": do, "at": now_ms(), **facts}).encode("utf-8", "surrogatepass"))

    def entries(self) -> list[dict[str, object]]:
        """What happened, in order; what was not written whole did not."""
        return [entry for _, entry in self._journal.since()]

    def wanted(self) -> dict[str, object]:
        """What the run was asked for.

        Raises:
            Damaged: it does not say.
        """
        for entry in reversed(self.entries()):
            if entry.get("do") == "workflow" and (found := as_object(entry.get("wanted"))) is not None:
                return found
        raise Damaged(self.path, "it does not say what the workflow is")

    def jobs(self) -> list[str]:
        """The jobs that took the run up, in order."""
        return [job for entry in self.entries() if entry.get("do") == "run" and is_job_id(job := entry.get("job"))]

    def states(self, step_ids: Iterable[str]) -> dict[str, StepState]:
        """How each step stands by what was written."""
        found = {step_id: StepState() for step_id in step_ids}
        for entry in self.entries():
            if entry.get("do") == "again":
                named = as_list(entry.get("steps")) or []
                found.update({str(step_id): StepState() for step_id in named if step_id in found})
            elif (step_id := as_text(entry.get("step"))) in found:
                found[step_id] = _after(found[step_id], entry)
        return found

    def close(self) -> None:
        """Let go of the open file."""
        self._journal.close()


def _after(state: StepState, entry: Mapping[str, object]) -> StepState:
    """How a step stands after what an entry tells."""
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


def forget_old(home: str, age_limit: float) -> None:
    """Remove runs that nobody touched for `age_limit` seconds, as ended jobs are."""
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
            continue  # being made, or gone
        if now_ms() / 1000 - newest > age_limit:
            _forget(path)


def _forget(path: str) -> None:
    with RangeLock(f"{path}/lock") as lock:
        if lock.try_take(0):
            remove_folder(path)
