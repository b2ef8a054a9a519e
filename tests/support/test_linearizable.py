"""The checker finds an order where there is one, and says so where there is none."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.linearizable import Event, check, recorded
from support.task_models import PENDING, IdCounter, State, TaskModel, TaskState

FREE = TaskModel(initial=TaskState())


def event(text: str, result: Hashable, t0: int, t1: int | None, process: str = "") -> Event:
    """`event("claim 1 ada", "ok", 0, 5)`."""
    op, *args = text.split()
    return Event(process or text, op, tuple(args), result, t0, t1)


@pytest.mark.req("L-08")
def test_operations_one_after_the_other_are_linearizable() -> None:
    history = [
        event("create 1", "ok", 0, 1),
        event("claim 1 ada", "ok", 2, 3),
        event("claim 1 bob", "already_claimed", 4, 5),
        event("complete 1 ada", "ok", 6, 7),
        event("claim 1 bob", "already_resolved", 8, 9),
        event("reopen 1", "ok", 10, 11),
        event("claim 1 bob", "ok", 12, 13),
        event("release 1 bob", "ok", 14, 15),
        event("get 1", (PENDING, None), 16, 17),
        event("delete 1", "ok", 18, 19),
        event("get 1", "not_found", 20, 21),
    ]
    assert check(history, TaskModel()) is None


@pytest.mark.req("L-08")
def test_overlapping_operations_may_have_happened_in_either_order() -> None:
    refused_first = [event("claim 1 ada", "already_claimed", 0, 10), event("claim 1 bob", "ok", 5, 15)]
    assert check(refused_first, FREE) is None
    assert check([refused_first[0], refused_first[1]._replace(t0=11)], FREE) is not None


@pytest.mark.req("L-08")
def test_a_doubled_claim_is_found_and_named() -> None:
    refused = [event(f"claim 1 a{n}", "already_claimed", 0, 100) for n in range(62)]
    history = [*refused, event("claim 1 ada", "ok", 0, 100), event("claim 1 bob", "ok", 0, 100)]
    violation = check(history, FREE)
    assert violation is not None
    assert "'1' is not linearizable" in violation.text
    assert "-> ok" in violation.text


@pytest.mark.req("L-08")
def test_a_lost_update_is_found() -> None:
    history = [
        event("claim 1 ada", "ok", 0, 1),
        event("complete 1 ada", "ok", 2, 3),
        event("get 1", (PENDING, "ada"), 4, 5),
    ]
    assert check(history, FREE) is not None


@pytest.mark.req("L-08")
def test_a_stale_read_is_found_and_a_concurrent_one_is_not() -> None:
    claim = event("claim 1 ada", "ok", 0, 10)
    assert check([claim, event("get 1", (PENDING, None), 5, 20)], FREE) is None
    assert check([claim, event("get 1", (PENDING, None), 11, 20)], FREE) is not None


@pytest.mark.req("L-08")
def test_reads_that_go_back_in_time_are_found_while_the_write_still_runs() -> None:
    history = [
        event("claim 1 ada", "ok", 0, 100),
        event("get 1", (PENDING, "ada"), 10, 20),
        event("get 1", (PENDING, None), 30, 40),
    ]
    assert check(history, FREE) is not None


@pytest.mark.req("L-03")
def test_an_id_given_twice_is_found() -> None:
    history = [event("next_id", 1, 0, 10), event("next_id", 2, 0, 10), event("next_id", 2, 0, 10)]
    assert check(history, IdCounter.of(history)) is not None


@pytest.mark.req("L-03")
def test_ids_may_have_gaps_but_never_turn_back() -> None:
    ids = [event("next_id", 1, 0, 1), event("next_id", 5, 2, 3), event("next_id", "hook_refused", 3, 4)]
    assert check([*ids, event("next_id", 7, 5, 6)], IdCounter([1, 5, 7])) is None
    turned = [*ids, event("next_id", 3, 5, 6)]
    assert check(turned, IdCounter.of(turned)) is not None


@pytest.mark.req("L-08")
def test_a_claim_whose_process_was_killed_may_have_happened_or_not() -> None:
    killed = event("claim 1 ada", None, 0, None)
    assert check([killed, event("claim 1 bob", "ok", 5, 6)], FREE) is None
    assert check([killed, event("claim 1 bob", "already_claimed", 5, 6)], FREE) is None
    seen_then_gone = [event("get 1", (PENDING, "ada"), 5, 6), event("get 1", (PENDING, None), 7, 8)]
    assert check([killed, *seen_then_gone], FREE) is not None


@pytest.mark.req("L-08")
def test_a_killed_claim_has_no_effect_before_it_was_called() -> None:
    history = [event("claim 1 bob", "already_claimed", 0, 4), event("claim 1 ada", None, 5, None)]
    assert check(history, FREE) is not None


@pytest.mark.req("L-08")
def test_completing_anothers_task_is_a_fault_only_where_the_model_says_so() -> None:
    history = [event("start 1 ada", "ok", 0, 1), event("complete 1 bob", "ok", 2, 3)]
    assert check(history, FREE) is None
    assert check(history, TaskModel(initial=TaskState(), owner_completes=True)) is not None


@pytest.mark.req("L-08")
def test_what_changes_nothing_now_may_have_mattered_later() -> None:
    history = [
        event("complete 1 ada", "ok", 0, 1),
        event("reopen 1", "ok", 2, 10),
        event("complete 1 bob", "ok", 2, 10),
        event("claim 1 cem", "already_resolved", 11, 12),
    ]
    assert check(history, FREE) is None


@pytest.mark.req("L-08")
def test_tasks_are_checked_apart_and_the_guilty_one_is_named() -> None:
    fine = [event("claim 1 ada", "ok", 0, 1), event("claim 1 bob", "already_claimed", 2, 3)]
    doubled = [event("claim 2 ada", "ok", 0, 1), event("claim 2 bob", "ok", 2, 3)]
    assert check(fine, FREE) is None
    violation = check([*fine, *doubled], FREE)
    assert violation is not None
    assert violation.text.startswith("'2'")


def test_times_that_run_backwards_are_refused() -> None:
    with pytest.raises(ValueError, match="ended before it began"):
        check([event("claim 1 ada", "ok", 5, 4)], FREE)


def test_a_recorded_call_keeps_its_answer_and_the_moments_around_it() -> None:
    before = time.monotonic_ns()
    kept = recorded("p1", "claim", ("1", "ada"), lambda: "ok")
    assert (kept.process, kept.op, kept.args, kept.result) == ("p1", "claim", ("1", "ada"), "ok")
    assert before <= kept.t0 <= kept.deadline <= time.monotonic_ns()


def run_of(seed: int, *, tasks: int, processes: int, steps: int) -> list[Event]:
    """A made-up run that is linearizable by construction: each answer belongs to a moment inside its event."""
    dice = random.Random(seed)
    states = {str(n): TaskModel().start() for n in range(tasks)}
    busy_until = [0] * processes
    history: list[Event] = []
    for moment in range(0, steps * 10, 10):
        process = dice.randrange(processes)
        if busy_until[process] >= moment:
            continue
        op = dice.choice(["create", "claim", "claim", "start", "complete", "release", "reopen", "get"])
        task = dice.choice(list(states))
        t0, t1 = dice.randint(busy_until[process], moment), moment + dice.randint(0, 90)
        asked = Event(f"p{process}", op, (task, f"agent{process}"), None, t0, t1)
        if answered := answer(states[task], asked):
            one, states[task] = answered
            history.append(one)
            busy_until[process] = t1 + 1
    return history


def answer(state: State, asked: Event) -> tuple[Event, State] | None:
    """What the model answers in `state`, and the state after; None if it has no answer."""
    seen = [tuple(state)] if isinstance(state, TaskState) else []
    for result in ("ok", "not_found", "already_claimed", "already_resolved", "bad_transition", *seen):
        one = asked._replace(result=result)
        if after := TaskModel().step(state, one):
            return one, after[0]
    return None


@pytest.mark.req("L-08")
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), processes=st.integers(1, 8))
def test_every_run_made_from_the_model_is_linearizable(seed: int, processes: int) -> None:
    assert check(run_of(seed, tasks=3, processes=processes, steps=120), TaskModel()) is None


def explains(order: tuple[Event, ...]) -> bool:
    """Whether `order` respects the times and the model: the definition itself, for few events."""
    for at, one in enumerate(order):
        if any(later.deadline < one.t0 for later in order[at + 1 :]):
            return False
    state = FREE.start()
    for one in order:
        after = FREE.step(state, one)
        if not after:
            return False
        state = after[0]
    return True


operations = st.tuples(
    st.sampled_from(["claim 1 ada", "claim 1 bob", "complete 1 ada", "release 1 bob", "reopen 1"]),
    st.sampled_from(["ok", "ok", "already_claimed", "already_resolved", "bad_transition"]),
    st.integers(0, 12),
    st.integers(0, 6),
).map(lambda drawn: event(drawn[0], drawn[1], drawn[2], drawn[2] + drawn[3]))


@pytest.mark.req("L-08")
@settings(max_examples=300, deadline=None)
@given(history=st.lists(operations, max_size=5))
def test_the_search_agrees_with_trying_every_order(history: list[Event]) -> None:
    expected = any(explains(order) for order in itertools.permutations(history))
    assert (check(history, FREE) is None) == expected


@pytest.mark.req("L-08", "L-03")
def test_thousands_of_events_take_seconds() -> None:
    history = run_of(7, tasks=40, processes=16, steps=20_000)
    ids = [event("next_id", n, n * 3, n * 3 + 40) for n in range(1, 4000)]
    assert len(history) > 5_000
    began = time.monotonic()
    assert check(history, TaskModel()) is None
    assert check(ids, IdCounter.of(ids)) is None
    assert time.monotonic() - began < 10
