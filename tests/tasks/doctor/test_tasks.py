"""Damaged and hidden task files, and dependencies that do not hold: named, and repaired without loss."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskyard.errors import BadValue

if TYPE_CHECKING:
    from support.sick_list import SickList


@pytest.mark.req("L-06")
def test_a_healthy_list_has_no_findings_and_looking_changes_nothing(sick: SickList) -> None:
    first, second, third = sick.tasks(3)
    sick.yard.tasks.block(second, by=[first])
    sick.yard.tasks.claim(first)
    sick.yard.tasks.delete(third)
    before = sick.snapshot()

    assert sick.found() == []
    assert sick.snapshot() == before


def test_a_list_that_is_not_there_has_nothing_wrong_and_is_not_made(sick: SickList) -> None:
    assert sick.found() == []
    assert not sick.folder.exists()


DAMAGED = {
    "torn": b'{"id": "1", "subject": "Ta',
    "empty": b"",
    "not an object": b"[]",
    "no subject": b'{"id": "1", "status": "pending", "blocks": [], "blockedBy": []}',
}
MENDABLE = {
    "bad status": (b'{"id":"1","subject":"Mine","status":"done","blocks":["2"],"blockedBy":[]}', "status"),
    "byte order mark": (b'\xef\xbb\xbf{"id":"1","subject":"Mine","status":"pending","blocks":[],"blockedBy":[]}', ""),
    "blocks no list": (b'{"id":"1","subject":"Mine","status":"pending","blocks":"2","blockedBy":[]}', "blocks"),
    "owner a number": (b'{"id":"1","subject":"Mine","status":"pending","owner":7,"blocks":[],"blockedBy":[]}', "owner"),
    "zeros at its end": (b'{"id":"1","subject":"Mine","blocks":[],"blockedBy":[]}\0\0\0', ""),
}


@pytest.mark.req("L-02", "L-11")
@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_tells_nothing_comes_back_from_the_log_when_asked_by_name(sick: SickList, data: bytes) -> None:
    [task_id] = sick.tasks(1)
    sick.file(task_id).write_bytes(data)
    os.utime(sick.file(task_id), (1, 1))

    [finding] = sick.found()
    assert (finding.name, finding.task_id) == ("damaged-task", "1")
    assert "by the event log" in finding.fix
    assert sick.fixed() == []  # not without being named
    assert sick.file(task_id).read_bytes() == data

    [repair] = sick.fixed("damaged-task")

    assert sick.raw(task_id)["subject"] == "Task 1"
    assert repair.kept is not None
    assert Path(repair.kept).read_bytes() == data
    assert sick.found() == []
    assert sick.yard.tasks.log(task_id)[-1].act[:3] == ("ada", "repaired", "doctor")


@pytest.mark.req("L-02")
@pytest.mark.parametrize(("data", "lost"), MENDABLE.values(), ids=MENDABLE)
def test_what_can_be_read_of_a_damaged_file_is_kept(sick: SickList, data: bytes, lost: str) -> None:
    sick.tasks(2)
    sick.file("1").write_bytes(data)
    os.utime(sick.file("1"), (1, 1))

    finding = next(found for found in sick.found() if found.name == "damaged-task")
    assert lost in finding.fix

    sick.fixed("damaged-task")

    assert sick.raw("1")["subject"] == "Mine"
    assert sick.raw("1")["status"] == "pending"


@pytest.mark.req("L-03", "L-11")
def test_a_damaged_file_that_nobody_knew_is_moved_aside_and_its_id_stays_spent(sick: SickList) -> None:
    sick.tasks(1)
    sick.file("5").write_bytes(b"\x00\x01")
    os.utime(sick.file("5"), (1, 1))

    [repair] = sick.fixed("damaged-task")

    assert not sick.file("5").exists()
    assert repair.kept is not None
    assert Path(repair.kept).read_bytes() == b"\x00\x01"
    assert sick.yard.tasks.create("Next").id == "6"
    assert sick.found() == []


HIDDEN: dict[str, dict[str, object]] = {
    "no blocks": {"blocks": ...},
    "no blockedBy": {"blockedBy": ...},
    "null owner": {"owner": None},
    "null metadata": {"metadata": None},
    "null activeForm": {"activeForm": None},
    "null description": {"description": None},
    "no status": {"status": ...},
    "a number as id": {"id": 1},
    "numbers as blockers": {"blockedBy": [2]},
}


@pytest.mark.req("L-02")
@pytest.mark.parametrize("fields", HIDDEN.values(), ids=HIDDEN)
def test_a_task_that_claude_code_does_not_see_is_written_again_whole(sick: SickList, fields: dict[str, object]) -> None:
    sick.tasks(2)
    if "blockedBy" in fields:
        sick.yard.tasks.block("1", by=["2"])
    sick.write("1", extra="kept", **fields)

    assert "hidden-task" in sick.names()
    sick.fixed()

    assert sick.raw("1")["extra"] == "kept"
    assert sick.found() == []


@pytest.mark.req("L-02")
def test_the_name_of_a_file_decides_about_its_id(sick: SickList) -> None:
    sick.tasks(1)
    sick.write("1", id="9")

    assert sick.names() == ["wrong-id"]
    sick.fixed()
    assert sick.raw("1")["id"] == "1"
    assert sick.found() == []


@pytest.mark.req("L-03")
def test_what_is_called_like_a_task_and_is_none_is_moved_aside_unfollowed(sick: SickList, tmp_path: Path) -> None:
    sick.tasks(1)
    (tmp_path / "secret").write_text("mine", encoding="utf-8")
    sick.file("7").mkdir()
    (sick.file("7") / "inside").touch()
    sick.file("8").symlink_to(tmp_path / "secret")

    assert sick.names() == ["not-a-task-file", "not-a-task-file"]
    assert sick.fixed() == []
    folder, link = sick.fixed("not-a-task-file")

    assert folder.kept is not None and link.kept is not None
    assert os.listdir(folder.kept) == ["inside"]
    assert os.path.islink(link.kept)
    assert (tmp_path / "secret").read_text("utf-8") == "mine"
    assert sick.found() == []
    assert sick.yard.tasks.create("Next").id == "9"


@pytest.mark.req("L-11")
def test_a_file_that_only_says_deleted_is_a_note_and_goes_when_asked(sick: SickList) -> None:
    sick.tasks(2)
    sick.write("2", status="deleted")

    [finding] = sick.found()
    assert (finding.name, finding.kind.is_note) == ("deleted-mark", True)
    sick.fixed("deleted-mark")
    assert sick.found() == []


@pytest.mark.req("L-05", "L-06")
def test_half_edges_follow_what_waits(sick: SickList) -> None:
    sick.tasks(3)
    sick.write("2", blockedBy=["1"])
    sick.write("1", blocks=["3"])

    assert sick.names() == ["half-edge", "half-edge"]
    sick.fixed()

    assert sick.raw("1")["blocks"] == ["2"]
    assert sick.raw("2")["blockedBy"] == ["1"]
    assert sick.raw("3")["blockedBy"] == []
    assert sick.found() == []


@pytest.mark.req("L-05", "L-06")
def test_dependencies_on_what_is_not_there_are_taken_away(sick: SickList) -> None:
    sick.tasks(2)
    sick.write("1", blockedBy=["40"], blocks=["41"])

    assert sick.names() == ["dangling-blocker"]
    sick.fixed()

    assert (sick.raw("1")["blockedBy"], sick.raw("1")["blocks"]) == ([], [])
    assert sick.found() == []


@pytest.mark.req("L-06")
@pytest.mark.parametrize("ring", [["1"], ["1", "2"], ["1", "2", "3"]], ids=len)
def test_a_cycle_is_named_once_with_every_way_out_and_never_broken(sick: SickList, ring: list[str]) -> None:
    sick.tasks(3)
    for blocked, blocker in zip(ring, [*ring[1:], ring[0]]):
        sick.write(blocked, blockedBy=[blocker])
    for blocker, blocked in zip([*ring[1:], ring[0]], ring):
        sick.write(blocker, blocks=[blocked])
    before = sick.snapshot()

    [finding] = sick.found()

    assert finding.name == "cycle"
    assert " → ".join(f"#{task_id}" for task_id in [*ring, "1"]) in finding.why
    assert finding.fix.count("taskyard task unblock") == len(ring)
    assert sick.fixed() == []
    assert sick.snapshot() == before
    with pytest.raises(BadValue):
        sick.fixed("cycle")


@pytest.mark.req("L-09")
def test_a_task_set_aside_is_offered_again_when_asked(sick: SickList) -> None:
    sick.tasks(1)
    sick.yard.tasks.update("1", metadata={"taskyard": {"held": True, "priority": 2}})

    assert sick.names() == ["held-task"]
    assert sick.fixed() == []
    sick.fixed("held-task")

    found = sick.yard.tasks.claim_next(agent="bob")
    assert found is not None
    assert found.extra == {"priority": 2}


def test_a_repair_nobody_knows_is_refused_and_nothing_changes(sick: SickList) -> None:
    sick.tasks(1)
    sick.write("1", blocks=...)
    before = sick.snapshot()

    with pytest.raises(BadValue, match="hidden-task"):
        sick.fixed("hiden-task", "hidden-task")
    assert sick.snapshot() == before
