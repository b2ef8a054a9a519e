"""The list's verbs, as agents use them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import taskyard
from support.wait import until
from support.yards import on_disk, open_yard, yards
from taskyard.errors import (
    AgentBusy,
    AlreadyClaimed,
    AlreadyResolved,
    BadTransition,
    BadValue,
    Blocked,
    LeaseLost,
    TaskNotFound,
    UsageError,
)
from taskyard.tasks.model import Act, Decision, Facts

pytestmark = pytest.mark.usefixtures("kept_in")


@pytest.fixture
def yard(tmp_path: Path) -> taskyard.Yard:
    return open_yard(tmp_path, "ada")


@pytest.mark.in_files
@pytest.mark.req("L-01")
def test_a_new_task_is_pending_and_its_subject_stands_for_a_description(tmp_path: Path, yard: taskyard.Yard) -> None:
    task = yard.tasks.create("Port the importer")

    assert (task.id, task.status.value, task.description, task.owner) == ("1", "pending", "Port the importer", None)
    assert list(on_disk(tmp_path / "plan", "1")) == (
        ["id", "subject", "description", "status", "blocks", "blockedBy", "createdAt", "updatedAt"]
    )
    assert yard.tasks.create("Other", description="").description == "Other"


@pytest.mark.req("L-01")
@pytest.mark.parametrize(
    ("moves", "ends"),
    [
        (("in_progress", "pending", "in_progress", "completed", "pending"), "pending"),
        (("completed", "pending", "completed"), "completed"),
        (("in_progress", "in_progress", "completed", "completed"), "completed"),
    ],
)
def test_a_task_moves_along_every_allowed_way(yard: taskyard.Yard, moves: tuple[str, ...], ends: str) -> None:
    task_id = yard.tasks.create("a").id
    for status in moves:
        yard.tasks.update(task_id, status=status)

    assert yard.tasks.get(task_id).status.value == ends


@pytest.mark.req("L-01")
def test_a_completed_task_is_reopened_before_it_is_started_again(yard: taskyard.Yard) -> None:
    yard.tasks.complete(yard.tasks.create("a").id)

    with pytest.raises(BadTransition):
        yard.tasks.start("1")


@pytest.mark.req("L-01")
def test_completing_twice_changes_nothing_and_tells_nobody(yard: taskyard.Yard) -> None:
    yard.tasks.create("a")
    first = yard.tasks.complete("1")
    log = yard.tasks.log()

    again = yard.tasks.complete("1")

    assert (again.updated_at, again.ready, again.notes) == (first.updated_at, (), ())
    assert yard.tasks.log() == log


@pytest.mark.req("L-08")
def test_each_refusal_of_a_claim_has_its_own_code_and_names_what_is_in_the_way(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        for subject in ("taken", "blocker", "done", "free"):
            ada.tasks.create(subject)
        ada.tasks.block("4", by="2")
        bob.tasks.claim("1")
        ada.tasks.complete("3")

        with pytest.raises(AlreadyClaimed) as claimed:
            ada.tasks.claim("1")
        with pytest.raises(Blocked) as blocked:
            ada.tasks.claim("4")
        with pytest.raises(AlreadyResolved):
            ada.tasks.claim("3")
        with pytest.raises(TaskNotFound) as missing:
            ada.tasks.claim("77")
        with pytest.raises(AgentBusy) as busy:
            bob.tasks.claim("2", check_busy=True)

    assert claimed.value.owner == "bob"
    assert blocked.value.blockers == ("2",)
    assert missing.value.nearest[0] == "4"
    assert busy.value.tasks == ("1",)


@pytest.mark.req("L-08")
def test_claiming_ones_own_again_succeeds_and_changes_nothing(yard: taskyard.Yard) -> None:
    yard.tasks.create("a")
    first = yard.tasks.claim("1")

    assert yard.tasks.claim("1") == first
    assert [change.act.cause for change in yard.tasks.log()] == ["create", "claim"]


@pytest.mark.req("L-08", "L-21")
def test_claim_next_takes_the_first_free_task_the_agent_can_do(yard: taskyard.Yard) -> None:
    yard.tasks.create("needs a GPU", requires=["gpu"])
    yard.tasks.create("blocked", blocked_by=["1"])
    yard.tasks.create("low", priority=9)
    yard.tasks.create("plain")

    found = [yard.tasks.claim_next(where=lambda task: task.subject != "plain"), yard.tasks.claim_next(start=True)]
    assert [task and task.id for task in found] == ["3", "4"]
    assert found[1] is not None
    assert found[1].status.value == "in_progress"
    assert yard.tasks.claim_next() is None
    able = yard.tasks.claim_next(capabilities=["gpu", "x"], lease=60)
    assert able is not None
    assert able.lease is not None
    assert (able.id, able.lease.kind) == ("1", "time")


@pytest.mark.req("L-15")
def test_starting_makes_the_starter_owner_unless_there_is_one(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("a")
        ada.tasks.create("b")
        ada.tasks.assign("2", "bob")

        assert ada.tasks.start("1").owner == "ada"
        with pytest.raises(AlreadyClaimed):
            ada.tasks.start("2")
        assert bob.tasks.start("2").owner == "bob"


@pytest.mark.req("L-07")
def test_a_blocked_task_is_not_claimed_started_or_completed_until_its_last_blocker_is_done(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("first")
        ada.tasks.create("second")
        ada.tasks.create("third", blocked_by=["1", "2"])
        for verb in (ada.tasks.claim, ada.tasks.start, ada.tasks.complete):
            with pytest.raises(Blocked) as caught:
                verb("3")
            assert caught.value.blockers == ("1", "2")
        ada.tasks.assign("3", "bob")
        assert len(list(bob.mail.read("bob"))) == 1

        assert ada.tasks.complete("1").ready == ()
        assert ada.tasks.complete("2").ready == ("3",)
        ada.tasks.complete("2")

        assert [message.text for message in bob.mail.read("bob")] == [
            "Task #3 is ready: its last blocker, #2, is completed."
        ]
        assert bob.tasks.start("3").owner == "bob"


@pytest.mark.req("L-07")
def test_a_person_may_insist_and_the_log_says_so(yard: taskyard.Yard) -> None:
    yard.tasks.create("a")
    yard.tasks.create("b", blocked_by=["1"])

    yard.tasks.claim("2", force=True)
    yard.tasks.complete("2", force=True)

    assert [change.act.note for change in yard.tasks.log("2")] == ["", "forced", "forced"]


@pytest.mark.req("L-16")
def test_a_new_owner_gets_mail_with_the_facts_and_nobody_about_their_own_act(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("Port it", description="All of it", owner="bob")
        ada.tasks.create("Mine", owner="ada")
        ada.tasks.claim("2")
        ada.tasks.assign("2", "bob")
        ada.tasks.assign("2", "bob")
        bob.tasks.assign("2", "ada")
        to_bob, to_ada = list(bob.mail.read("bob")), list(ada.mail.read("ada"))

    assert [(m.sender, m.type, m.data["taskId"], m.data["subject"], m.data["assignedBy"]) for m in to_bob] == [
        ("ada", "task_assignment", "1", "Port it", "ada"),
        ("ada", "task_assignment", "2", "Mine", "ada"),
    ]
    assert to_bob[0].data["description"] == "All of it"
    assert all(message.sent_at > 0 for message in to_bob)
    assert [(m.sender, m.data["taskId"]) for m in to_ada] == [("bob", "2")]


@pytest.mark.req("L-17")
def test_the_main_agent_is_told_to_have_its_work_verified_and_a_sub_agent_is_not(tmp_path: Path) -> None:
    for name, is_main, wanted in (("main", True, 1), ("sub", False, 0)):
        with taskyard.open(tasks_dir=tmp_path, list=name, agent="ada", is_main=is_main) as yard:
            for subject in ("a", "b", "c"):
                yard.tasks.create(subject)
            notes = [yard.tasks.complete(task_id).notes for task_id in ("1", "2", "3")]
        assert [len(note) for note in notes] == [0, 0, wanted]


@pytest.mark.req("L-17")
def test_the_nudge_can_be_switched_off_and_its_verifier_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def last_note(name: str) -> tuple[str, ...]:
        with taskyard.open(tasks_dir=tmp_path, list=name) as yard:
            for subject in ("a", "b", "c"):
                yard.tasks.create(subject)
            return [yard.tasks.complete(task_id).notes for task_id in ("1", "2", "3")][-1]

    monkeypatch.setenv("TASKYARD_VERIFIER", "auditor")
    assert "auditor" in last_note("named")[0]
    monkeypatch.setenv("TASKYARD_VERIFY_NUDGE", "off")
    assert last_note("off") == ()


@pytest.mark.req("L-10")
def test_whoever_leaves_gives_back_everything_unfinished(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        for subject in "abcd":
            ada.tasks.create(subject)
        bob.tasks.claim("1")
        bob.tasks.start("2")
        bob.tasks.complete("3")
        ada.tasks.claim("4")

        released = ada.tasks.release_all("bob")

        assert [task.id for task in released] == ["1", "2"]
        assert [(task.owner, task.status.value) for task in ada.tasks.list()] == [
            (None, "pending"),
            (None, "pending"),
            (None, "completed"),
            ("ada", "pending"),
        ]
        assert ada.tasks.release_all("bob") == ()
        assert "bob left" in ada.tasks.log("1")[-1].act.note


@pytest.mark.req("L-10")
def test_releasing_is_for_ones_own_and_for_those_who_insist(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("a")
        bob.tasks.claim("1")
        with pytest.raises(AlreadyClaimed):
            ada.tasks.release("1")
        assert ada.tasks.release("1", force=True).owner is None
        with pytest.raises(LeaseLost):
            bob.tasks.update("1", subject="late")
        assert bob.tasks.claim("1").owner == "bob"
        assert bob.tasks.release("1").owner is None


@pytest.mark.req("L-09")
def test_a_claim_its_own_holder_ended_is_not_held_against_it(yard: taskyard.Yard) -> None:
    for subject in "abcd":
        yard.tasks.claim(yard.tasks.create(subject).id)
    yard.tasks.update("1", status="pending")
    yard.tasks.release_all("ada")
    yard.tasks.claim("2")
    yard.tasks.assign("2", None)
    yard.tasks.claim("3")
    yard.tasks.delete("3")
    yard.tasks.restore("3")
    yard.tasks.claim("4")
    yard.tasks.complete("4")

    for task_id in "1234":
        assert yard.tasks.update(task_id, subject="still mine to change").subject == "still mine to change"


@pytest.mark.req("L-12")
def test_trackers_share_the_ids_and_are_neither_shown_nor_offered(yard: taskyard.Yard) -> None:
    yard.tasks.create("bob", metadata={"_internal": True})
    yard.tasks.create("work")

    assert [task.id for task in yard.tasks.list()] == ["2"]
    assert [task.id for task in yard.tasks.list(internal=True)] == ["1", "2"]
    found = yard.tasks.claim_next()
    assert found is not None
    assert found.id == "2"
    assert yard.tasks.claim_next() is None


@pytest.mark.req("L-04")
def test_two_agents_on_two_tasks_never_wait_for_each_other(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("a")
        ada.tasks.create("b")
        entered, leave = threading.Event(), threading.Event()

        def slow(facts: Facts) -> Decision:
            entered.set()
            leave.wait(20)
            return Decision(facts.task, facts.lease)

        thread = threading.Thread(target=ada.tasks.store.update, args=("1", slow, Act("ada", "look")))
        thread.start()
        until(entered.is_set)
        try:
            assert bob.tasks.start("2").owner == "bob"
            assert bob.tasks.complete("2").is_done
            assert [task.id for task in bob.tasks.list()] == ["1", "2"]
            assert bob.tasks.create("c").id == "3"
        finally:
            leave.set()
            thread.join(20)


@pytest.mark.req("L-01")
def test_a_status_there_is_not_is_refused_before_anything_is_looked_at(yard: taskyard.Yard) -> None:
    with pytest.raises(BadValue, match="pending, in_progress or completed"):
        yard.tasks.update("77", status="deleted")


@pytest.mark.in_files
def test_nobody_claims_nothing(tmp_path: Path) -> None:
    with open_yard(tmp_path) as yard:
        yard.tasks.create("a")
        with pytest.raises(UsageError, match="Who claims it"):
            yard.tasks.claim("1")
        assert yard.tasks.start("1").owner is None
        assert os.listdir(tmp_path / "plan" / ".taskyard" / "leases") == []
