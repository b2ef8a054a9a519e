"""How a claim ends, seen by those who had it and by those who want it next."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskyard


def opened(tmp_path: Path, agent: str) -> taskyard.Yard:
    return taskyard.open(tasks_dir=tmp_path, list="claims", agent=agent)


@pytest.mark.req("L-09", "L-01")
def test_who_puts_a_task_back_may_start_it_again(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as yard:
        yard.tasks.create("Port the importer")
        yard.tasks.start("1")
        yard.tasks.update("1", status="pending")

        assert yard.tasks.start("1").owner == "ada"


@pytest.mark.req("L-08", "L-15")
def test_a_task_somebody_works_on_cannot_be_started_by_another(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as ada, opened(tmp_path, "bob") as bob:
        ada.tasks.create("Port the importer")
        ada.tasks.start("1")

        with pytest.raises(taskyard.AlreadyClaimed) as refused:
            bob.tasks.start("1")

        assert refused.value.owner == "ada"
        assert ada.tasks.start("1").owner == "ada"


@pytest.mark.req("L-16")
def test_a_task_in_progress_can_be_given_to_another(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as ada, opened(tmp_path, "lead") as lead:
        ada.tasks.create("Port the importer")
        ada.tasks.start("1")

        assert lead.tasks.update("1", owner="bob", status="in_progress").owner == "bob"


@pytest.mark.req("L-10")
def test_releasing_what_an_agent_had_passes_over_what_it_no_longer_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, "ada") as ada, opened(tmp_path, "lead") as lead:
        for subject in ("One", "Two", "Three"):
            ada.tasks.claim(ada.tasks.create(subject).id)
        before = lead.tasks.store.list()
        ada.tasks.complete("1")
        lead.tasks.delete("2")
        monkeypatch.setattr(lead.tasks.store, "list", lambda: before)  # as if both came after the look

        assert [task.id for task in lead.tasks.release_all("ada")] == ["3"]
