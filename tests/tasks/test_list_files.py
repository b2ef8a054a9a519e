"""A list's folder stays the one that is meant, whatever others do to it meanwhile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskyard
from taskyard.errors import Busy
from taskyard.storage.locks import RangeLock
from taskyard.tasks.file_store import FileStore
from taskyard.tasks.writer import ListWriter


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[taskyard.Yard]:
    with taskyard.open(tasks_dir=tmp_path, list="plan", foreign_writers=True) as yard:
        yield yard


def written_by_another(folder: Path, *ids: int) -> None:
    for number in ids:
        task = {"id": str(number), "subject": f"s{number}", "description": "", "status": "pending"}
        (folder / f"{number}.json").write_text(json.dumps({**task, "blocks": [], "blockedBy": []}))


@pytest.mark.req("L-04")
def test_who_tries_again_after_busy_holds_what_it_writes_under(
    yard: taskyard.Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.tasks.create("a")
    lock_file = str(tmp_path / "plan" / ".taskyard" / "lock")
    store = yard.tasks.store
    assert isinstance(store, FileStore)
    files = store._files
    files.settings = files.settings._replace(lock_timeout=0.05)
    holder = RangeLock(lock_file)
    holder.take(1, timeout=1, what="it")
    with pytest.raises(Busy):
        yard.tasks.update("1", description="while it is held")
    files.settings = files.settings._replace(lock_timeout=10.0)
    holder.close()

    free: list[bool] = []
    commit = ListWriter.commit

    def watched(self: ListWriter, *args: object) -> None:
        for _ in range(20):  # long enough for one who gave up waiting to be granted what it waited for
            with RangeLock(lock_file) as other:
                free.append(other.try_take(1))
        commit(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ListWriter, "commit", watched)
    yard.tasks.update("1", description="after that")

    assert free == [False] * 20


@pytest.mark.req("L-03", "L-11")
def test_an_id_that_another_program_gave_out_and_took_back_does_not_return(yard: taskyard.Yard, tmp_path: Path) -> None:
    yard.tasks.create("a")
    written_by_another(tmp_path / "plan", 2, 3)
    yard.tasks.list()
    os.unlink(tmp_path / "plan" / "3.json")
    os.unlink(tmp_path / "plan" / "2.json")
    yard.tasks.list()

    assert yard.tasks.create("b").id == "4"
    assert [change.act.cause for change in yard.tasks.log("3")] == ["external", "external"]
    assert yard.tasks.restore("3").subject == "s3"


@pytest.mark.req("L-03", "L-04")
def test_a_folder_that_was_moved_away_is_left_alone_and_made_anew(yard: taskyard.Yard, tmp_path: Path) -> None:
    for subject in ("a", "b", "c"):
        yard.tasks.create(subject)
    assert len(yard.tasks.list()) == 3
    os.rename(tmp_path / "plan", tmp_path / "plan.bak")
    before = sorted(os.listdir(tmp_path / "plan.bak"))

    assert yard.tasks.create("d").id == "1"
    with taskyard.open(tasks_dir=tmp_path, list="plan", foreign_writers=True) as other:
        assert other.tasks.create("e").id == "2"
    assert [task.subject for task in yard.tasks.list()] == ["d", "e"]

    assert sorted(os.listdir(tmp_path / "plan.bak")) == before
