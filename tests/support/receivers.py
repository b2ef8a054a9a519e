"""Processes that receive notices and keep a journal of it; one that is killed can be replaced."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from support.job_chaos import notices_of_ends
from support.linearizable import Event, check, now
from support.notice_model import NoticeModel, deliveries
from support.racing import Race, Racer, answered
from taskyard.jobs.notices import Outbox

#: What a receiver has in hand when it dies: a notice, or a few.
AT_ONCE = 4

#: How long a receiver sleeps when nothing comes, in seconds: no file tells it of a death.
PATIENCE = 0.05


class Receivers:
    """Some processes of one kind, as many as there are to be."""

    def __init__(self, count: int, open_outbox: Callable[[Racer], Outbox], folder: Path) -> None:
        """`open_outbox` is called in each of them."""
        self._open = open_outbox
        self._folder = folder
        self._races: list[Race] = []
        self.living: list[int] = []
        self.deaths: list[Event] = []
        for _ in range(count):
            self.add()

    def add(self) -> None:
        number = len(self._races)
        race = Race(1, self._receive, self._folder, first=number)
        race.go()
        self._races.append(race)
        self.living.append(number)

    def _receive(self, racer: Racer) -> None:
        outbox = self._open(racer)
        racer.start()

        def take() -> tuple[tuple[str, str], ...]:
            return tuple((notice.id, "again" if notice.redelivered else "fresh") for notice in outbox.take(AT_ONCE))

        while True:
            outbox.wait(PATIENCE)
            for notice_id, _ in racer.do("take", (), take):  # type: ignore[attr-defined]  # what `take` answers
                racer.do("ack", (notice_id,), lambda one=notice_id: outbox.ack([one]) == (one,))

    def kill_one(self, chance: random.Random) -> None:
        """Kill one of them, and let another take its place."""
        self.kill(chance.choice(self.living))
        self.add()

    def kill(self, number: int) -> None:
        race, began = self._races[number], now()
        os.kill(race.pids[number], signal.SIGKILL)
        race.wait(killed=[number])
        self.living.remove(number)
        self.deaths.append(Event("the kernel", "died", (self._name(f"racer-{number}"),), "ok", began, now()))

    def history(self) -> list[Event]:
        """What all of them did."""
        found = [event for race in self._races for event in race.history()]
        return [event._replace(process=self._name(event.process)) for event in found]

    def _name(self, racer: str) -> str:
        return f"{self._folder.name} {racer}"

    def __enter__(self) -> Receivers:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self.living):
            self.kill(number)


def check_deliveries(home: str, *groups: Receivers) -> int:
    """Each id acknowledged once, and every answer such as could have come one at a time; how many came again."""
    history = [event for group in groups for event in group.history() if event.op in ("take", "ack")]
    deaths = [event for group in groups for event in group.deaths]
    ids = [notice_id for found in notices_of_ends(home).values() for notice_id in found]
    confirmed = Counter(event.args[0] for event in answered(history, "ack", True))
    assert set(confirmed.values()) <= {1}
    assert answered(history, "ack", False) == []
    assert set(confirmed) <= set(ids)
    final = [Event("the end", "state", (notice_id,), "read", now(), now()) for notice_id in ids]
    told = list(deliveries(history, deaths, ids))
    assert check([*told, *final], NoticeModel()) is None
    return len(answered(told, "take", "again"))


def read_by(home: str) -> int:
    """How many notices of this home are acknowledged, whoever they were for."""
    return sum(len(files) for folder, _, files in os.walk(f"{home}/outbox") if "/cur/" in folder)


def within(event: Event, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether all of an operation lies inside one of some spans of time."""
    return event.t1 is not None and any(begin < event.t0 and event.t1 < end for begin, end in spans)
