"""Relays killed at any moment, a database that goes away: every end, every notice and every event is there once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts import Machine
from support.postgres import Server, server
from support.scale import FULL, scale
from support.wait import until
from taskyard.errors import StoreAway
from taskyard.jobs.kinds.shell import Shell
from taskyard.postgres import connection
from taskyard.postgres.relay.ensure_running import ensure_relay

#: Seconds for which the database is away.
AWAY = 3.0 if FULL else 1.0


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may stop."""
    with server() as made:
        yield made


class Killer:
    """Kills a machine's relay at random moments; `with` ends it."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self._machine = machine
        self._random = random.Random(seed)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._kill, daemon=True)
        self.killed = 0

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join(30)

    def _kill(self) -> None:
        while not self._enough.wait(self._random.uniform(0.02, 0.5)):
            self.killed += self._machine.kill_relay()
            ensure_relay(self._machine.home, self._machine.address)


class Receiver:
    """Takes and acknowledges what comes for `ada` on a machine, until it is told that it is enough."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self.acknowledged: Counter[str] = Counter()

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join(30)

    def _receive(self) -> None:
        outbox = self._machine.outbox("ada")
        while not self._enough.is_set():
            try:
                if outbox.wait(0.2):
                    for notice in outbox.take():
                        if outbox.ack([notice.id]):
                            self.acknowledged[notice.task_id] += 1
            except StoreAway:
                continue
        outbox.close()


@pytest.mark.req("X-01", "B-05", "N-06")
@pytest.mark.timeout(600)
def test_nothing_is_lost_or_doubled_whatever_is_killed(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = own_server.new_database()
    forge, desk = (Machine(tmp_path / name, name, address, monkeypatch, 30.0) for name in ("forge", "desk"))
    connection.database(address, patience=60.0)
    count = scale(200)
    jobs = forge.jobs("ada")
    try:
        with Killer(forge, seed=7) as killer, Receiver(desk) as receiver:
            ids = []
            for number in range(count):
                ids.append(jobs.start(Shell(f"sleep 0.{number % 5}; exit {number % 3}")).id)
                if number == count // 2:
                    own_server.stop()
                    time.sleep(AWAY)
                    own_server.start()
            jobs.wait_all(ids, timeout=60)
            until(lambda: killer.killed >= scale(30, least=3), timeout=60)
            until(lambda: sum(receiver.acknowledged.values()) >= count, timeout=60, what="every notice")
        jobs.ensure_relay()
        there = desk.jobs()
        until(lambda: {job.id for job in there.list(ended=True) if job.is_final} >= set(ids), timeout=30)
        print(f"{count} jobs, {killer.killed} relays killed, the database away for {AWAY} s")
        assert receiver.acknowledged == Counter(ids)
        _check_ends(desk, ids)
        _check_events(desk, ids)
    finally:
        forge.close()
        desk.close()
        connection.close_database(address)


def _check_ends(desk: Machine, ids: list[str]) -> None:
    there = desk.jobs()
    ends = [there.get(job_id).end for job_id in ids]
    assert [end and end.exit_code for end in ends] == [number % 3 for number in range(len(ids))]
    assert desk.database.ask("SELECT count(*), count(DISTINCT id) FROM job") == [(len(ids), len(ids))]
    assert desk.database.ask("SELECT state, count(*) FROM notice GROUP BY 1") == [("read", len(ids))]


def _check_events(desk: Machine, ids: list[str]) -> None:
    found = list(desk.events(0))
    assert [event.id for event in found] == list(range(1, 2 * len(ids) + 1)), "no gap, nothing twice"
    by_job = {job_id: [event.subtype for event in found if event.task_id == job_id] for job_id in ids}
    assert set(map(tuple, by_job.values())) == {("task_started", "task_notification")}
    at = [row[0] for row in desk.database.ask("SELECT local FROM event ORDER BY id")]
    assert at == sorted(at), "as they happened"
