"""The list in memory, where it differs from a file: it dies with its program. Its promises are the contract's."""

from __future__ import annotations

import threading

import pytest

import taskyard
from support.wait import until
from taskyard.tasks.memory_store import MemoryStore
from taskyard.tasks.model import Act, Draft


@pytest.mark.req("L-08")
def test_a_yard_in_memory_offers_the_same_verbs() -> None:
    with taskyard.open(store="memory:", list="plan", agent="ada") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b", blocked_by=["1"])
        assert yard.tasks.claim_next(start=True) is not None
        assert yard.tasks.complete("1").ready == ("2",)
        yard.tasks.delete("2")
        assert yard.tasks.restore("2").subject == "b"
        assert yard.tasks.name == "plan"


@pytest.mark.req("L-18")
def test_every_thread_that_waits_is_woken_by_one_change() -> None:
    store = MemoryStore()
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(store.wait(10))) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: all(thread.is_alive() for thread in threads))
    store.create(Draft("a", "a"), Act("ada", "create"))
    for thread in threads:
        thread.join(10)

    assert woken == [True] * 3


@pytest.mark.req("L-09")
def test_how_many_losses_set_a_task_aside_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_LEASE_LOSSES", "1")
    with taskyard.open(store="memory:", list="plan", agent="ada") as yard:
        yard.tasks.create("a")
        yard.tasks.claim("1", lease=0.001)
        until(lambda: yard.tasks.get("1").owner is None, timeout=5)

        assert yard.tasks.get("1").is_held
