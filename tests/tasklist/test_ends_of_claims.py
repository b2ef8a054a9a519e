"""How a claim ends, seen by those who had it and by those who want it next."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskyard
from taskyard.clock import now_ms


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


@pytest.mark.req("L-09")
def test_the_lead_hears_once_of_a_task_set_aside_and_who_takes_it_starts_afresh(tmp_path: Path) -> None:
    with opened(tmp_path, "lead") as lead, opened(tmp_path, "ada") as ada:
        lead.teams.create("claims", lead="lead")
        lead.tasks.create("Port the importer")
        for _ in range(3):
            claimed = ada.tasks.claim("1", lease=0.001)
            assert claimed.lease is not None and claimed.lease.expires is not None
            while now_ms() <= claimed.lease.expires:
                pass
            lead.tasks.list()

        assert lead.tasks.get("1").is_held
        assert lead.tasks.claim_next(agent="lead") is None
        assert ["set aside" in message.text for message in lead.mail.peek("lead")] == [True]

        taken = lead.tasks.claim("1")
        assert not taken.is_held and "taskyard" not in taken.metadata
        lead.tasks.release("1")
        again = ada.tasks.claim("1", lease=0.001)
        assert again.lease is not None and again.lease.expires is not None
        while now_ms() <= again.lease.expires:
            pass
        assert not lead.tasks.get("1").is_held, "the losses were counted from the start"
