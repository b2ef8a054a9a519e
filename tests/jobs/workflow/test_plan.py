"""What may run next, without anything running."""

from __future__ import annotations

import pytest

from taskyard.jobs.workflow.model import (
    COMPLETED,
    FAILED,
    RUNNING,
    SKIPPED,
    Definition,
    Step,
    StepState,
    next_actions,
    steps_to_retry,
)


def workflow(*steps: Step, most: int | None = None) -> Definition:
    return Definition("w", steps, max_parallel=most)


def next_of(plan: Definition, **known: str) -> dict[str, str]:
    """The steps that come up: "" to run, else why not."""
    states = {step.id: StepState(known.get(step.id, "waiting")) for step in plan.steps}
    return {move.step.id: move.skip for move in next_actions(plan, states, {"GO": "yes"})}


A, B = Step("a", run="true"), Step("b", run="true")
AFTER_BOTH = Step("c", run="true", needs=("a", "b"))


def test_steps_run_side_by_side_as_far_as_their_needs_allow() -> None:
    plan = workflow(A, B, AFTER_BOTH)

    assert next_of(plan) == {"a": "", "b": ""}
    assert next_of(plan, a=COMPLETED, b=RUNNING) == {}
    assert next_of(plan, a=COMPLETED, b=COMPLETED) == {"c": ""}


def test_no_more_run_at_once_than_may() -> None:
    assert next_of(workflow(A, B, most=1)) == {"a": ""}
    assert next_of(workflow(A, B, most=1), a=RUNNING) == {}


def test_a_failure_stops_what_has_not_begun() -> None:
    plan = workflow(A, B, AFTER_BOTH)

    assert next_of(plan, a=FAILED) == {"b": "a failed"}
    assert next_of(plan, a=FAILED, b=SKIPPED) == {"c": "a, which it needs, failed"}


def test_a_failure_that_is_tolerated_counts_as_gone_well() -> None:
    assert next_of(workflow(A._replace(goes_on=True), B, AFTER_BOTH), a=FAILED, b=COMPLETED) == {"c": ""}


def test_always_and_failure_run_after_a_failure_however_far_away() -> None:
    middle = Step("m", run="true", needs=("a",))
    plan = workflow(
        A,
        middle,
        Step("tidy", run="true", needs=("m",), condition="always()"),
        Step("mourn", run="true", needs=("m",), condition="failure()"),
        Step("party", run="true", needs=("m",), condition="success()"),
    )

    assert next_of(plan, a=FAILED, m=SKIPPED) == {"tidy": "", "mourn": "", "party": "m, which it needs, was skipped"}
    after = next_of(plan, a=COMPLETED, m=COMPLETED)
    assert after == {"tidy": "", "mourn": "its `if` is not true", "party": ""}


@pytest.mark.parametrize(("condition", "why"), [("env.GO == 'yes'", ""), ("env.GO == 'no'", "its `if` is not true")])
def test_a_condition_decides(condition: str, why: str) -> None:
    assert next_of(workflow(A._replace(condition=condition))) == {"a": why}


def test_a_condition_that_asks_nothing_about_success_wants_it() -> None:
    plan = workflow(A, Step("b", run="true", needs=("a",), condition="env.GO == 'yes'"))

    assert next_of(plan, a=FAILED) == {"b": "a, which it needs, failed"}


def test_another_chance_is_given_to_what_failed_was_skipped_for_it_or_waited_for_it() -> None:
    tidy = Step("tidy", run="true", needs=("a",), condition="always()")
    plan = workflow(A, B, AFTER_BOTH, tidy)
    states = {"a": StepState(FAILED), "b": StepState(COMPLETED), "c": StepState(SKIPPED), "tidy": StepState(COMPLETED)}

    assert steps_to_retry(plan, states) == ["a", "c", "tidy"]
    assert steps_to_retry(plan, dict.fromkeys("abc", StepState(COMPLETED)) | {"tidy": StepState(SKIPPED)}) == []
