"""What a refusal says: which task, whose it is, and what to do next; the same facts as attributes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import taskyard
from support.cli import taskyard as run
from support.yards import open_yard, yards


@pytest.mark.req("L-08")
def test_a_claimed_task_names_its_owner_and_three_ways_on(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("Port the importer")
        ada.tasks.claim("1")
        with pytest.raises(taskyard.AlreadyClaimed) as refused:
            bob.tasks.claim("1")

    said = str(refused.value)
    assert all(words in said for words in ("#1", "'ada'", "Ask", "task next", "task release 1 --force"))
    assert (refused.value.task_id, refused.value.owner, refused.value.instance) == ("1", "ada", None)


@pytest.mark.req("L-15")
@pytest.mark.parametrize("verb", ["claim", "start"])
def test_another_living_instance_of_the_same_name_is_named(tmp_path: Path, verb: str) -> None:
    with open_yard(tmp_path, "ada") as ada, open_yard(tmp_path, "ada", person=True) as shell:
        ada.tasks.create("Port the importer")
        held = ada.tasks.claim("1").lease
        with pytest.raises(taskyard.AlreadyClaimed) as refused:
            getattr(shell.tasks, verb)("1")

    assert held is not None
    assert refused.value.instance == held.instance
    assert f"another live agent 'ada' (instance {held.instance})" in str(refused.value)
    assert "another name" in str(refused.value)


@pytest.mark.req("L-11")
@pytest.mark.parametrize("store", ["files", "memory:"])
def test_restoring_what_is_there_says_so(tmp_path: Path, store: str) -> None:
    with taskyard.open(tasks_dir=tmp_path, list="plan", store=store) as yard:
        yard.tasks.create("Port the importer")
        yard.tasks.delete("1")
        yard.tasks.restore("1")
        with pytest.raises(taskyard.NothingToRestore) as refused:
            yard.tasks.restore("1")

    assert str(refused.value).startswith("Task #1 is on list 'plan': there is nothing to restore.")
    assert (refused.value.code, refused.value.task_id, refused.value.list) == ("already_exists", "1", "plan")


def test_an_id_that_is_too_long_is_told_the_limit() -> None:
    shown = run("task", "show", "99999999999999")

    assert shown.code == 2
    assert "999,999,999" in shown.err
    assert "nine digits" in shown.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "The file is empty: expected"),
        ("  \n", "The file is empty: expected"),
        ('{"tasks": [', "The file is not JSON (Expecting value: line 1 column 12"),
    ],
)
def test_an_empty_or_torn_file_is_told_what_it_is(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")

    imported = run("task", "import", str(tmp_path / "plan.json"))

    assert imported.code == 2
    assert told in imported.err


@pytest.mark.parametrize("name", ["nonexistent", "nonexistent.json"])
def test_a_file_that_is_not_there_is_not_found_whatever_its_ending(tmp_path: Path, name: str) -> None:
    imported = run("task", "import", str(tmp_path / name), "--json")

    assert (imported.code, imported.error["code"]) == (4, "not_found")
    assert name in imported.error["message"]


@pytest.mark.req("L-11")
@pytest.mark.parametrize("verb", ["create", "update"])
def test_a_full_disk_names_the_task_and_says_that_nothing_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("one")
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(taskyard.StorageError) as refused:
            yard.tasks.create("two") if verb == "create" else yard.tasks.update("1", subject="uno")
        monkeypatch.undo()
        monkeypatch.setenv("TASKYARD_HOME", str(tmp_path / "home"))
        assert [task.subject for task in yard.tasks.list()] == ["one"]

    task = "2" if verb == "create" else "1"
    assert refused.value.tasks == (task,)
    assert str(refused.value).startswith(f"Task #{task} could not be written (")
    assert "the disk is full. Nothing was changed. Make room on the disk, then try again." in str(refused.value)


@pytest.mark.req("L-11")
def test_a_disk_that_fills_after_the_decision_does_not_claim_that_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taskyard.tasks import writer

    def refuse(*_: object) -> bool:
        raise OSError(errno.ENOSPC, "no space")

    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("one")
        monkeypatch.setattr(writer, "swap", refuse)
        with pytest.raises(taskyard.StorageError) as refused:
            yard.tasks.update("1", subject="uno")
        monkeypatch.undo()

    assert "Nothing was changed" not in str(refused.value)
    assert "The next command completes the change or undoes it, whole." in str(refused.value)
