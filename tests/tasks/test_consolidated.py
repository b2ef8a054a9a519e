"""The older `tasks.json`: read, never written, and behind every N.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.yards import on_disk, open_yard, write_task
from taskyard.errors import Blocked, Damaged, TaskNotFound
from taskyard.tasks.model import Task
from taskyard.tasks.reader import ConsolidatedFile, resolve_owner
from taskyard.yard.doctor import doctor

OLDER = [
    {"id": 1, "title": "First", "status": "completed"},
    {"id": 2, "title": "Second", "status": "pending", "dependencies": [1], "owner": "teammate-2"},
    {"id": 5, "title": "Fifth", "dependencies": [2], "description": "long"},
]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    (tmp_path / "plan").mkdir()
    path = tmp_path / "plan" / "tasks.json"
    path.write_text(json.dumps({"tasks": OLDER}))
    return path


@pytest.mark.req("L-13")
def test_its_tasks_are_read_in_their_own_words_and_the_file_is_never_written(tmp_path: Path, older: Path) -> None:
    before = older.read_bytes()
    with open_yard(tmp_path, "ada") as yard:
        found = [(task.id, task.subject, task.status.value, task.blocked_by, task.blocks) for task in yard.tasks.list()]
        assert found == [
            ("1", "First", "completed", (), ("2",)),
            ("2", "Second", "pending", ("1",), ("5",)),
            ("5", "Fifth", "pending", ("2",), ()),
        ]
        assert yard.tasks.get("5").description == "long"
        assert yard.tasks.create("new").id == "6"
        yard.tasks.update("2", subject="Changed")
    assert older.read_bytes() == before
    assert on_disk(tmp_path / "plan", "2")["subject"] == "Changed"


@pytest.mark.req("L-13")
def test_a_file_of_its_own_wins_over_it(tmp_path: Path, older: Path) -> None:
    write_task(tmp_path / "plan", "2", subject="Newer")
    with open_yard(tmp_path, "ada") as yard:
        assert [task.subject for task in yard.tasks.list()] == ["First", "Newer", "Fifth"]


@pytest.mark.req("L-13", "L-12")
def test_a_numbered_teammate_is_the_tracker_of_that_place(tmp_path: Path, older: Path) -> None:
    for number, name in ((7, "ada"), (8, "bob")):
        write_task(tmp_path / "plan", str(number), subject=name, metadata={"_internal": True})
    with open_yard(tmp_path, "bob") as yard:
        assert yard.tasks.get("2").owner == "bob"
        assert [task.owner for task in yard.tasks.list()] == [None, "bob", None]
        assert yard.tasks.start("2").owner == "bob"


@pytest.mark.req("L-13", "L-11")
def test_a_task_deleted_from_it_stays_deleted_and_comes_back_when_restored(tmp_path: Path, older: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.delete("1")
        yard.tasks.delete("5")
        assert [task.id for task in yard.tasks.list()] == ["2"]
        with pytest.raises(TaskNotFound) as caught:
            yard.tasks.get("5")
        assert caught.value.restorable
    with open_yard(tmp_path, "bob") as yard:
        assert [task.id for task in yard.tasks.list()] == ["2"]
        assert yard.tasks.restore("5").subject == "Fifth"
        assert [task.id for task in yard.tasks.list()] == ["2", "5"]


@pytest.mark.req("L-13")
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"tasks": [{"id": "x"}]}', b'{"tasks": ["x"]}', b'{"tasks": [[[1]]]}', b'{"tasks": 1}']
)
def test_what_cannot_be_read_in_it_is_listed_as_damaged(tmp_path: Path, older: Path, data: bytes) -> None:
    older.write_bytes(data)
    with open_yard(tmp_path, "ada") as yard:
        assert [found.file for found in yard.tasks.list().damaged] == ["tasks.json"]
        assert yard.tasks.create("a").id == "1"


@pytest.mark.req("L-13", "L-03", "L-07")
def test_an_entry_that_cannot_be_read_keeps_its_id_and_still_blocks(tmp_path: Path, older: Path) -> None:
    rows = [{"id": 2, "status": "done"}, {"id": 9, "title": 7}, {"id": 1, "title": "First", "dependencies": [2]}]
    older.write_text(json.dumps({"tasks": rows}), encoding="utf-8")
    with open_yard(tmp_path, "ada") as yard:
        listing = yard.tasks.list()
        assert [task.id for task in listing] == ["1"]
        assert sorted(found.why for found in listing.damaged) == [
            "its task #2 cannot be read: its status is 'done'",
            "its task #9 cannot be read: it has no subject",
        ]
        for verb in (yard.tasks.claim, yard.tasks.start, yard.tasks.complete):
            with pytest.raises(Blocked, match="#2"):
                verb("1")
        for about in (yard.tasks.get, yard.tasks.claim, yard.tasks.delete):
            with pytest.raises(Damaged, match=r"tasks\.json cannot be read: its task #2"):
                about("2")
        assert yard.tasks.claim_next() is None
        assert not yard.tasks.store.is_finished()
        assert yard.tasks.create("new").id == "10"

        write_task(tmp_path / "plan", "2", status="completed")
        assert yard.tasks.complete("1").is_done
        assert [found.why[:11] for found in yard.tasks.list().damaged] == ["its task #9"]


@pytest.mark.req("L-13", "L-11", "L-03")
def test_an_entry_that_says_deleted_is_gone_and_its_id_spent(tmp_path: Path, older: Path) -> None:
    older.write_text(json.dumps({"tasks": [{"id": 4, "title": "Gone", "status": "deleted"}]}), encoding="utf-8")
    with open_yard(tmp_path, "ada") as yard:
        assert (tuple(yard.tasks.list()), yard.tasks.list().damaged) == ((), ())
        assert yard.tasks.create("new").id == "5"


@pytest.mark.req("L-13")
def test_the_doctor_names_each_entry_that_cannot_be_read_and_leaves_those_who_wait_for_it(
    tmp_path: Path, older: Path
) -> None:
    older.write_text(json.dumps({"tasks": [{"id": 2}, {"id": 3}]}), encoding="utf-8")
    write_task(tmp_path / "plan", "1", blockedBy=["2"])
    write_task(tmp_path / "plan", "3")
    with doctor(tasks_dir=tmp_path, list="plan") as found:
        assert [(one.name, one.task_id) for one in found.examine() if one.file == str(older)] == [
            ("damaged-older-list", "2")
        ]
        assert not any(one.name == "dangling-blocker" for one in found.examine())


@pytest.mark.req("L-13")
def test_it_is_read_again_only_when_it_changed(older: Path) -> None:
    found = ConsolidatedFile(str(older))
    first = found.tasks()
    assert found.tasks() is first
    older.write_bytes(b'{"tasks": []}')
    assert found.tasks() == {}
    older.unlink()
    assert (found.tasks(), found.damage()) == ({}, None)


@pytest.mark.parametrize(
    "owner", [None, "teammate-0", "teammate-3", "teammate-x", "teammate-²", "other-1", "teammate-"]
)
def test_an_owner_that_is_no_place_among_the_trackers_stays_what_it_is(owner: str | None) -> None:
    task = Task("1", "a", owner=owner)

    assert resolve_owner(task, [Task("7", "ada"), Task("8", "bob")]) == task
