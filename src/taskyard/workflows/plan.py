"""
What may run next: decided from what a workflow says and how its steps stand, without touching anything.

A step comes up once everything it needs is over. Its `if` decides; where that asks none of `success()`, `failure()` and
`always()`, success() is understood.

    success()    everything it needs went well, and no failure stops the workflow
    failure()    something it needs failed, at whatever distance
    always()     yes

A failure stops the workflow, unless the step says to go on: then it counts as gone well. What runs is not interrupted.
"""

from __future__ import annotations

from taskyard.typed import NamedTuple
from taskyard.workflows import expressions
from taskyard.workflows.model import COMPLETED, FAILED, RUNNING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.workflows.model import Definition, Step, StepState


class Move(NamedTuple):
    """What is to be done with a step now."""

    step: Step
    skip: str = ""  #: why it does not run; nothing: it does


def moves(workflow: Definition, states: Mapping[str, StepState], env: Mapping[str, str]) -> list[Move]:
    """Every step that comes up now, in the order of the workflow; steps to start no more than may run at once."""
    running = sum(state.status == RUNNING for state in states.values())
    room = len(workflow.steps) if workflow.most_at_once is None else workflow.most_at_once - running
    found: list[Move] = []
    for step in workflow.steps:
        if states[step.id].status != WAITING or not all(states[need].is_over for need in step.needs):
            continue
        why = _why_not(workflow, step, states, env)
        if why:
            found.append(Move(step, why))
        elif room > 0:
            room -= 1
            found.append(Move(step))
    return found


def failures(workflow: Definition, states: Mapping[str, StepState]) -> list[Step]:
    """The steps whose failure is the workflow's."""
    return [step for step in workflow.steps if states[step.id].status == FAILED and not step.goes_on]


def to_do_again(workflow: Definition, states: Mapping[str, StepState]) -> list[str]:
    """What must run again so that failed steps get another chance: those, and what waits for them."""
    again = {step.id for step in failures(workflow, states)}
    stopped = {step.id for step in workflow.steps if states[step.id].status == "skipped"} if again else set[str]()
    later = {step.id for step in workflow.steps if again & workflow.all_needs(step)}
    return [step.id for step in workflow.steps if step.id in again | stopped | later]


def scope_of(
    workflow: Definition, step: Step, states: Mapping[str, StepState], env: Mapping[str, str]
) -> expressions.Scope:
    """What a step can know."""
    good = all(_went_well(workflow.step(need), states[need]) for need in step.needs)
    hard = {each.id for each in failures(workflow, states)}
    return expressions.Scope(env, states, good and not hard, bool(hard & workflow.all_needs(step)))


def _went_well(step: Step, state: StepState) -> bool:
    return state.status == COMPLETED or (state.status == FAILED and step.goes_on)


def _why_not(workflow: Definition, step: Step, states: Mapping[str, StepState], env: Mapping[str, str]) -> str:
    scope = scope_of(workflow, step, states, env)
    condition = expressions.parse(step.condition or "success()")
    if not condition.asks and not scope.success:
        condition = expressions.parse("success()")
    if condition.value(scope):
        return ""
    if step.condition and (scope.success or condition.asks - {"success"}):
        return "its `if` is not true"
    bad = [need for need in step.needs if not _went_well(workflow.step(need), states[need])]
    if bad:
        return f"{bad[0]}, which it needs, {'failed' if states[bad[0]].status == FAILED else 'was skipped'}"
    return f"{failures(workflow, states)[0].id} failed" if failures(workflow, states) else "its `if` is not true"
