"""Fields, status and dependencies in one step: all of it or nothing, for whoever looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.yards import open_yard, yards
from taskyard.errors import AcceptanceFailed, Blocked, Cycle, TaskNotFound
from taskyard.storage.trust import trust_command


@pytest.mark.req("L-05", "L-11")
def test_an_update_with_dependencies_is_one_entry_of_the_log(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        for subject in "abcd":
            yard.tasks.create(subject)
        yard.tasks.block("3", by="1")
        before = len(yard.tasks.log())
        done = yard.tasks.update("1", subject="A", status="completed", add_blocks=["2", "4"], remove_blocks="3")

        (entry,) = yard.tasks.log()[before:]
        assert (entry.act.cause, set(entry.tasks)) == ("complete", {"1", "2", "3", "4"})
        assert (done.subject, done.blocks, done.ready) == ("A", ("2", "4"), ("2", "4"))
        assert [task.blocked_by for task in yard.tasks.list()] == [(), ("1",), (), ("1",)]


@pytest.mark.req("L-11")
@pytest.mark.parametrize(("change", "cause"), [({"add_blocks": "2"}, "block"), ({"remove_blocked_by": "2"}, "unblock")])
def test_an_update_of_dependencies_alone_is_logged_as_what_it_is(
    tmp_path: Path, change: dict[str, str], cause: str
) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b")
        if cause == "unblock":
            yard.tasks.block("1", by="2")
        yard.tasks.update("1", **change)  # type: ignore[arg-type]

        assert yard.tasks.log()[-1].act.cause == cause


@pytest.mark.req("L-06", "L-07")
def test_a_refused_part_refuses_the_whole_update(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b", blocked_by=["1"])
        before = yard.tasks.log()
        with pytest.raises(Blocked):
            yard.tasks.update("1", subject="A", status="completed", add_blocked_by="2", remove_blocks="2")
        with pytest.raises(Cycle):
            yard.tasks.update("1", subject="A", add_blocked_by=["2"])
        with pytest.raises(TaskNotFound):
            yard.tasks.update("1", subject="A", add_blocks=["9"])
        assert yard.tasks.log() == before


@pytest.mark.req("L-05")
def test_a_blocker_another_program_removed_can_be_taken_away_with_an_update(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b", blocked_by=["1"])
        (tmp_path / "plan" / "1.json").unlink()
        assert yard.tasks.update("2", subject="B", remove_blocked_by=["1"]).blocked_by == ()
        assert json.loads((tmp_path / "plan" / "2.json").read_text())["blockedBy"] == []


@pytest.mark.req("L-04", "H-01")
def test_nobody_sees_dependencies_of_an_update_whose_check_still_runs_or_failed(tmp_path: Path) -> None:
    command = f"cat {tmp_path}/plan/*.json > {tmp_path}/seen; exit 1"
    trust_command(command, str(tmp_path))
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("a", acceptance={"command": command, "cwd": str(tmp_path)})
        ada.tasks.create("b")
        before = bob.tasks.log()
        with pytest.raises(AcceptanceFailed):
            ada.tasks.update("1", status="completed", add_blocks=["2"])
        assert '"blocks":["2"]' not in (tmp_path / "seen").read_text().replace(" ", "").replace("\n", "")
        assert bob.tasks.log() == before


@pytest.mark.req("L-06", "H-01")
@pytest.mark.parametrize("others", [{"add_blocks": ["9"]}, {"add_blocks": ["2"]}])
def test_no_check_runs_for_dependencies_that_cannot_be(tmp_path: Path, others: dict[str, list[str]]) -> None:
    command = f"touch {tmp_path}/ran"
    trust_command(command, str(tmp_path))
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a", acceptance={"command": command, "cwd": str(tmp_path)})
        yard.tasks.create("b", blocks=["1"])
        yard.tasks.complete("2")
        with pytest.raises((TaskNotFound, Cycle)):
            yard.tasks.update("1", status="completed", **others)  # type: ignore[arg-type]
        assert not (tmp_path / "ran").exists()
