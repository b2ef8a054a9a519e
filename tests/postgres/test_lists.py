"""All lists of a database: counted, looked at and followed as those in a folder are."""

from __future__ import annotations

import threading
import time

import pytest

import taskyard
from support.gate import gate
from support.wait import until
from taskyard.config import Settings
from taskyard.errors import StoreAway
from taskyard.postgres.connection import database
from taskyard.postgres.lists import PostgresLists
from taskyard.tasks.lists import ListCount

pytestmark = pytest.mark.req("X-01")


def filled(address: str, name: str) -> None:
    with taskyard.open(store=address, list=name, agent="ada") as yard:
        for subject in ("One", "Two"):
            yard.tasks.create(subject)
        yard.tasks.complete("1")
        yard.tasks.create("Three", blocked_by=["2"])


@pytest.mark.req("U-04")
def test_every_list_is_counted_and_nothing_is_made_by_it(address: str) -> None:
    filled(address, "beta")
    filled(address, "alpha")
    lists = PostgresLists(address, Settings())

    found = [lists.count(name) for name in lists.names()]

    assert all(one.changed_at and abs(one.changed_at - time.time() * 1000) < 60_000 for one in found)
    assert [one._replace(changed_at=0) for one in found] == [
        ListCount("alpha", 2, 1, 0, 0, ready=1, blocked=1),
        ListCount("beta", 2, 1, 0, 0, ready=1, blocked=1),
    ]
    assert lists.count("gamma") == ListCount("gamma", 0, 0, 0, None)
    assert (lists.look("gamma"), lists.names()) == ((), ["alpha", "beta"])


def test_a_row_that_cannot_be_read_is_counted_as_damaged(address: str) -> None:
    filled(address, "plan")
    database(address).ask("UPDATE task SET body = 'no JSON' WHERE id = 2")

    found = PostgresLists(address, Settings()).look("plan")

    assert [task.id for task in found] == ["1", "3"]
    assert [(damaged.file, "JSON" in damaged.why or "value" in damaged.why) for damaged in found.damaged] == [
        ("2", True)
    ]


def test_a_new_list_is_heard_of_and_so_is_each_change_on_any(address: str) -> None:
    lists = PostgresLists(address, Settings())
    while lists.wait(0.2):
        pass
    following = lists.follow(debounce=0.0)
    rung = threading.Event()

    def follow() -> None:
        for _ in range(50):
            following.wait(10)
            if any(lists.count(name).done for name in lists.names()):
                rung.set()
                return

    thread = threading.Thread(target=follow)
    thread.start()
    filled(address, "plan")

    assert lists.wait(10)
    assert rung.wait(10)
    thread.join(10)
    following.close()


def test_a_database_that_goes_away_is_told_of_and_found_again(address: str) -> None:
    filled(address, "plan")
    with gate(address) as door:
        lists = PostgresLists(door.address, Settings())
        assert (lists.names(), lists.away) == (["plan"], None)
        door.shut()

        began = time.monotonic()
        with lists.hurried(), pytest.raises(StoreAway):
            lists.names()
        assert time.monotonic() - began < 2, "nobody in a hurry waits for a server"
        away = lists.away
        assert away is not None
        assert abs(away.since - time.time() * 1000) < 10_000
        assert str(away).startswith(f"Disconnected from the database {database(door.address).where} since ")
        assert lists.away == away, "the words for it change all the time"

        door.open()
        until(lambda: lists.names() == ["plan"])
        assert lists.away is None


def test_who_waits_for_a_list_sleeps_while_the_server_is_away_and_wakes_when_it_is_back(address: str) -> None:
    with gate(address) as door, taskyard.open(store=door.address, list="plan") as yard:
        store = yard.tasks.store
        while store.wait(0.2):
            pass
        door.shut()
        assert store.wait(10), "that it is gone is worth a look"
        began, rounds = time.monotonic(), 0
        while time.monotonic() - began < 0.5:
            store.wait(0.5)
            rounds += 1
        assert rounds <= 3, "who waits goes round and round"

        door.open()
        until(lambda: store.wait(1))


def test_others_find_the_same_place_by_their_environment(address: str) -> None:
    assert PostgresLists(address, Settings()).environ() == {"TASKYARD_STORE": address}
