"""What happened to a task, in words."""

from __future__ import annotations

from taskyard.tasks.model import Act, Change, Task, TaskStatus
from taskyard.ui.tasks import task_history

TASK = Task("1", "First", "First", None, None, TaskStatus.PENDING)


def change(number: int, by: str | None, cause: str, *, of: str = "1", aborted: bool = False, note: str = "") -> Change:
    return Change(number, 1000 + number, Act(by, cause, "cli", note), {of: TASK}, aborted)


def test_an_act_on_another_task_says_who_waits_for_this_one() -> None:
    waited_for = TASK._replace(blocks=("2", "3"), updated_at=5)
    changes = [
        change(1, "ada", "create"),
        change(2, "ada", "create")._replace(tasks={"2": TASK, "1": waited_for}),
        change(3, "ada", "delete")._replace(tasks={"3": None, "1": waited_for._replace(blocks=("2",))}),
        change(4, "ada", "update")._replace(tasks={"1": waited_for._replace(blocks=(), subject="Other")}),
    ]
    assert [row["words"] for row in task_history(changes, "1")] == [
        "ada created it",
        "2, 3 wait for it",
        "3 no longer waits for it",
        "ada changed it",
    ]


def test_each_change_of_a_task_is_a_sentence() -> None:
    changes = [
        change(1, "ada", "create"),
        change(2, "bob", "claim", of="2"),
        change(3, None, "external"),
        change(4, "bob", "claim", aborted=True),
        change(5, "ev\x1be", "frobnicate", note="why\n"),
    ]
    rows = task_history(changes, "1")
    assert [row["words"] for row in rows] == ["ada created it", "another program changed it", rows[2]["words"]]
    assert str(rows[2]["words"]).endswith("frobnicate")
    assert "\x1b" not in str(rows[2])
    assert [row["id"] for row in rows] == [1, 3, 5]
