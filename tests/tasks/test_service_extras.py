"""Optional fields of a task through the list's verbs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import taskyard
from support.yards import on_disk, open_yard, yards
from taskyard.errors import PathsOverlap

pytestmark = pytest.mark.usefixtures("kept_in")


@pytest.fixture
def yard(tmp_path: Path) -> taskyard.Yard:
    return open_yard(tmp_path, "ada")


@pytest.mark.in_files
@pytest.mark.req("L-21")
def test_extras_are_kept_under_metadata_and_laid_over_each_other(tmp_path: Path, yard: taskyard.Yard) -> None:
    yard.tasks.create("a", priority=2, labels=["x"], metadata={"k": 1})
    yard.tasks.update("1", labels=["y"], due="2026-05-01", metadata={"k": None})

    assert on_disk(tmp_path / "plan", "1")["metadata"] == {
        "taskyard": {"priority": 2, "labels": ["y"], "due": "2026-05-01"}
    }


@pytest.mark.req("L-21")
def test_two_agents_setting_different_extras_at_once_lose_neither(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        for number in range(1, 11):
            task_id = ada.tasks.create("a").id
            threads = [
                threading.Thread(target=ada.tasks.update, args=(task_id,), kwargs={"priority": 1}),
                threading.Thread(target=bob.tasks.update, args=(task_id,), kwargs={"labels": ["x"]}),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(20)
            assert ada.tasks.get(str(number)).extra == {"priority": 1, "labels": ["x"]}


@pytest.mark.req("L-21")
@pytest.mark.parametrize(("policy", "wanted"), [("warn", 1), ("refuse", None), ("off", 0)])
def test_overlapping_paths_are_warned_of_refused_or_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, wanted: int | None
) -> None:
    monkeypatch.setenv("TASKYARD_PATHS_POLICY", policy)
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("a", paths=["src"])
        ada.tasks.create("b", paths=["src/x.py"])
        bob.tasks.claim("1")
        if wanted is None:
            with pytest.raises(PathsOverlap):
                ada.tasks.claim("2")
            assert ada.tasks.claim_next() is None
        else:
            assert len(ada.tasks.claim("2").notes) == wanted
