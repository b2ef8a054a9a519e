"""What is known becomes what every screen shows."""

from __future__ import annotations

import pytest

from taskyard.jobs.model import End, Job, JobStatus
from taskyard.tasks.model import DamagedFile, Task, TaskStatus
from taskyard.tasks.text import HIDE_AFTER_MS, JUST_DONE_MS
from taskyard.ui.jobs import FLASH_MS
from taskyard.ui.snapshot import Snapshot, ViewInput, build_snapshot

NOW = 10_000_000
DONE, DOING = TaskStatus.COMPLETED, TaskStatus.IN_PROGRESS

SCENE = ViewInput(
    "release",
    (
        Task("11", "Freeze the API", owner="ada", status=DONE, blocks=("12",), updated_at=1),
        Task("12", "Migrate", owner="ada", status=DOING, blocked_by=("11",), active_form="Migrating", updated_at=5),
        Task("13", "Switch readers", blocked_by=("12",)),
        Task("14", "Notes"),
    ),
    jobs=(Job("b00000001", "local_bash", JobStatus.RUNNING, "npm test", start_time=NOW - 5, needs_input=True),),
    now=NOW,
)


def moved(by: int) -> ViewInput:
    return SCENE._replace(now=NOW + by)


@pytest.mark.req("U-03", "L-20")
def test_tasks_come_in_order_with_their_words() -> None:
    found = build_snapshot(SCENE)

    assert [(task.glyph, task.id, task.doing or task.note) for task in found.tasks] == [
        ("◐", "12", "Migrating"),
        ("○", "14", ""),
        ("◌", "13", "waits for 12"),
        ("✓", "11", ""),
    ]
    assert found.headline == "1 agent · 1 doing · 1 ready"
    assert found.counts.total == 4


@pytest.mark.req("L-18")
def test_two_looks_at_the_same_show_the_same() -> None:
    assert build_snapshot(SCENE) == build_snapshot(moved(1_000))


@pytest.mark.req("L-19")
def test_a_finished_list_hides_after_five_seconds_and_comes_back_with_a_new_task() -> None:
    scene = SCENE._replace(tasks=(Task("1", "a", status=DONE, updated_at=1),), jobs=())
    first = build_snapshot(scene)
    assert first.is_panel_shown
    assert first.until == NOW + HIDE_AFTER_MS

    later = build_snapshot(scene._replace(now=NOW + HIDE_AFTER_MS, done_since=first.done_since))
    assert not later.is_panel_shown
    assert later.tasks == first.tasks

    again = build_snapshot(
        scene._replace(tasks=(*scene.tasks, Task("2", "b")), now=NOW + 9_999, done_since=later.done_since)
    )
    assert again.is_panel_shown
    assert again.done_since is None


@pytest.mark.req("U-03")
def test_an_empty_list_has_no_panel() -> None:
    assert not build_snapshot(ViewInput("release", now=NOW)).is_panel_shown


@pytest.mark.req("L-20")
def test_it_says_when_time_alone_will_change_it() -> None:
    just_done = Task("1", "a", status=DONE, updated_at=NOW)
    over = Job("b00000001", "local_bash", JobStatus.COMPLETED, "x", end=End("exited", 0), end_time=NOW - 100)
    open_task = Task("2", "b")

    assert build_snapshot(moved(0)).until is None
    assert build_snapshot(SCENE._replace(tasks=(just_done, open_task), jobs=())).until == NOW + JUST_DONE_MS + 1
    assert build_snapshot(SCENE._replace(tasks=(open_task,), jobs=(over,))).until == NOW - 100 + FLASH_MS


@pytest.mark.req("U-01")
def test_what_needs_somebody_is_counted() -> None:
    failed = Job("b00000002", "local_bash", JobStatus.FAILED, "x", end=End("exited", 1), end_time=NOW)

    assert build_snapshot(SCENE).attention == 1
    assert build_snapshot(SCENE._replace(jobs=(*SCENE.jobs, failed))).attention == 2
    assert build_snapshot(SCENE._replace(jobs=(*SCENE.jobs, failed), seen=frozenset({failed.id}))).attention == 1


def test_what_cannot_be_read_is_said_and_blocks_whoever_waits_for_it() -> None:
    scene = SCENE._replace(tasks=(Task("2", "b", blocked_by=("9",)),), damaged=(DamagedFile("9.json", "not JSON"),))
    found = build_snapshot(scene)

    assert found.problems == ("9.json cannot be read: not JSON",)
    assert found.tasks[0].note == "waits for 9"


def test_what_is_known_to_be_the_same_is_not_worked_out_again() -> None:
    first = build_snapshot(SCENE)
    other = SCENE._replace(tasks=(), jobs=())

    assert build_snapshot(other, first, same_tasks=True).tasks is first.tasks
    assert build_snapshot(other, first, same_jobs=True).jobs is first.jobs
    assert build_snapshot(other, first) == Snapshot("release")
