"""Watching a list in a database: at once, by the id of the last change, over a lost connection."""

from __future__ import annotations

import threading
import time

import pytest

import taskyard
from support.gate import gate
from support.wait import until

pytestmark = pytest.mark.req("X-01", "L-18")


def test_every_change_is_seen_once_and_in_order_also_those_made_while_the_link_was_cut(address: str) -> None:
    seen: list[tuple[int, str]] = []

    def watch(yard: taskyard.Yard) -> None:
        for change in yard.tasks.watch(since=0, timeout=20):
            seen.extend((change.id, task.subject) for task in change.tasks.values() if task is not None)
            if seen[-1][1] == "last":
                return

    with (
        gate(address) as door,
        taskyard.open(store=door.address, list="plan") as near,
        taskyard.open(store=address, list="plan") as far,
    ):
        thread = threading.Thread(target=watch, args=(near,))
        thread.start()
        far.tasks.create("first")
        until(lambda: seen, timeout=2)
        door.shut()
        for number in range(5):
            far.tasks.create(f"unheard {number}")
        time.sleep(0.3)
        assert len(seen) == 1
        door.open()
        until(lambda: len(seen) == 6)
        far.tasks.create("last")
        thread.join(10)

    assert [number for number, _ in seen] == list(range(7))
    assert [subject for _, subject in seen] == ["first", *(f"unheard {n}" for n in range(5)), "last"]
