"""What happened to a task, in words."""

from __future__ import annotations

from taskyard.tasklist.model import Act, Change, Task, TaskStatus
from taskyard.view.history import history

TASK = Task("1", "First", "First", None, None, TaskStatus.PENDING)


def change(number: int, by: str | None, cause: str, *, of: str = "1", aborted: bool = False, note: str = "") -> Change:
    return Change(number, 1000 + number, Act(by, cause, "cli", note), {of: TASK}, aborted)


def test_each_change_of_a_task_is_a_sentence() -> None:
    changes = [
        change(1, "ada", "create"),
        change(2, "bob", "claim", of="2"),
        change(3, None, "external"),
        change(4, "bob", "claim", aborted=True),
        change(5, "ev\x1be", "frobnicate", note="why\n"),
    ]
    rows = history(changes, "1")
    assert [row["words"] for row in rows] == ["ada created it", "another program changed it", rows[2]["words"]]
    assert str(rows[2]["words"]).endswith("frobnicate")
    assert "\x1b" not in str(rows[2])
    assert [row["id"] for row in rows] == [1, 3, 5]
