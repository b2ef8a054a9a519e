from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest

from support.linearizable import Event, check
from support.notice_model import NoticeModel, deliveries


def event(process: str, op: str, result: Hashable, t0: int, t1: int | None, *args: Hashable) -> Event:
    return Event(process, op, ("n", *args), result, t0, t1)


TAKEN, FILED = event("ada", "take", "fresh", 0, 1), event("ada", "ack", True, 2, 3)
DIED = event("kernel", "died", "ok", 4, 5, "ada")


@pytest.mark.parametrize(
    "history",
    [
        [TAKEN, FILED, DIED, event("end", "state", "read", 9, 9)],
        [TAKEN, DIED, event("bob", "take", "again", 6, 7), event("bob", "ack", True, 8, 9)],
        [TAKEN, DIED, event("bob", "take", "again", 4, 7)],  # found while the kernel still told us
        [event("ada", "take", None, 0, None), DIED, event("bob", "take", "again", 6, 7)],
        [TAKEN, event("ada", "ack", None, 2, None), DIED, event("end", "state", "read", 9, 9)],
        [event("ada", "take", None, 0, None), DIED, event("bob", "take", "fresh", 6, 7)],
    ],
)
def test_what_can_happen_is_believed(history: Sequence[Event]) -> None:
    assert check(history, NoticeModel()) is None


@pytest.mark.parametrize(
    "history",
    [
        [TAKEN, event("bob", "take", "fresh", 2, 3)],  # two have it
        [TAKEN, event("bob", "take", "again", 2, 3)],  # again, and nobody died
        [TAKEN, DIED, event("bob", "take", "fresh", 6, 7)],  # again, and it does not say so
        [TAKEN, FILED, DIED, event("bob", "take", "again", 6, 7)],  # again, after it was acknowledged
        [TAKEN, FILED, event("ada", "ack", True, 4, 5)],  # acknowledged twice
        [TAKEN, event("ada", "ack", False, 2, 3)],  # the one who has it may
        [event("bob", "ack", True, 0, 1)],  # by one who never had it
        [TAKEN, event("end", "state", "read", 9, 9)],  # lost
    ],
)
def test_what_cannot_happen_is_named(history: Sequence[Event]) -> None:
    assert check(history, NoticeModel()) is not None


def test_journals_become_the_history_of_each_notice() -> None:
    noted = [
        Event("ada", "take", (), (("1", "fresh"), ("2", "again")), 0, 1),
        Event("ada", "ack", ("1",), True, 2, 3),
        Event("bob", "take", (), None, 0, None),
    ]
    deaths = [Event("kernel", "died", (who,), "ok", 5, 6) for who in ("ada", "bob", "cem")]

    found = [(each.process, each.op, each.args, each.result) for each in deliveries(noted, deaths, ["1", "2", "3"])]

    assert found[:3] == [
        ("ada", "take", ("1",), "fresh"),
        ("ada", "take", ("2",), "again"),
        ("ada", "ack", ("1",), True),
    ]
    assert sorted(map(str, (each[2] for each in found[3:]))) == sorted(
        map(str, [("1",), ("2",), ("3",), ("1", "ada"), ("2", "ada"), ("1", "bob"), ("2", "bob"), ("3", "bob")])
    )
