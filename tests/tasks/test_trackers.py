"""Trackers: hidden tasks that stand for teammates, settled by whoever looks at them."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskyard
from support.yards import on_disk, write_task
from taskyard.storage import process_registry
from taskyard.tasks import trackers


@pytest.mark.req("L-12")
def test_a_tracker_is_completed_at_the_next_look_once_its_teammate_is_gone(tmp_path: Path) -> None:
    with taskyard.open(tasks_dir=tmp_path, list="plan") as yard:
        ada, bob = (process_registry.register_unnamed(yard.home) for _ in range(2))
        first = trackers.create_tracker(yard.tasks.store, "ada", "Look at  everything\n" * 20, ada)
        second = trackers.create_tracker(yard.tasks.store, "bob", "", bob)
        raw = on_disk(tmp_path / "plan", first)
        assert (raw["subject"], raw["description"]) == ("ada", ("Look at everything " * 20)[:100])
        assert (raw["status"], "owner" in raw, "activeForm" in raw) == ("in_progress", False, False)
        ada.leave()
        statuses = {task.id: task.status.value for task in yard.tasks.list(internal=True)}
        assert statuses == {first: "completed", second: "in_progress"}
        assert yard.tasks.log(first)[-1].act.note == "it died"
        assert yard.tasks.list() == ()
        bob.leave()


@pytest.mark.req("L-12")
def test_a_tracker_of_another_program_is_never_presumed_dead(tmp_path: Path) -> None:
    hidden = {"_internal": True}
    write_task(tmp_path / "plan", "1", status="in_progress", metadata=hidden)
    for number, ours in enumerate(
        ({"teammate": "x"}, {"teammate": {"lock": 7}}, {"teammate": {"lock": "", "host": "h"}})
    ):
        write_task(tmp_path / "plan", str(number + 2), status="in_progress", metadata={**hidden, "taskyard": ours})
    with taskyard.open(tasks_dir=tmp_path, list="plan") as yard:
        assert {task.status.value for task in yard.tasks.list(internal=True)} == {"in_progress"}
