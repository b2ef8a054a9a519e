"""Model of a workflow: steps, their states, and which steps may run next. Pure functions.

A step is ready once everything it needs is over. Its `if` decides whether it runs; unless that calls one of
`success()`, `failure()` and `always()`, success() is required as well.

    success()    everything it needs succeeded, and no failure stops the workflow
    failure()    something it needs, directly or indirectly, failed
    always()     true

A failure stops the workflow, unless the step has `continue-on-error`: then it counts as success. Running steps
are not interrupted.
"""

from __future__ import annotations

from taskyard.core.values import NamedTuple
from taskyard.jobs.workflow import expressions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


#: Statuses of a step. The last three are final.
WAITING, RUNNING, COMPLETED, FAILED, SKIPPED = "waiting", "running", "completed", "failed", "skipped"

_FINAL = frozenset({COMPLETED, FAILED, SKIPPED})


class StepTask(NamedTuple):
    """A task that a step adds to the shared list."""

    subject: str
    description: str = ""
    owner: str | None = None
    needs: tuple[int, ...] = ()  #: indexes of the tasks of the same step that block it


class Step(NamedTuple):
    """One step: a command, an agent's prompt, or tasks for the list."""

    id: str
    run: str | None = None
    agent: Mapping[str, object] | None = None
    tasks: tuple[StepTask, ...] = ()
    needs: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    timeout: float | None = None  #: seconds
    retries: int = 0
    retry_delay: float = 1.0  #: seconds before the first retry; doubled before each further one (backoff)
    condition: str = ""  #: its `if`
    goes_on: bool = False  #: its failure does not stop the workflow

    @property
    def kind(self) -> str:
        """What it does: "run", "agent" or "tasks"."""
        return "run" if self.run is not None else "agent" if self.agent is not None else "tasks"


class Definition(NamedTuple):
    """A checked workflow: every step it refers to exists, and there is no dependency cycle."""

    name: str
    steps: tuple[Step, ...]
    env: Mapping[str, str] = {}
    cwd: str | None = None
    max_parallel: int | None = None
    timeout: float | None = None  #: seconds for the whole workflow

    def step(self, step_id: str) -> Step:
        """Return the step of an existing id."""
        return next(step for step in self.steps if step.id == step_id)

    def transitive_needs(self, step: Step) -> set[str]:
        """Return every step that must be over before this one, directly or indirectly."""
        by_id = {each.id: each for each in self.steps}
        found: set[str] = set()
        waiting = list(step.needs)
        while waiting:
            need = waiting.pop()
            if need not in found:
                found.add(need)
                waiting += by_id[need].needs
        return found


#: Exit causes from outside, such as a stop of the workflow: such a step is not finished and runs again.
INTERRUPTED = ("stopped", "lost")


class StepState(NamedTuple):
    """State of a step."""

    status: str = WAITING
    job: str | None = None  #: the job that runs or ran it
    exit_code: int | None = None
    output: str = ""  #: the end of its output, for other steps
    why: str = ""  #: why it failed or was skipped
    at: int = 0  #: when it got this status, epoch ms

    @property
    def is_over(self) -> bool:
        """Whether it is in a final status."""
        return self.status in _FINAL


class StepAction(NamedTuple):
    """A step to start or to skip now."""

    step: Step
    skip: str = ""  #: why it is skipped; "": start it


def next_actions(workflow: Definition, states: Mapping[str, StepState], env: Mapping[str, str]) -> list[StepAction]:
    """Return every step that is ready, in the order of the workflow, with at most `max_parallel` running."""
    running = sum(state.status == RUNNING for state in states.values())
    room = len(workflow.steps) if workflow.max_parallel is None else workflow.max_parallel - running
    found: list[StepAction] = []
    for step in workflow.steps:
        if states[step.id].status != WAITING or not all(states[need].is_over for need in step.needs):
            continue
        why = _skip_reason(workflow, step, states, env)
        if why:
            found.append(StepAction(step, why))
        elif room > 0:
            room -= 1
            found.append(StepAction(step))
    return found


def failures(workflow: Definition, states: Mapping[str, StepState]) -> list[Step]:
    """Return the failed steps that fail the workflow."""
    return [step for step in workflow.steps if states[step.id].status == FAILED and not step.goes_on]


def steps_to_retry(workflow: Definition, states: Mapping[str, StepState]) -> list[str]:
    """Return the steps to run again in a retry: failed ones, skipped ones, and those that depend on failed ones."""
    again = {step.id for step in failures(workflow, states)}
    stopped = {step.id for step in workflow.steps if states[step.id].status == "skipped"} if again else set[str]()
    later = {step.id for step in workflow.steps if again & workflow.transitive_needs(step)}
    return [step.id for step in workflow.steps if step.id in again | stopped | later]


def step_scope(
    workflow: Definition, step: Step, states: Mapping[str, StepState], env: Mapping[str, str]
) -> expressions.Scope:
    """Return the values that a step's expressions can use."""
    good = all(_is_success(workflow.step(need), states[need]) for need in step.needs)
    hard = {each.id for each in failures(workflow, states)}
    return expressions.Scope(env, states, good and not hard, bool(hard & workflow.transitive_needs(step)))


def _is_success(step: Step, state: StepState) -> bool:
    return state.status == COMPLETED or (state.status == FAILED and step.goes_on)


def _skip_reason(workflow: Definition, step: Step, states: Mapping[str, StepState], env: Mapping[str, str]) -> str:
    scope = step_scope(workflow, step, states, env)
    condition = expressions.parse(step.condition or "success()")
    if not condition.asks and not scope.success:
        condition = expressions.parse("success()")
    if condition.value(scope):
        return ""
    if step.condition and (scope.success or condition.asks - {"success"}):
        return "its `if` is not true"
    bad = [need for need in step.needs if not _is_success(workflow.step(need), states[need])]
    if bad:
        return f"{bad[0]}, which it needs, {'failed' if states[bad[0]].status == FAILED else 'was skipped'}"
    return f"{failures(workflow, states)[0].id} failed" if failures(workflow, states) else "its `if` is not true"
