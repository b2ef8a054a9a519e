"""
Three machines, one list: workers on each drain it through PostgreSQL while a link is cut and mended and workers die.

Each machine is a network namespace; what runs there takes the others for strangers, whose kernel it cannot ask. What is
checked: every task done once, after what it waited for, and a history that could have happened one step at a time.
The server's log is the witness: it is legal by itself, and whatever one worker knew to be done before another began
stands in it in that order.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import taskyard
from support.linearizable import Event
from support.lists import NAME
from support.namespaces import Machine, machines
from support.postgres import Server, server
from support.racing import Race, Racer
from support.scale import FULL, scale
from taskyard.core import system
from taskyard.errors import StoreAway
from taskyard.tasks.model import Change

#: Workers on each machine.
EACH = 8

#: Seconds a worker elsewhere is believed to live without a word; and how long the link stays cut, which is longer.
SILENCE, CUT = 2.0, 3.5

#: Seconds between two deaths.
DEATHS = 2.0 if FULL else 0.7

#: The longest that work on one task takes, in seconds.
WORK = 0.5 if FULL else 0.3


@pytest.mark.req("X-01", "L-09", "L-10")
@pytest.mark.serial
@pytest.mark.timeout(1200)
def test_three_machines_drain_a_list_while_a_link_is_cut_and_workers_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_HOLDER_SILENCE", str(SILENCE))
    monkeypatch.setenv("TASKYARD_LEASE_LOSSES", "1000")  # bad luck alone sets nothing aside here
    monkeypatch.setenv("TASKYARD_DATABASE_PATIENCE", "60")
    count = scale(2000, least=200)
    with machines(3) as group, _server_on(group[0]) as database:
        blockers = _plan(database.address(), count)
        address = f"postgresql://postgres@{group[0].address}/yard"
        began = time.monotonic()
        crew = _Crew(group, address, tmp_path)
        crew.work_on(group[1])
        took = time.monotonic() - began
        with taskyard.open(store=database.address(), list=NAME) as yard:
            log, left = list(yard.tasks.log()), [task.id for task in yard.tasks.list() if not task.is_done]
    assert left == []
    _check_log(log, blockers, count)
    _check_order(log, crew.history)
    losses = Counter(change.act.cause for change in log)["lease_lost"]
    assert losses, "the cut and the deaths took nothing from anybody: nothing was tried"
    print(f"{count} tasks, {len(crew.killed)} workers killed, {crew.cuts} cuts, {losses} leases lost, {took:.1f} s")


class _Crew:
    """The workers of all machines."""

    def __init__(self, group: Sequence[Machine], address: str, folder: Path) -> None:
        self._group = group
        self._address = address
        self._folder = folder / "race"
        self._numbers = iter(range(10_000))
        self.killed: list[int] = []
        self.cuts = 0
        self.history: list[Event] = []

    def work_on(self, unlucky: Machine) -> None:
        """Let them work until nothing is left, one killed now and then, one machine cut off for a while."""
        dice = random.Random(7)
        races = [self._hire(machine) for machine in self._group for _ in range(EACH)]
        for race, _ in races:
            race.go()
        next_death, next_cut, mend_at = _in(DEATHS), _in(0.8), 0.0
        while not any(race.has_ended() for race, machine in races if machine is not unlucky):
            now = time.monotonic()
            if mend_at and now > mend_at:
                unlucky.mend()
                mend_at, next_cut = 0.0, _in(10)
            elif not mend_at and now > next_cut:
                unlucky.cut()
                mend_at, self.cuts = _in(CUT), self.cuts + 1
            if now > next_death:
                self._replace(races, dice.randrange(len(races)))
                next_death = _in(DEATHS)
            time.sleep(0.01)
        if mend_at:
            unlucky.mend()
        for race, _ in races:
            self.history += race.wait(timeout=300)

    def _replace(self, races: list[tuple[Race, Machine]], index: int) -> None:
        race, machine = races.pop(index)
        number = race.numbers[0]
        os.kill(race.pids[number], signal.SIGKILL)
        self.history += race.wait(killed=[number])
        self.killed.append(number)
        races.append(self._hire(machine))
        races[-1][0].go()

    def _hire(self, machine: Machine) -> tuple[Race, Machine]:
        return Race(1, self._work(machine), self._folder, first=next(self._numbers)), machine

    def _work(self, machine: Machine) -> Callable[[Racer], None]:
        def work(racer: Racer) -> None:
            os.environ["TASKYARD_HOME"] = str(self._folder / machine.name)
            system._host = f"{machine.name}/boot"  # another machine, as far as anybody there can tell
            racer.start()  # before it needs the server: one that is hired on a machine that is cut off waits for it
            with machine.entered(), taskyard.open(store=self._address, list=NAME, agent=racer.name) as yard:
                _drain(racer, yard, random.Random(racer.number))

        return work


def _drain(racer: Racer, yard: taskyard.Yard, dice: random.Random) -> None:
    while True:
        try:
            task_id = racer.do("claim_next", (racer.name,), _claimed, yard)
            if isinstance(task_id, str) and task_id.isdigit():
                time.sleep(dice.uniform(0, WORK))
                racer.do("complete", (task_id, racer.name), yard.tasks.complete, task_id)
            elif all(task.is_done for task in yard.tasks.list()):
                return
            else:
                yard.tasks.store.wait(0.5)
        except StoreAway:
            continue  # cut off for longer than anybody waits


def _claimed(yard: taskyard.Yard) -> str | None:
    task = yard.tasks.claim_next(start=True)
    return None if task is None else task.id


def _plan(address: str, count: int) -> dict[str, str]:
    """Put the tasks on the list, each but the first few behind an earlier one; who waits for whom."""
    blockers = {str(number): str(number // 3) for number in range(3, count + 1)}
    with taskyard.open(store=address, list=NAME) as yard:
        for number in range(1, count + 1):
            blocker = blockers.get(str(number))
            yard.tasks.create(f"Task {number}", blocked_by=[blocker] if blocker else ())
    return blockers


def _check_log(log: Sequence[Change], blockers: dict[str, str], count: int) -> None:
    """The log is a story that one caller after the other could have told."""
    owner: dict[str, str | None] = {}
    done: set[str] = set()
    for change in log:
        for task_id, task in change.tasks.items():
            assert task is not None
            match change.act.cause:
                case "start":
                    assert owner.get(task_id) is None, f"#{task_id} was given to {task.owner} too"
                    assert task_id not in done, f"#{task_id} was given out again after it was done"
                    assert blockers.get(task_id) in (None, *done), f"#{task_id} began before what it waits for"
                    owner[task_id] = task.owner
                case "lease_lost":
                    assert owner.get(task_id) is not None
                    owner[task_id] = None
                case "complete":
                    assert owner.get(task_id) == change.act.by, f"#{task_id} was completed by {change.act.by}"
                    assert task_id not in done, f"#{task_id} was completed twice"
                    done.add(task_id)
                case "create":
                    pass
                case other:
                    raise AssertionError(f"nobody asked for {other}")
    assert len(done) == count


def _check_order(log: Sequence[Change], history: Sequence[Event]) -> None:
    """What was known to be done before something else began stands before it in the log."""
    places: dict[tuple[str, str, str], Iterator[int]] = {}
    found: dict[tuple[str, str, str], list[int]] = {}
    for change in log:
        for task_id in change.tasks:
            if change.act.cause in ("start", "complete"):
                found.setdefault((change.act.cause, task_id, change.act.by or ""), []).append(change.id)
    steps: list[tuple[int, int, int]] = []
    for event in sorted(history, key=lambda event: event.t0):
        if event.op == "claim_next" and isinstance(event.result, str) and event.result.isdigit():
            key = "start", event.result, str(event.args[0])
        elif event.op == "complete" and event.result == "ok":
            key = "complete", str(event.args[0]), str(event.args[1])
        else:
            assert event.t1 is None or event.result in (None, "lease_lost", "disconnected"), event
            continue
        place = next(places.setdefault(key, iter(found.get(key, []))), None)
        assert place is not None, f"{event} was answered and is not in the log"
        assert event.t1 is not None
        steps.append((event.t0, event.t1, place))
    ended = sorted(steps, key=lambda step: step[1])
    latest, index = -1, 0
    for began, _, place in steps:
        while index < len(ended) and ended[index][1] < began:
            latest, index = max(latest, ended[index][2]), index + 1
        assert latest < place, "what began after another was done stands before it in the log"


def _in(seconds: float) -> float:
    return time.monotonic() + seconds


@contextlib.contextmanager
def _server_on(machine: Machine) -> Iterator[Server]:
    """A server on one of the machines, reached by the test over its socket."""
    with contextlib.ExitStack() as stack:
        with machine.entered():
            made = stack.enter_context(server(listen=machine.address))
        yield made
