"""How a claim ends, seen by those who had it and by those who want it next."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import taskyard
from support.yards import open_yard
from taskyard.core.system import now_ms
from taskyard.storage.locks import RangeLock

pytestmark = pytest.mark.usefixtures("kept_in")


def opened(tmp_path: Path, agent: str | None) -> taskyard.Yard:
    return open_yard(tmp_path, agent, list="claims")


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


@pytest.mark.req("L-09")
def test_nobody_but_its_holder_ends_a_living_claim_unless_by_force(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as ada, opened(tmp_path, "eve") as eve, opened(tmp_path, None) as nobody:
        ada.tasks.start(ada.tasks.create("Port the importer").id)
        before = ada.tasks.log()

        attempts: list[Callable[[taskyard.Yard], object]] = [
            lambda yard: yard.tasks.complete("1"),
            lambda yard: yard.tasks.update("1", status="pending"),
            lambda yard: yard.tasks.release("1"),
            lambda yard: yard.tasks.start("1"),
            lambda yard: yard.tasks.assign("1", "eve"),
            lambda yard: yard.tasks.assign("1", "zoe"),
            lambda yard: yard.tasks.assign("1", None),
            lambda yard: yard.tasks.delete("1"),
        ]
        for yard in (eve, nobody):
            for attempt in attempts:
                with pytest.raises(taskyard.AlreadyClaimed, match="--force"):
                    attempt(yard)
        assert ada.tasks.log() == before
        assert eve.tasks.update("1", subject="Port the importers").subject == "Port the importers"
        assert eve.tasks.release("1", force=True).owner is None
        ada.tasks.claim("1")
        assert nobody.tasks.complete("1", force=True).is_done
        assert [change.act.note for change in ada.tasks.log("1") if change.act.note] == ["forced", "forced"]


@pytest.mark.req("L-09")
def test_a_holder_needs_no_token_to_be_known_and_each_of_its_changes_renews_a_claim_with_an_end(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, "ada") as first, opened(tmp_path, "ada") as second:
        first.tasks.create("Port the importer")
        ends = first.tasks.claim("1", lease=60).lease
        assert ends is not None and ends.expires is not None
        while now_ms() <= ends.since + 1:
            pass

        renewed = second.tasks.update("1", subject="Port the importers").lease

        assert renewed is not None and renewed.expires is not None
        assert renewed.expires > ends.expires
        assert second.tasks.complete("1").is_done


@pytest.mark.req("L-08", "L-09")
def test_the_next_task_is_claimed_and_started_in_one_change(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as ada:
        ada.tasks.create("Port the importer")
        task = ada.tasks.claim_next(start=True)

        assert task is not None and task.lease is not None
        assert (task.owner, task.status.value, task.lease.owner) == ("ada", "in_progress", "ada")
        assert [change.act.cause for change in ada.tasks.log()] == ["create", "start"]
        assert ada.tasks.complete("1").is_done


@pytest.mark.req("L-16")
def test_a_task_in_progress_can_be_given_to_another(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as ada, opened(tmp_path, "lead") as lead:
        lead.teams.create("claims", lead="lead")
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
        lead.tasks.delete("2", force=True)
        monkeypatch.setattr(lead.tasks.store, "list", lambda: before)  # as if both came after the look

        assert [task.id for task in lead.tasks.release_all("ada")] == ["3"]


@pytest.mark.in_files
@pytest.mark.req("L-09", "L-04")
def test_a_task_that_somebody_has_locked_keeps_no_other_from_coming_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.2")
    with opened(tmp_path, "lead") as lead, opened(tmp_path, "ada") as ada:
        for number in ("1", "2", "3"):
            lead.tasks.create(f"Task {number}")
            lease = ada.tasks.claim(number, lease=0.001).lease
        assert lease is not None and lease.expires is not None
        while now_ms() <= lease.expires:
            pass
        with RangeLock(str(tmp_path / "claims" / ".taskyard" / "lock")) as lock:
            lock.take(1, timeout=20.0, what="a test's task")
            assert [task.owner for task in lead.tasks.list()] == ["ada", None, None]
        assert [task.owner for task in lead.tasks.list()] == [None, None, None]


@pytest.mark.in_files
@pytest.mark.req("L-11", "L-04")
def test_a_task_that_somebody_has_locked_keeps_no_others_change_by_hand_from_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.2")
    with opened(tmp_path, "lead") as lead:
        files = [tmp_path / "claims" / f"{lead.tasks.create('Old words').id}.json" for _ in range(3)]
        for file in files:
            file.write_text(file.read_text(encoding="utf-8").replace("Old words", "New words"), encoding="utf-8")

        def known() -> list[str]:
            lead.tasks.list()
            return [task for change in lead.tasks.log() if change.act.cause == "external" for task in change.tasks]

        with RangeLock(str(tmp_path / "claims" / ".taskyard" / "lock")) as lock:
            lock.take(1, timeout=20.0, what="a test's task")
            assert sorted(known()) == ["2", "3"]
        assert sorted(known()) == ["1", "2", "3"]


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
        [told] = lead.mail.peek("lead")
        assert "set aside" in told.text and "`taskyard task assign 1 AGENT --list claims`" in told.text

        taken = lead.tasks.claim("1")
        assert not taken.is_held and "taskyard" not in taken.metadata
        lead.tasks.release("1")
        again = ada.tasks.claim("1", lease=0.001)
        assert again.lease is not None and again.lease.expires is not None
        while now_ms() <= again.lease.expires:
            pass
        assert not lead.tasks.get("1").is_held, "the losses were counted from the start"


TAKEN = {
    "by assigning": "yard.tasks.create('a'); yard.tasks.assign('1', 'zed')",
    "by assigning and starting": "yard.tasks.create('a'); yard.tasks.update('1', owner='zed', status='in_progress')",
    "at its creation": "yard.tasks.create('a', owner='zed')",
    "at its creation among others": "yard.tasks.create('a', owner='zed', blocks=[yard.tasks.create('b').id])",
}


@pytest.mark.req("L-09", "L-10")
@pytest.mark.parametrize("code", TAKEN.values(), ids=TAKEN)
def test_what_an_agent_took_for_itself_in_any_way_comes_back_when_it_dies(
    tmp_path: Path, kept_in: str, code: str
) -> None:
    place = f"tasks_dir={str(tmp_path)!r}" if kept_in == "files" else f"store={kept_in!r}"
    opening = f"import os, taskyard; yard = taskyard.open({place}, list='claims', agent='zed')"
    died = subprocess.run([sys.executable, "-c", f"{opening}; {code}; os.kill(os.getpid(), 9)"], timeout=30)
    assert died.returncode == -9
    with opened(tmp_path, "ada") as yard:
        assert {(task.owner, task.status.value) for task in yard.tasks.list()} == {(None, "pending")}
        assert [change.act.cause for change in yard.tasks.log()][-1] == "lease_lost"
        assert yard.tasks.claim_next() is not None


@pytest.mark.req("L-09")
def test_a_creator_that_owns_its_task_holds_it_and_another_owner_is_a_name_alone(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as ada, opened(tmp_path, "eve") as eve:
        mine, theirs = ada.tasks.create("a", owner="ada"), ada.tasks.create("b", owner="zoe")
        assert mine.lease == ada.tasks.get("1").lease is not None
        assert theirs.lease is ada.tasks.get("2").lease is None
        with pytest.raises(taskyard.AlreadyClaimed):
            eve.tasks.complete("1")
        with pytest.raises(taskyard.AlreadyClaimed):
            eve.tasks.assign("2", "eve")
        assert eve.tasks.assign("2", "bob").owner == "bob"
        assert eve.tasks.release("1", force=True).owner is None
        with pytest.raises(taskyard.LeaseLost):
            ada.tasks.update("1", subject="late")


@pytest.mark.req("L-09")
def test_the_lead_of_the_team_hands_on_and_removes_what_a_member_holds(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as ada, opened(tmp_path, "lea") as lea:
        lea.teams.create("claims", lead="lea")
        for subject in "ab":
            ada.tasks.claim(ada.tasks.create(subject).id)
        assert lea.tasks.assign("1", "zoe").owner == "zoe"
        lea.tasks.delete("2")
        with pytest.raises(taskyard.LeaseLost):
            ada.tasks.update("1", subject="late")


@pytest.mark.req("L-09", "L-11")
def test_several_are_deleted_or_none(tmp_path: Path) -> None:
    with opened(tmp_path, "ada") as ada, opened(tmp_path, "eve") as eve:
        for subject in "ab":
            ada.tasks.create(subject)
        ada.tasks.claim("2")
        with pytest.raises(taskyard.AlreadyClaimed):
            eve.tasks.delete_all(["1", "2"])
        assert len(eve.tasks.list()) == 2
        eve.tasks.delete_all(["1", "2"], force=True)
        assert (len(eve.tasks.list()), eve.tasks.log()[-1].act.note) == (0, "forced")
