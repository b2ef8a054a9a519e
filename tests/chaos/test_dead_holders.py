"""Workers that are killed -9 at any moment: what they held comes back, and every task is done once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from support.lists import COMPANY, ListInDatabase, SharedList, shared_list
from support.racing import Race, Racer
from support.scale import scale
from support.wait import until

WORKERS = 6


@pytest.mark.req("L-09", "L-10", "M-04")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("company", [*COMPANY, pytest.param("postgresql", marks=pytest.mark.req("X-01"))])
def test_however_often_workers_are_killed_every_task_is_completed_once(
    memory: Path,
    tmp_path: Path,
    company: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("TASKYARD_LEASE_LOSSES", "1000")  # bad luck alone sets nothing aside here
    if company == "postgresql":
        shared: SharedList = ListInDatabase(request.getfixturevalue("address"))
    else:
        shared = shared_list(memory, company, monkeypatch)
    count = scale(1000) if company != "network" else scale(100)
    with shared.open() as yard:
        for number in range(1, count + 1):
            yard.tasks.create(f"Task {number}", blocked_by=[str(number // 2)] if number > 1 else ())

    def work(racer: Racer) -> None:
        dice = random.Random(racer.number)
        with shared.open(racer.name) as yard:
            racer.start()
            while any(not task.is_done for task in yard.tasks.list()):
                task = yard.tasks.claim_next(start=True)
                if task is None:
                    yard.tasks.store.wait(0.02)
                    continue
                time.sleep(dice.uniform(0, 0.02))  # the work
                racer.do("complete", (task.id, racer.name), yard.tasks.complete, task.id)

    began = time.monotonic()
    killed = _kill_and_replace(work, tmp_path / "race", deaths=scale(500) if company != "network" else 0)
    with shared.open() as yard:
        done = Counter(
            task_id
            for change in yard.tasks.log()
            if change.act.cause == "complete" and not change.aborted  # a worker may die before its word counts
            for task_id in change.tasks
        )
        assert done == {str(number): 1 for number in range(1, count + 1)}
        assert all(task.is_done for task in yard.tasks.list())
        # The lock of a worker that was killed with its work done is taken over by whoever comes next, at once.
        for left in list(Path(shared.folder).glob("[0-9]*.json.lock")):
            yard.tasks.update(left.name.split(".")[0], description="looked after")
            assert not left.exists()
    assert shared.faults() == []
    print(f"{count} tasks, {killed} workers killed, {time.monotonic() - began:.1f} s")


def _kill_and_replace(work: object, folder: Path, *, deaths: int) -> int:
    """Keep some workers at it, killing one after the other, until all is done; how many were killed."""
    assert callable(work)
    dice, first = random.Random(7), WORKERS
    races = [Race(1, work, folder, first=number) for number in range(WORKERS)]
    for race in races:
        race.go()
    killed = 0
    while killed < deaths and not _any_ended(races):
        time.sleep(dice.uniform(0.005, 0.05))
        race = races.pop(dice.randrange(len(races)))
        os.kill(race.pids[race.numbers[0]], signal.SIGKILL)
        race.wait(killed=race.numbers)
        killed += 1
        races.append(Race(1, work, folder, first=first))
        races[-1].go()
        first += 1
    for race in races:
        race.wait(timeout=300)
    return killed


def _any_ended(races: list[Race]) -> bool:
    return any(race.has_ended() for race in races)


@pytest.mark.req("L-09", "L-18")
@pytest.mark.serial
@pytest.mark.parametrize("company", ["alone", "beside others"])
def test_a_dead_holders_task_is_back_at_the_next_look_and_soon_for_whoever_watches(
    memory: Path, tmp_path: Path, company: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = 5.0 if company == "alone" else 1.0  # as it is, and as somebody set it
    if company != "alone":
        monkeypatch.setenv("TASKYARD_POLL_INTERVAL", str(every))
    shared = shared_list(memory, company, monkeypatch)
    with shared.open("ada") as yard:
        for subject in ("One", "Two"):
            yard.tasks.create(subject)
        for task_id in ("1", "2"):
            holder = _holder(shared.open, task_id, tmp_path / task_id)
            until(lambda wanted=task_id: yard.tasks.get(wanted).owner == "racer-0", what="the claim")  # type: ignore[misc]
            if task_id == "1":
                _killed(holder)
                assert [task.owner for task in yard.tasks.list()] == [None, None]
        since = yard.tasks.store.position()
        deaths: list[float] = []
        threading.Timer(0.3, lambda: deaths.append(_killed(holder))).start()
        changes = yard.tasks.watch(since=since, timeout=10)
        change = next(changes)
        took = time.monotonic() - deaths[0]
        assert (change.act.cause, list(change.tasks)) == ("lease_lost", ["2"])
        assert took < every + 0.5, f"only after {took:.1f} s"
    print(f"a watcher saw it after {took:.2f} s")


def _holder(open_: object, task_id: str, folder: Path) -> Race:
    assert callable(open_)

    def work(racer: Racer) -> None:
        with open_(racer.name) as yard:
            yard.tasks.claim(task_id)
            racer.start()
            signal.pause()

    race = Race(1, work, folder)
    race.go()
    return race


def _killed(race: Race) -> float:
    os.kill(race.pids[0], signal.SIGKILL)
    race.wait(killed=race.numbers)
    return time.monotonic()
