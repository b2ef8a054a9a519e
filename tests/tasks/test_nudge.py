"""The verification nudge."""

from __future__ import annotations

import pytest

from taskyard.tasks.model import Task, TaskStatus
from taskyard.tasks.text import verification_nudge

DONE = TaskStatus.COMPLETED


def done(*subjects: str) -> list[Task]:
    return [Task(str(number), subject, status=DONE) for number, subject in enumerate(subjects, 1)]


@pytest.mark.req("L-17")
def test_three_completed_tasks_without_a_verification_ask_for_the_verifier() -> None:
    text = verification_nudge(done("Build", "Test", "Ship"), verifier="auditor")
    assert text is not None
    assert "'auditor'" in text
    assert "All 3 tasks" in text


@pytest.mark.req("L-17")
@pytest.mark.parametrize(
    "tasks",
    [
        [],
        done("Build", "Test"),
        done("Build", "Test", "VERIFY the build"),
        [*done("Build", "Test", "Ship"), Task("4", "Clean up")],
        [*done("Build", "Test", "Ship"), Task("4", "Clean up", status=TaskStatus.IN_PROGRESS)],
    ],
)
def test_otherwise_nothing_is_said(tasks: list[Task]) -> None:
    assert verification_nudge(tasks, verifier="auditor") is None


@pytest.mark.req("L-17", "L-12")
def test_trackers_count_neither_as_tasks_nor_as_open_nor_as_verification() -> None:
    tracker = Task("9", "verifier", metadata={"_internal": True}, status=TaskStatus.IN_PROGRESS)
    assert verification_nudge([*done("Build", "Test"), tracker._replace(status=DONE)], verifier="v") is None
    assert verification_nudge([*done("Build", "Test", "Ship"), tracker], verifier="v") is not None
