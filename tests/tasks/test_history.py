"""The log is followed back no further than a question needs."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskyard
from taskyard.storage.journal import Journal


@pytest.mark.req("L-11")
def test_bringing_a_task_back_reads_its_end_and_not_its_whole_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.open(tasks_dir=tmp_path, list="history", agent="ada", is_person=True) as yard:
        yard.tasks.create("Port the importer")
        for number in range(200):
            yard.tasks.update("1", subject=f"Port the importer, take {number}")
        yard.tasks.delete("1")
        read: list[int] = []
        original = Journal.read
        monkeypatch.setattr(Journal, "read", lambda self, at: read.append(at) or original(self, at))  # type: ignore[func-returns-value]

        assert yard.tasks.restore("1").subject == "Port the importer, take 199"
        assert len(read) < 10  # the removal and the change before it, for each time somebody asks

        monkeypatch.undo()
        assert len(yard.tasks.log("1")) == 203
