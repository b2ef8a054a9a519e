"""However many jobs end at once, and whoever is killed over it: one end each, one notice of it, acknowledged once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from support.job_chaos import Crowd, faults_of_ends, looking_around, notices_of_ends, orphans
from support.linearizable import Event, check, now
from support.notice_model import NoticeModel, deliveries
from support.racing import Race, Racer, answered
from support.scale import scale
from support.wait import until
from taskyard.kinds.shell import Shell
from taskyard.runtime.folder import JobFolder, outbox
from taskyard.runtime.jobs import Jobs
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.notices import Outbox

#: Receivers under one name, and those who only look.
RECEIVERS, LOOKERS = 3, 3

#: A notice each, or a few: what a receiver has in hand when it dies.
AT_ONCE = 4


class Receivers:
    """Processes that take what waits for one agent and acknowledge it; one that is killed is replaced."""

    def __init__(self, home: str, folder: Path) -> None:
        self._home = home
        self._folder = folder
        self._races: list[Race] = []
        self._living: list[int] = []
        self.deaths: list[Event] = []
        for _ in range(RECEIVERS):
            self._add()

    def _add(self) -> None:
        number = len(self._races)
        race = Race(1, self._receive, self._folder, first=number)
        race.go()
        self._races.append(race)
        self._living.append(number)

    def _receive(self, racer: Racer) -> None:
        racer.start()
        outbox = Outbox(self._home, "ada")

        def take() -> tuple[tuple[str, str], ...]:
            return tuple((notice.id, "again" if notice.redelivered else "fresh") for notice in outbox.take(AT_ONCE))

        while True:
            outbox.wait(60)
            for notice_id, _ in racer.do("take", (), take):  # type: ignore[attr-defined]  # what `take` answers
                racer.do("ack", (notice_id,), lambda one=notice_id: outbox.ack([one]) == (one,))

    def kill_one(self, chance: random.Random) -> None:
        number = chance.choice(self._living)
        self._kill(number)
        self._add()

    def _kill(self, number: int) -> None:
        race, began = self._races[number], now()
        os.kill(race.pids[number], signal.SIGKILL)
        race.wait(killed=[number])
        self._living.remove(number)
        self.deaths.append(Event("the kernel", "died", (f"racer-{number}",), "ok", began, now()))

    def history(self) -> list[Event]:
        """What all of them did."""
        return [event for race in self._races for event in race.history()]

    def __enter__(self) -> Receivers:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self._living):
            self._kill(number)


@pytest.mark.req("B-05", "B-08", "N-07")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(scale(60)))
def test_200_jobs_that_end_together_are_told_once_each_whoever_is_killed(jobs: Jobs, memory: Path, seed: int) -> None:
    chance = random.Random(seed)
    os.mkfifo(memory / "gate")
    gate = os.open(memory / "gate", os.O_RDWR)
    script = f"exec <{memory}/gate; echo up; read x; exit {seed}"
    started = [jobs.start(Shell(["sh", "-c", script])) for _ in range(scale(200))]
    ids = [job.id for job in started]
    until(lambda: all(os.path.getsize(job.output_file) for job in started), what="all to wait at the gate")
    with (
        Receivers(jobs.home, memory / "receivers") as receivers,
        Crowd(LOOKERS, looking_around(jobs), memory / "faults") as lookers,
    ):
        began = time.monotonic()
        os.write(gate, b"\n" * len(ids))  # a line for each
        keepers = _attack(jobs, ids, lookers, receivers, chance)
        until(lambda: _read(jobs.home) == len(ids), timeout=60, what="every notice to be acknowledged")
        took = time.monotonic() - began
    os.close(gate)

    assert faults_of_ends(jobs, ids) == []
    assert orphans(jobs.home) == {}
    causes = Counter(end.cause for job_id in ids if (end := jobs.get(job_id).end))
    assert set(causes) <= {"exited", "lost"}, causes
    again = _check_history(jobs.home, receivers.history(), receivers.deaths)
    killed = f"{keepers} keepers, {lookers.killed} lookers, {len(receivers.deaths) - RECEIVERS} receivers killed"
    print(f"{len(ids)} jobs told in {took:.2f} s, {killed}; {dict(causes)}, {again} delivered again")


def _attack(jobs: Jobs, ids: list[str], lookers: Crowd, receivers: Receivers, chance: random.Random) -> int:
    """Kill keepers, lookers and receivers while the jobs end; how many keepers."""
    killed = 0
    for job_id in chance.sample(ids, len(ids) // 2):
        time.sleep(chance.random() * 0.002)  # the moment of death is the point of it
        if keeper := keeper_of(JobFolder(jobs.home, job_id)):
            try:
                os.kill(keeper, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass  # it had ended just now
        if chance.random() < 0.2:
            (lookers if chance.random() < 0.5 else receivers).kill_one(chance)
    return killed


def _read(home: str) -> int:
    return sum(len(names) for _, _, names in os.walk(f"{outbox(home, 'ada')}/cur"))


def _check_history(home: str, history: list[Event], deaths: list[Event]) -> int:
    """Each id acknowledged once, and every answer such as could have come one at a time; how many came again."""
    ids = [notice_id for found in notices_of_ends(home).values() for notice_id in found]
    confirmed = Counter(event.args[0] for event in answered(history, "ack", True))
    assert set(confirmed.values()) <= {1}
    assert answered(history, "ack", False) == []
    assert set(confirmed) <= set(ids)
    final = [Event("the end", "state", (notice_id,), "read", now(), now()) for notice_id in ids]
    told = list(deliveries(history, deaths, ids))
    assert check([*told, *final], NoticeModel()) is None
    return len(answered(told, "take", "again"))
