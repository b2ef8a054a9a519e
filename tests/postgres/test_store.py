"""The list in PostgreSQL where it differs from one in files: lost answers, clocks, holders on other machines."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import taskyard
from support.cutting_proxy import Proxy
from support.linearizable import check
from support.lists import NAME, ListInDatabase
from support.postgres import Server, server
from support.racing import Race, Racer
from support.scale import scale
from support.task_models import IdCounter
from support.wait import until
from taskyard.config import Settings
from taskyard.core.system import now_ms
from taskyard.errors import AlreadyClaimed, Conflict, LeaseLost, StoreAway
from taskyard.postgres.connection import Database, database
from taskyard.postgres.task_store import PostgresStore
from taskyard.tasks.model import Decision, Draft, Facts, Lease
from taskyard.tasks.rules import Caller, ClaimOrder, ClaimRule
from taskyard.testing.task_store import act, add, claim_rule

pytestmark = pytest.mark.req("X-01")


def store_at(
    address: str, *, alive: Callable[[Lease], bool | None] = lambda _: None, silence: float = 30.0
) -> PostgresStore:
    return PostgresStore(database(address), NAME, Settings(holder_silence=silence), alive=alive)


def test_what_was_done_and_not_heard_of_is_not_done_again(leaky: tuple[Proxy, Database]) -> None:
    way, where = leaky
    store = PostgresStore(where, NAME, Settings(), alive=lambda _: None)
    ids = []
    for number in range(5):
        way.lose_answer(f"subject {number}".encode())
        ids.append(add(store, f"subject {number}"))

    assert way.lost == 5
    assert [(task.id, task.subject) for task in store.list()] == [(str(n), f"subject {n - 1}") for n in range(1, 6)]
    assert ids == ["1", "2", "3", "4", "5"]


def test_a_claim_whose_answer_is_lost_is_one_claim(leaky: tuple[Proxy, Database]) -> None:
    way, where = leaky
    store = PostgresStore(where, NAME, Settings(), alive=lambda _: None)
    for _ in range(3):
        add(store)
    held = Lease("ada", "ada", "a token of ours", "manual", now_ms())
    way.lose_answer(b"a token of ours")

    found = store.claim_next(
        lambda tasks: [task.id for task in tasks if not task.owner], claim_rule(held), act("claim")
    )

    assert found is not None and found.id == "1"
    assert way.lost == 1
    assert [task.owner for task in store.list()] == ["ada", None, None]
    way.lose_answer(b"another token")
    second = store.update("2", claim_rule(held._replace(token="another token")), act("claim"))
    assert (second.owner, way.lost) == ("ada", 2)
    assert [change.act.cause for change in store.changes()].count("claim") == 2


def test_the_first_free_task_is_claimed_once_also_if_the_answer_is_lost(leaky: tuple[Proxy, Database]) -> None:
    way, where = leaky
    store = PostgresStore(where, NAME, Settings(), alive=lambda _: None)
    for _ in range(3):
        add(store)
    for number in ("1", "2", "3"):
        held = Lease("ada", "ada", f"token {number}", "manual", now_ms())
        way.lose_answer(held.token.encode())
        rule = ClaimRule(Caller("ada", None, held, now_ms(), False), start=False, check_busy=False)

        found = store.claim_next(ClaimOrder(agent="ada"), rule, act("claim"))

        assert found is not None and (found.id, found.owner, found.lease) == (number, "ada", held)
    assert way.lost == 3
    assert [change.act.cause for change in store.changes()].count("claim") == 3


def test_a_clock_that_is_wrong_by_an_hour_neither_ends_a_lease_nor_keeps_it(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hours in (-1, 1):
        wrong = now_ms() + hours * 3_600_000
        monkeypatch.setattr("taskyard.postgres.task_commit.now_ms", lambda wrong=wrong: wrong)
        store = store_at(address)
        task_id = add(store)
        held = Lease("ada", "ada", "t", "time", wrong, wrong + 60_000, 60_000)
        store.update(task_id, claim_rule(held), act("claim"))
        assert store.get(task_id).owner == "ada", f"off by {hours} h"

        short = held._replace(expires=wrong + 50, span=50)
        store.update(task_id, lambda facts, short=short: Decision(facts.task, short), act("renew"))  # type: ignore[misc]
        until(lambda store=store, task_id=task_id: store.get(task_id).owner is None)  # type: ignore[misc]


def test_a_holder_on_another_machine_is_believed_in_as_long_as_it_says_something(address: str) -> None:
    theirs, ours = store_at(address, silence=0.2), store_at(address)
    task_id = add(theirs)
    held = Lease("ada", "far", "t", "process", now_ms(), host="elsewhere/boot", lock="/nowhere", place="x")
    theirs.update(task_id, claim_rule(held), act("claim"))
    assert ours.get(task_id).owner == "ada"

    until(lambda: ours.get(task_id).owner is None)

    (lost,) = [change for change in ours.changes() if change.act.cause == "lease_lost"]
    assert lost.act.by == "ada"

    def complete(facts: Facts) -> Decision:
        if facts.lease is None or facts.lease.token != "t":
            raise LeaseLost(task_id, "ada")
        return Decision(facts.task, facts.lease)

    with pytest.raises(LeaseLost):
        theirs.update(task_id, complete, act("complete"))


def test_a_holder_on_this_machine_is_gone_at_the_kernels_word(address: str) -> None:
    living = {"near"}
    store = store_at(address, alive=lambda lease: lease.instance in living)
    task_id = add(store)
    held = Lease("ada", "near", "t", "process", now_ms(), host="here/boot", lock="/here", place="x")
    store.update(task_id, claim_rule(held), act("claim"))
    assert [task.owner for task in store.list()] == ["ada"]

    living.clear()

    assert [task.owner for task in store.list()] == [None]


def test_whoever_is_refused_again_and_again_gets_its_turn(address: str) -> None:
    add(store_at(address))
    stop, problems = threading.Event(), list[Exception]()

    def change_all_the_time() -> None:
        store = store_at(address)
        try:
            while not stop.is_set():
                add(store)
        except Exception as error:
            problems.append(error)

    others = [threading.Thread(target=change_all_the_time) for _ in range(3)]
    for thread in others:
        thread.start()
    try:
        store = store_at(address)
        for number in range(20):

            def whole(facts: Facts, number: int = number) -> Decision:
                subject = f"{number} of {len(facts.everything())}"
                return Decision(facts.task._replace(subject=subject), facts.lease)

            assert store.update("1", whole, act("put"), whole_list=True).subject.startswith(f"{number} of")
    finally:
        stop.set()
        for thread in others:
            thread.join(30)
    assert problems == []


def test_an_old_picture_of_the_list_refuses_nobody(address: str) -> None:
    ours, theirs = store_at(address), store_at(address)
    task_id = add(ours)
    ours.list()
    theirs.update(task_id, claim_rule(Lease("eve", "eve", "t", "manual", now_ms())), act("claim"))
    ours.list()
    theirs.update(task_id, lambda facts: Decision(facts.task._replace(owner=None), None), act("release"))

    def claim(facts: Facts) -> Decision:
        if facts.task.owner is not None:
            raise AlreadyClaimed(task_id, facts.task.owner)
        return claim_rule(Lease("ada", "ada", "u", "manual", now_ms()))(facts)

    assert ours.update(task_id, claim, act("claim")).owner == "ada"


def test_what_no_text_column_can_hold_is_kept(address: str) -> None:
    store = store_at(address)
    hostile = Draft("NUL \0 and \ud800 alone", "\u202e" * 3 + "\\u0000", metadata={"\0": "\udfff", "n": 1e308})

    task = store.create(hostile, act("create"))

    assert (task.subject, task.description, task.metadata) == (hostile.subject, hostile.description, hostile.metadata)
    assert store_at(address).get(task.id) == task
    assert [change.tasks[task.id] for change in store.changes()] == [task]


def test_a_server_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    with server() as made:
        where = Database(made.address(), patience=0.3)
        store = PostgresStore(where, NAME, Settings(), alive=lambda _: None)
        add(store)
        made.stop()

        with pytest.raises(StoreAway, match="cannot be reached"):
            store.list()

        made.start()
        assert [task.id for task in store.list()] == ["1"]
        where.close()


@pytest.mark.timeout(180)
def test_a_server_that_crashes_again_and_again_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_DATABASE_PATIENCE", "60")
    each, crashes = scale(100, least=25), scale(10, least=3)
    with server() as made:
        shared = ListInDatabase(made.address())

        def work(racer: Racer) -> None:
            with shared.open(racer.name) as yard:
                racer.start()
                for number in range(each):
                    racer.do("next_id", (), _new_id, yard, f"{racer.name} {number}")

        race = Race(6, work, tmp_path / "race")
        race.go()
        for number in range(crashes):
            until(lambda number=number: _created(made) >= number * each or race.has_ended(), timeout=60)  # type: ignore[misc]
            made.stop(signal.SIGKILL)
            made.start()
        history = race.wait(timeout=120)

        found = shared.raw()
        assert {event.result for event in history} == {int(task_id) for task_id in found}
        assert sorted(str(raw["subject"]) for raw in found.values()) == sorted(
            f"racer-{racer} {number}" for racer in range(6) for number in range(each)
        )
        assert check(history, IdCounter.of(history)) is None
        assert shared.faults() == []


def _new_id(yard: taskyard.Yard, subject: str) -> int:
    return int(yard.tasks.create(subject).id)


def _created(made: Server) -> int:
    try:
        return int(database(made.address(), patience=30).ask("SELECT count(*) FROM task")[0][0])
    except (StoreAway, Conflict):
        return 0
