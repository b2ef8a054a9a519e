"""Which tasks come first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasks.model import Lease, Task, TaskStatus
from taskyard.tasks.text import fit_rows, hidden_line, panel_state, sort_tasks

PENDING, DOING, DONE = TaskStatus
NOW = 1_000_000


def order(*tasks: Task, me: str | None = None, done_at: dict[str, int] | None = None) -> list[str]:
    return [row.task.id for row in sort_tasks(tasks, now=NOW, me=me, done_at=done_at)]


@pytest.mark.req("L-20")
def test_just_done_then_in_progress_ready_blocked_and_done_earlier() -> None:
    tasks = [
        Task("1", "old", status=DONE, updated_at=NOW - 30_001),
        Task("2", "blocked", blocked_by=("3",)),
        Task("3", "ready", blocked_by=("1", "99")),
        Task("4", "doing", status=DOING),
        Task("5", "new", status=DONE, updated_at=NOW - 30_000),
    ]
    rows = sort_tasks(tasks, now=NOW)
    assert [(row.task.id, row.state) for row in rows] == [
        ("5", "done"),
        ("4", "doing"),
        ("3", "ready"),
        ("2", "blocked"),
        ("1", "done"),
    ]
    assert rows[3].waits_for == ("3",)


@pytest.mark.req("L-20")
def test_the_log_decides_when_a_task_was_done_whatever_was_updated_since() -> None:
    tasks = [Task("1", "a", status=DONE, updated_at=NOW), Task("2", "b", status=DOING), Task("3", "c", status=DONE)]
    assert order(*tasks, done_at={"1": 5, "3": NOW - 5}) == ["3", "2", "1"]


@pytest.mark.req("L-20")
def test_within_the_groups_mine_the_longest_running_the_most_urgent_and_the_nearest_to_ready_come_first() -> None:
    lease = Lease("bob", "i", "t", "manual", since=10)
    doing = [
        Task("1", "a", owner="ada", status=DOING, updated_at=50),
        Task("2", "b", owner="bob", status=DOING, updated_at=99, lease=lease),
        Task("3", "c", owner="me", status=DOING, updated_at=90),
    ]
    assert order(*doing, me="me") == ["3", "2", "1"]
    ready = [Task("9", "a"), Task("10", "b"), Task("11", "c", metadata={"taskyard": {"priority": 1}})]
    assert order(*ready) == ["11", "9", "10"]
    blocked = [Task("1", "a", blocked_by=("8", "9")), Task("2", "b", blocked_by=("9",)), Task("8", "x"), Task("9", "y")]
    assert order(*blocked) == ["8", "9", "2", "1"]


@pytest.mark.req("L-20")
def test_a_blocker_that_cannot_be_read_still_blocks() -> None:
    [row] = sort_tasks([Task("2", "b", blocked_by=("1",))], now=NOW, unreadable={"1"})
    assert (row.state, row.waits_for) == ("blocked", ("1",))


@pytest.mark.req("L-20")
def test_what_does_not_fit_is_counted_by_status() -> None:
    tasks = [*[Task(str(n), "d", status=DOING) for n in (1, 2)], *[Task(str(n), "p") for n in (3, 4, 5)]]
    tasks.append(Task("6", "c", status=DONE))
    assert hidden_line(tasks) == "… +2 in progress, 3 pending, 1 completed"
    assert hidden_line([]) == ""
    shown, line = fit_rows(sort_tasks(tasks, now=NOW), 4)
    assert len(shown) == 4
    assert line == "… +1 pending, 1 completed"


@pytest.mark.req("L-19")
def test_the_panel_hides_five_seconds_after_everything_is_done_and_comes_back_with_new_work() -> None:
    done = [Task("1", "a", status=DONE)]
    visible, since = panel_state(done, done_since=None, now=NOW)
    assert (visible, since) == (True, NOW)
    assert panel_state(done, done_since=since, now=NOW + 4_999) == (True, NOW)
    assert panel_state(done, done_since=since, now=NOW + 5_000) == (False, NOW)
    assert panel_state([*done, Task("2", "b")], done_since=since, now=NOW + 9_000) == (True, None)
    assert panel_state([], done_since=None, now=NOW) == (False, None)


@pytest.mark.req("L-12", "L-19", "L-20")
def test_trackers_are_not_shown_but_block_as_they_do_for_a_claim() -> None:
    tracker = Task("7", "ada", status=DOING, metadata={"_internal": True})
    assert order(tracker, Task("1", "a", blocked_by=("7",))) == ["1"]
    assert sort_tasks([Task("1", "a", blocked_by=("7",)), tracker], now=NOW)[0].waits_for == ("7",)
    assert panel_state([tracker, Task("1", "a", status=DONE)], done_since=0, now=NOW)[0] is False


@pytest.mark.req("L-20")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(TaskStatus), st.integers(0, 2 * NOW) | st.none(), st.lists(st.integers(1, 9).map(str))
        ),
        max_size=8,
    )
)
def test_every_task_is_shown_once_and_the_groups_never_mix(
    drawn: list[tuple[TaskStatus, int | None, list[str]]],
) -> None:
    tasks = [
        Task(str(number), "t", status=status, updated_at=at, blocked_by=tuple(blockers))
        for number, (status, at, blockers) in enumerate(drawn, 1)
    ]
    rows = sort_tasks(tasks, now=NOW)
    assert sorted(row.task.id for row in rows) == sorted(task.id for task in tasks)
    group = [
        {"doing": 1, "ready": 2, "blocked": 3, "done": 0 if NOW - (row.since or 0) <= 30_000 else 4}[row.state]
        for row in rows
    ]
    assert group == sorted(group)
