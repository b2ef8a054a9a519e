"""Who is woken when a list changes: pure."""

from __future__ import annotations

import pytest

from taskyard.agents.teammate.workers import Waiter, waiters_to_wake
from taskyard.tasks.model import Lease, Task, TaskStatus, labels_of


def waiter(name: str, *, label: str = "", ends: bool = True) -> Waiter:
    return Waiter(name, lambda task: not label or label in labels_of(task), lambda: None, ends_when_done=ends)


def task(task_id: str, *, done: bool = False, **fields: object) -> Task:
    status = TaskStatus.COMPLETED if done else TaskStatus.PENDING
    return Task(task_id, f"Task {task_id}", status=status)._replace(**fields)  # type: ignore[arg-type]


def woken(tickets: list[Waiter], *tasks: Task) -> list[str]:
    return [found.name for found in waiters_to_wake(tickets, tasks)]


@pytest.mark.req("L-18", "M-04")
def test_each_ready_task_wakes_one_first_come_first_served() -> None:
    waiting = [waiter(name) for name in ("ada", "bob", "eve")]
    assert woken(waiting, task("1"), task("2"), task("3", done=True)) == ["ada", "bob"]
    assert woken(waiting, task("1"), task("2", blocked_by=("1",))) == ["ada"]
    assert woken(waiting, task("1", owner="zoe", lease=Lease("zoe", "i", "t", "process", 0))) == []
    assert woken(waiting, task("1", metadata={"_internal": True})) == []
    assert woken(waiting, task("1", metadata={"taskyard": {"held": True}})) == []


@pytest.mark.req("L-18", "L-21")
def test_only_whom_a_task_suits_is_woken_for_it() -> None:
    waiting = [waiter("ada", label="docs"), waiter("bob")]
    docs = {"taskyard": {"labels": ["docs"]}}
    assert woken(waiting, task("1")) == ["bob"]
    assert woken(waiting, task("1", metadata=docs)) == ["ada"]
    assert woken(waiting, task("1", metadata=docs), task("2", metadata=docs)) == ["ada", "bob"]


@pytest.mark.req("L-18")
def test_whoever_was_given_a_ready_task_is_woken_for_it() -> None:
    waiting = [waiter("ada"), waiter("bob")]
    assert woken(waiting, task("1", owner="bob")) == ["bob"]
    assert woken(waiting, task("1", owner="bob", blocked_by=("2",)), task("2", owner="eve")) == []
    assert woken(waiting, task("1", owner="bob"), task("2")) == ["bob", "ada"]


@pytest.mark.req("L-18", "M-04")
def test_a_list_that_is_done_wakes_those_who_leave_with_it() -> None:
    waiting = [waiter("ada"), waiter("bob", ends=False)]
    tracker = task("2", metadata={"_internal": True})
    assert woken(waiting, task("1", done=True), tracker) == ["ada"]
    assert woken(waiting, tracker) == []
    assert woken(waiting) == []
