"""A list that may only be read still tells its past."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import taskyard
from support.disks import make_read_only, mounted
from support.yards import open_yard, snapshot
from taskyard.errors import StorageError, TaskNotFound

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting is root's")


@pytest.fixture
def disk() -> Iterator[Path]:
    """A disk with a list of which #2 was deleted."""
    with mounted() as folder:
        with open_yard(folder / "tasks", "ada") as yard:
            yard.tasks.create("one")
            yard.tasks.create("two")
            yard.tasks.start("1")
            yard.tasks.delete("2")
        yield folder


@pytest.mark.req("L-11")
def test_a_read_only_list_tells_its_log_and_what_can_be_restored(disk: Path) -> None:
    with open_yard(disk / "tasks", "bob") as yard:
        whole, life, end = yard.tasks.log(), yard.tasks.log("2"), yard.tasks.store.position()
    make_read_only(disk)
    before = snapshot(disk)

    with open_yard(disk / "tasks", "bob") as yard:
        assert yard.tasks.log() == whole
        assert [change.act.cause for change in whole] == ["create", "create", "start", "delete"]
        assert yard.tasks.log("2") == life
        assert yard.tasks.log(since=whole[2].id) == whole[2:]
        assert yard.tasks.store.position() == end
        with pytest.raises(TaskNotFound, match="task restore 2"):
            yard.tasks.get("2")
        with pytest.raises(StorageError, match="read-only"):
            yard.tasks.restore("2")
    assert snapshot(disk) == before


@pytest.mark.req("L-11", "U-02")
def test_the_command_line_tells_the_log_of_a_read_only_list(disk: Path) -> None:
    make_read_only(disk)
    where = ("--tasks-dir", str(disk / "tasks"), "--list", "plan")

    assert [line.split()[3] for line in taskyard("task", "log", *where).lines] == [
        "create",
        "create",
        "start",
        "delete",
    ]
    assert [json.loads(line)["cause"] for line in taskyard("task", "events", *where).lines][-1] == "delete"
    shown = taskyard("task", "show", "2", *where)
    assert (shown.code, "task restore 2" in shown.err) == (4, True)


@pytest.mark.req("L-11")
def test_without_its_ledger_a_read_only_log_is_read_from_its_beginning(disk: Path) -> None:
    (disk / "tasks" / "plan" / ".taskyard" / "ledger").unlink()
    make_read_only(disk)

    with open_yard(disk / "tasks", "bob") as yard:
        assert [change.act.cause for change in yard.tasks.log("2")] == ["create", "delete"]
        with pytest.raises(TaskNotFound, match="task restore 2"):
            yard.tasks.get("2")


@pytest.mark.req("L-11")
def test_another_programs_list_that_may_only_be_read_has_no_past(disk: Path) -> None:
    shutil.rmtree(disk / "tasks" / "plan" / ".taskyard")
    make_read_only(disk)

    with open_yard(disk / "tasks", "bob") as yard:
        assert (yard.tasks.log(), yard.tasks.store.position()) == ((), 0)
        with pytest.raises(TaskNotFound) as missing:
            yard.tasks.get("2")
    assert (missing.value.restorable, missing.value.nearest) == (False, ("1",))


@pytest.mark.req("L-11")
@pytest.mark.parametrize("part", [".taskyard", ".taskyard/log"])
def test_a_log_behind_a_planted_link_is_not_read(disk: Path, part: str) -> None:
    path = disk / "tasks" / "plan" / part
    path.rename(disk / "elsewhere")
    path.symlink_to(disk / "elsewhere")
    make_read_only(disk)

    with open_yard(disk / "tasks", "bob") as yard:
        with pytest.raises(StorageError, match="symbolic link"):
            yard.tasks.log()
        assert yard.tasks.store.position() == 0
        with pytest.raises(TaskNotFound) as missing:
            yard.tasks.get("2")
    assert not missing.value.restorable


@pytest.mark.req("L-11", "L-13")
def test_a_task_of_the_older_file_that_was_deleted_stays_so_on_a_read_only_disk(disk: Path) -> None:
    older = {"tasks": [{"id": 7, "title": "Seven"}, {"id": 8, "title": "Eight"}]}
    (disk / "tasks" / "plan" / "tasks.json").write_text(json.dumps(older), encoding="utf-8")
    with open_yard(disk / "tasks", "ada") as yard:
        yard.tasks.delete("7")
    make_read_only(disk)

    with open_yard(disk / "tasks", "bob") as yard:
        assert [task.id for task in yard.tasks.list()] == ["1", "8"]
