"""A task that could not be done: pure."""

from __future__ import annotations

import pytest

from taskyard.agents.teammate.rules import LONGEST_REASON, failure_count, return_failed
from taskyard.errors import LeaseLost
from taskyard.tasks.model import Facts, Lease, Task, TaskStatus
from taskyard.tasks.rules import Caller

LEASE = Lease("ada", "i-1", "token", "process", 0)


def facts(task: Task) -> Facts:
    return Facts(task, LEASE, lambda _: None, list)


def held(**ours: object) -> Task:
    return Task("1", "Hard", owner="ada", status=TaskStatus.IN_PROGRESS, metadata={"mine": 1, "taskyard": ours})


@pytest.mark.req("L-09", "M-04")
def test_a_failure_is_counted_and_the_last_one_sets_the_task_aside() -> None:
    task, caller = held(priority=2), Caller("ada", "token")
    for count in (1, 2, 3):
        back, lease = return_failed(facts(task), caller, reason="no fuel" * 1_000, most=3)
        assert (back.owner, back.status, lease) == (None, TaskStatus.PENDING, None)
        assert (failure_count(back), back.is_held) == (count, count == 3)
        task = back._replace(owner="ada", status=TaskStatus.IN_PROGRESS)
    assert (task.metadata["mine"], task.extra["priority"]) == (1, 2)
    failed = task.extra["failed"]
    assert isinstance(failed, dict)
    assert (len(failed["reason"]), failed["by"]) == (LONGEST_REASON, "ada")


@pytest.mark.req("L-09")
def test_only_its_holder_gives_it_back() -> None:
    with pytest.raises(LeaseLost):
        return_failed(facts(held()), Caller("ada", "an older token"), reason="late", most=3)


@pytest.mark.req("L-09")
@pytest.mark.parametrize("failed", [None, "often", {"count": "many"}, {"count": True}, []])
def test_what_others_wrote_there_counts_for_nothing(failed: object) -> None:
    assert failure_count(held(failed=failed)) == 0


@pytest.mark.req("L-09")
def test_one_that_was_set_aside_and_is_tried_again_has_all_its_tries() -> None:
    tried = held(failed={"count": 3, "reason": "no fuel", "by": "ada"})
    back = return_failed(facts(tried), Caller("ada", "token"), reason="again", most=3).task
    assert (failure_count(back), back.is_held) == (1, False)
