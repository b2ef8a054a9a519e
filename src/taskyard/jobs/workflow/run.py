"""Run a workflow: start steps as jobs when their dependencies allow, and journal every change first."""

from __future__ import annotations

import asyncio

from taskyard.core.text import escape_control
from taskyard.errors import JobNotFound, TaskyardError
from taskyard.jobs import recovery
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.kind import Outcome
from taskyard.jobs.output import Output
from taskyard.jobs.workflow import model
from taskyard.jobs.workflow.model import COMPLETED, FAILED, INTERRUPTED, RUNNING, SKIPPED, StepState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.jobs.async_jobs import AsyncJobs
    from taskyard.jobs.context import JobContext
    from taskyard.jobs.kind import Spec
    from taskyard.jobs.model import End, Job
    from taskyard.jobs.workflow.expressions import Scope
    from taskyard.jobs.workflow.journal import Run
    from taskyard.jobs.workflow.model import Definition, Step

    MakeSpec = Callable[[Step, Scope], Spec]

#: Bytes of a step's output available to other steps: it must fit into an environment variable.
MAX_STEP_OUTPUT = 32_768

#: Lines of a failed step's output repeated in the log.
_FAILURE_LINES = 10

#: Seconds to wait for our own stop after a step was stopped: both may be one stop of the workflow.
_STOP_DELAY = 1.0

#: Seconds for jobs of an interrupted run to end.
_STOP_TIMEOUT = 60.0


class WorkflowRunner:
    """Executes one run, in the process of the job that works on it."""

    def __init__(
        self,
        context: JobContext,
        run: Run,
        workflow: Definition,
        env: Mapping[str, str],
        jobs: AsyncJobs,
        make_spec: MakeSpec,
    ) -> None:
        self._context, self._run, self._workflow, self._env = context, run, workflow, env
        self._jobs, self._make_spec = jobs, make_spec
        self._states = run.states(step.id for step in workflow.steps)
        self._at_work: dict[asyncio.Task[None], str] = {}

    async def go(self) -> Outcome:
        """Run every step that has not run before; return the outcome."""
        try:
            await self._take_over()
            self._advance()
            while self._at_work:
                done, _ = await asyncio.wait(self._at_work, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del self._at_work[task]
                    task.result()
                self._advance()
        finally:
            for task in self._at_work:
                task.cancel()
        return self._ended()

    # -- steps of an earlier, interrupted job -------------------------------------------------

    async def _take_over(self) -> None:
        """Determine what became of the steps that were running when the run was interrupted."""
        over = [step_id for step_id, state in self._states.items() if state.is_over]
        if over:
            self._say(f"resumes run {self._run.id}; not run again: {', '.join(over)}")
        for step in self._workflow.steps:
            state = self._states[step.id]
            if state.status == RUNNING and state.job is not None:
                await self._adopt(step, state.job)

    async def _adopt(self, step: Step, job_id: str) -> None:
        job = await self._left(job_id)
        if job is not None and job.end is not None and job.end.cause not in INTERRUPTED:
            self._say(f"{step.id}: had already ended as {job_id}")
            self._finish(step, job)
            return
        self._states[step.id] = StepState()
        self._say(f"{step.id}: was interrupted{'' if job is None else f' as {job_id}'}; runs again")

    async def _left(self, job_id: str) -> Job | None:
        """Return a job of an interrupted run after its end; None if it was never created and never will be."""
        if not await asyncio.to_thread(recovery.resolve_uncreated, self._context.home, job_id):
            try:
                return self._jobs.get(job_id)  # removed long ago, but in the record of ended jobs
            except JobNotFound:
                return None
        job = await self._jobs.wait(job_id, timeout=1.0)
        if job.is_final:
            return job
        # It survived the run that started it: stop it, because two of it at once would be worse than a lost one.
        await self._jobs.stop(job_id)
        return await self._jobs.wait(job_id, timeout=_STOP_TIMEOUT)

    # -- the steps ----------------------------------------------------------------------------

    def _advance(self) -> None:
        """Start or skip every step that is ready; a skipped step can make others ready."""
        self._check_supervisor()
        while found := model.next_actions(self._workflow, self._states, self._env):
            for move in found:
                if move.skip:
                    self._skip(move.step, move.skip)
                else:
                    self._states[move.step.id] = StepState(RUNNING)
                    self._at_work[asyncio.create_task(self._do(move.step))] = move.step.id

    async def _do(self, step: Step) -> None:
        scope = model.step_scope(self._workflow, step, self._states, self._env)

        def begins(job_id: str) -> None:
            self._run.note("begin", step=step.id, job=job_id)
            self._states[step.id] = StepState(RUNNING, job_id)

        try:
            spec = self._make_spec(step, scope)
            job = await self._jobs.start(spec, backgrounded=False, before=begins)
        except TaskyardError as error:
            self._end(step, StepState(FAILED, self._states[step.id].job, why=f"could not be started: {error}"))
            return
        self._say(f"{step.id}: started ({job.id})")
        self._tell(step)
        ended = await self._jobs.wait(job.id)
        if ended.end is not None and ended.end.cause == "stopped":
            await asyncio.sleep(
                _STOP_DELAY
            )  # a stop of the workflow stops its steps first: such a step is interrupted, not failed
        self._check_supervisor()
        self._finish(step, ended)

    def _check_supervisor(self) -> None:
        """Cancel and write nothing if our supervisor was killed: another job may resume the run at any moment."""
        if supervisor_pid(JobPaths(self._context.home, self._context.id)) is None:
            raise asyncio.CancelledError("the supervisor of this workflow is gone")

    def _skip(self, step: Step, why: str) -> None:
        self._run.note("skip", step=step.id, why=why)
        self._states[step.id] = StepState(SKIPPED, why=why)
        self._say(f"{step.id}: skipped, since {why}")
        self._tell(step)

    def _finish(self, step: Step, job: Job) -> None:
        end = job.end
        if end is None:
            self._end(step, StepState(FAILED, job.id, why="its job did not come to an end"))
            return
        is_good = job.status.value == COMPLETED
        state = StepState(
            COMPLETED if is_good else FAILED,
            job.id,
            end.exit_code,
            self._output(job),
            "" if is_good else _failure_text(end),
        )
        self._end(step, state, "" if end.duration_ms is None else f" in {end.duration_ms / 1000:.1f} s")

    def _end(self, step: Step, state: StepState, took: str = "") -> None:
        self._run.note("end", step=step.id, **{name: getattr(state, name) for name in _END_FIELDS})
        self._states[step.id] = state
        goes_on = ", and the workflow goes on" if state.status == FAILED and step.goes_on else ""
        self._say(f"{step.id}: {state.status}{took}{f': {state.why}' if state.why else ''}{goes_on}")
        if state.status == FAILED:
            for line in state.output.splitlines()[-_FAILURE_LINES:]:
                self._context.write(f"    {escape_control(line)}\n")
        self._tell(step)

    def _output(self, job: Job) -> str:
        """Return the end of a step's output, or its final answer, as `$(…)` would return it."""
        answer = job.facts.get("result")
        if isinstance(answer, str) and answer:
            text = answer.encode("utf-8", "replace")[-MAX_STEP_OUTPUT:]
        else:
            try:
                text = Output(JobPaths(self._context.home, job.id)).tail_bytes(MAX_STEP_OUTPUT).text
            except TaskyardError:
                text = b""
        return text.decode("utf-8", "replace").replace("\0", "").rstrip("\n")

    # -- reporting ----------------------------------------------------------------------------

    def _say(self, line: str) -> None:
        self._context.write(f"{escape_control(line)}\n")

    def _tell(self, step: Step) -> None:
        done = sum(state.is_over for state in self._states.values())
        steps = {step_id: state.status for step_id, state in self._states.items()}
        total = len(self._workflow.steps)
        self._context.tell(progress={"done": done, "total": total, "steps": steps}, run=self._run.id)
        state = self._states[step.id]
        self._context.progress(step=step.id, status=state.status, job=state.job, done=done, total=total)

    def _ended(self) -> Outcome:
        statuses = [state.status for state in self._states.values()]
        counts = {status: statuses.count(status) for status in (COMPLETED, FAILED, SKIPPED)}
        told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        failed = model.failures(self._workflow, self._states)
        self._run.note("done", failed=[step.id for step in failed])
        self._say(f"{len(self._states)} {'step' if len(self._states) == 1 else 'steps'}: {told}")
        why = "; ".join(f"step {step.id} failed: {self._states[step.id].why}" for step in failed)
        steps = [
            {"id": step_id, "status": state.status, "job": state.job, "exit_code": state.exit_code, "why": state.why}
            for step_id, state in self._states.items()
        ]
        return Outcome(told, why, {"run": self._run.id, "steps": steps})


#: Fields of a step state in the journal's `end` entry.
_END_FIELDS = ("status", "job", "exit_code", "output", "why")


def _failure_text(end: End) -> str:
    """Return why a step failed, as text."""
    if end.cause == "exited":
        return f"exit code {end.exit_code}"
    if end.cause == "signal":
        return f"killed by signal {end.signal}"
    if end.cause == "timeout":
        return "it took longer than its time limit"
    if end.cause == "stopped":
        return f"it was stopped{f' by {end.by}' if end.by else ''}"
    return end.error or end.cause
