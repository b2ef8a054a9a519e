"""Answers to a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasks.model import Task, TaskStatus
from taskyard.tasks.text import NOT_FOUND, format_created, format_details, format_listing, format_updated

PENDING, DOING, DONE = TaskStatus


@pytest.mark.req("T-04", "L-05")
def test_a_listing_is_word_for_word_what_models_know() -> None:
    tasks = [
        Task("1", "A", owner="alice", status=DOING),
        Task("2", "B", blocked_by=("1", "3")),
        Task("3", "C", status=DONE),
        Task("4", "D", owner="bob", blocked_by=("3",)),
    ]
    assert format_listing(tasks) == (
        "#1 [in_progress] A (alice)\n#2 [pending] B [blocked by #1]\n#3 [completed] C\n#4 [pending] D (bob)"
    )
    assert format_listing([]) == "No tasks found"


@pytest.mark.req("T-04", "L-05")
def test_details_leave_out_what_does_not_block_any_more() -> None:
    tasks = {"2": Task("2", "x"), "3": Task("3", "y"), "4": Task("4", "z", status=DONE)}
    task = Task("1", "A", "d", blocks=("2",), blocked_by=("2", "3", "4"))
    assert format_details(task, tasks) == "Task #1: A\nStatus: pending\nDescription: d\nBlocked by: #2, #3\nBlocks: #2"
    assert format_details(Task("1", "A", "d"), tasks) == "Task #1: A\nStatus: pending\nDescription: d"


@pytest.mark.req("T-04")
def test_short_answers_are_word_for_word_what_models_know() -> None:
    assert format_created(Task("1", "A")) == "Task #1 created successfully: A"
    assert format_updated("1", ["owner", "status"]) == "Updated task #1 owner, status"
    assert format_updated("2", ["deleted"]) == "Updated task #2 deleted"
    assert NOT_FOUND == "Task not found"


@pytest.mark.req("L-12")
def test_trackers_are_not_listed() -> None:
    tracker = Task("1", "ada", metadata={"_internal": True})
    assert format_listing([tracker]) == "No tasks found"
    assert format_listing([tracker, Task("2", "B")]) == "#2 [pending] B"


@pytest.mark.req("T-04")
def test_a_subject_cannot_forge_a_second_line() -> None:
    assert format_listing([Task("1", "A\n#2 [completed] B")]) == "#1 [pending] A #2 [completed] B"


@pytest.mark.req("T-04")
def test_a_long_list_keeps_open_tasks_and_counts_the_rest() -> None:
    done = [Task(str(n), "done", status=DONE) for n in range(1, 1_000)]
    text = format_listing([*done, Task("1000", "now", status=DOING)], longest=400)
    assert len(text) <= 400
    assert text.split("\n")[-2:] == ["#1000 [in_progress] now", f"… +{999 - text.count('done')} completed"]


@pytest.mark.req("T-04")
@given(st.lists(st.tuples(st.sampled_from(TaskStatus), st.text(max_size=30)), min_size=1), st.integers(60, 500))
def test_a_listing_stays_within_its_limit(drawn: list[tuple[TaskStatus, str]], longest: int) -> None:
    tasks = [Task(str(number), subject, status=status) for number, (status, subject) in enumerate(drawn, 1)]
    assert len(format_listing(tasks, longest=longest)) <= longest
