"""Who did what when."""

from __future__ import annotations

import pytest

from taskyard.jobs.model import Job, JobStatus
from taskyard.tasks.model import Act, Change, Task, TaskStatus
from taskyard.ui.snapshot import IDLE_MS, MOST_BARS, Gap, Timeline, timeline

PENDING, DOING, DONE = TaskStatus
HOUR = 3_600_000
NOW = 10 * HOUR


def change(at: int, task_id: str, status: TaskStatus, owner: str | None = "ada", *, aborted: bool = False) -> Change:
    task = Task(task_id, f"Task {task_id}", owner=owner, status=status)
    return Change(at, at, Act(owner, "x"), {task_id: task}, aborted)


def bars(found: Timeline) -> dict[str, list[tuple[str, str, int, int | None]]]:
    return {lane.name: [(bar.id, bar.state, bar.start, bar.end) for bar in lane.bars] for lane in found.lanes}


@pytest.mark.req("U-04")
def test_a_task_is_somebodys_from_its_start_until_it_is_done_given_back_or_taken_over() -> None:
    found = timeline(
        [
            change(10, "1", DOING),
            change(20, "1", DOING),
            change(30, "1", DONE),
            change(40, "2", DOING),
            change(50, "2", PENDING, None),
            change(60, "3", DOING),
            change(70, "3", DOING, "bob"),
            Change(80, 80, Act("bob", "remove"), {"3": None}),
            change(90, "4", DOING, "bob"),
            change(95, "5", DOING, "cy", aborted=True),
        ],
        [],
        now=NOW,
    )

    assert bars(found) == {
        "ada": [("1", "done", 10, 30), ("2", "ready", 40, 50), ("3", "ready", 60, 70)],
        "bob": [("3", "ready", 70, 80), ("4", "doing", 90, None)],
    }
    assert (found.start, found.now) == (10, NOW)


@pytest.mark.req("U-04")
def test_jobs_have_lanes_of_their_own_below_the_agents() -> None:
    def job(number: int, kind: str, end: int | None = None) -> Job:
        status = JobStatus.RUNNING if end is None else JobStatus.FAILED
        return Job(f"b000000{number:02d}", kind, status, "x", start_time=100 + number, end_time=end)

    jobs = [job(1, "local_bash", 200), job(2, "local_bash"), job(3, "local_agent"), job(4, "in_process_teammate")]

    assert bars(timeline([change(10, "1", DOING)], jobs, now=NOW)) == {
        "ada": [("1", "doing", 10, None)],
        "agents": [("b00000003", "running", 103, None)],
        "shells": [("b00000001", "failed", 101, 200), ("b00000002", "running", 102, None)],
    }


@pytest.mark.req("U-04")
def test_long_stretches_without_work_may_be_folded() -> None:
    changes = [
        change(0, "1", DOING),
        change(HOUR, "1", DONE),
        change(3 * HOUR, "2", DOING),
        change(4 * HOUR, "2", DONE),
    ]

    assert timeline(changes, [], now=NOW).gaps == (Gap(HOUR, 3 * HOUR), Gap(4 * HOUR, NOW))
    assert timeline(changes[:2], [], now=HOUR + IDLE_MS).gaps == ()
    assert timeline([], [], now=NOW) == Timeline(NOW, NOW)


@pytest.mark.req("U-04")
def test_of_a_long_past_the_latest_is_shown() -> None:
    changes = [change(at, str(at), status) for at in range(1, MOST_BARS + 50) for status in (DOING, DONE)]
    (lane,) = timeline(changes, [], now=NOW).lanes

    assert len(lane.bars) == MOST_BARS
    assert lane.bars[-1].id == str(MOST_BARS + 49)
