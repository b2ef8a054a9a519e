"""The stream of events under fire: many writers, some killed in the middle; new segments; keepers killed anywhere."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.ended_jobs import finish_halfway, job_folder
from support.event_streams import add, all_events, segments, told_of
from support.killing import calls_of, killed_before
from support.racing import Race, Racer, fork
from support.scale import scale
from support.wait import until
from taskyard.errors import JobNotFound
from taskyard.jobs import event_log, query
from taskyard.jobs.events import Event, Events
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import End, new_job_id
from taskyard.jobs.supervisor import run
from taskyard.jobs.supervisor.create import JobDir

pytestmark = pytest.mark.req("N-06")

WRITERS = 50


@pytest.fixture
def home(tmp_path: Path) -> str:
    (tmp_path / "home").mkdir(mode=0o700)
    return str(tmp_path / "home")


class Follower(threading.Thread):
    """Sees events until it has seen so many."""

    def __init__(self, home: str, count: int) -> None:
        super().__init__(daemon=True)
        self.seen: list[Event] = []
        self._events = Events(home, 0, follow=True, debounce=0.0)
        self._count = count
        self.start()

    def run(self) -> None:
        for event in self._events:
            self.seen.append(event)
            if len(self.seen) == self._count:
                return

    def ids(self, count: int | None = None) -> list[int]:
        """What it saw, when it has seen all, or `count`."""
        until(lambda: len(self.seen) >= (count or self._count), timeout=40, what="all to be seen")
        self._events.close()
        return [event.id for event in self.seen]


def test_fifty_writers_and_every_event_is_seen_once_in_order_over_changing_segments(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "SEGMENT_SIZE", 20_000)
    each = scale(200)
    followers = [Follower(home, WRITERS * each) for _ in range(2)]

    def work(racer: Racer) -> None:
        racer.start()
        for number in range(each):
            racer.do("add", (racer.number, number), add, home, writer=racer.number, number=number)

    race = Race(WRITERS, work, tmp_path / "race")
    race.go()
    history = race.wait()

    ids = [event.result for event in history]
    assert all(isinstance(event_id, int) for event_id in ids), "an event was refused"
    assert len(set(ids)) == len(ids) == WRITERS * each
    assert len(segments(home)) > 3
    for seen in [follower.ids() for follower in followers]:
        assert seen == sorted(seen) and set(seen) == set(ids)
    for writer in range(WRITERS):  # what one writer told first comes first
        assert [event.data["number"] for event in followers[0].seen if event.data["writer"] == writer] == [*range(each)]


def killed_while_writing(home: str, chance: random.Random) -> int:
    """A writer that tells some events and is killed within the next; the last id it was given."""
    hear, tell = os.pipe()
    pid = fork()
    if not pid:
        try:
            whole, left = os.write, [chance.randrange(4)]

            def torn(fd: int, data: Any) -> int:
                if not left[0]:
                    whole(fd, data[: chance.randrange(len(data))])
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return whole(fd, data)

            os.write = torn
            while True:
                whole(tell, b"%d\n" % add(home, text="x" * chance.randrange(10_000)))
        finally:
            os._exit(1)
    os.close(tell)
    with os.fdopen(hear, "rb") as pipe:
        told = pipe.read().split()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    return int(told[-1]) if told else 0


def test_writers_killed_in_the_middle_of_a_write_spoil_no_event_but_their_own(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "SEGMENT_SIZE", 100_000)
    follower = Follower(home, -1)
    chance = random.Random(11)
    last, known = 0, []
    for number in range(scale(300)):
        chance.seed(number)
        last = max(last, killed_while_writing(home, chance))
        known.append(add(home, number=number))

    seen = Events(home, 0)
    ids = [event.id for event in seen]
    assert set(known) <= set(ids) and last in {0, *ids}
    assert seen.unreadable > 0
    assert follower.ids(len(ids)) == ids == sorted(set(ids))


def life_of(folder: JobPaths, **facts: object) -> Callable[[], Callable[[], object]]:
    """What a keeper does at its job's birth and end, without a command in between."""

    def prepare() -> Callable[[], object]:
        def act() -> None:
            record: dict[str, object] = {
                "id": folder.id,
                "type": "local_bash",
                "description": "Work",
                "recipient": "ada",
                **facts,
            }
            born = JobDir(folder, record, event_segments=8)
            born.change(pid=None)
            run.finish_job(born, End("exited", 3))

        return act

    return prepare


def repair(folder: JobPaths) -> Callable[[], Callable[[], object]]:
    return lambda: lambda: query.read_job(folder.home, folder.id)


def fresh(home: str) -> JobPaths:
    return JobPaths(home, new_job_id("b"))


@pytest.mark.req("N-06", "B-05")
@pytest.mark.parametrize("facts", [{}, {"isBackgrounded": False}], ids=["with a notice", "without"])
def test_a_keeper_killed_between_any_two_steps_leaves_one_beginning_and_one_end(
    home: str, facts: dict[str, object]
) -> None:
    add(home)
    life_of(fresh(home), **facts)()()
    steps = calls_of(life_of(fresh(home), **facts))
    found: set[tuple[str, ...]] = set()
    for number in range(len(steps)):
        folder = fresh(home)
        assert killed_before(number, life_of(folder, **facts))
        before = told_of(home, folder.id)
        try:
            assert query.read_job(home, folder.id).is_final
        except JobNotFound:
            assert before == told_of(home, folder.id) == []
            continue
        assert told_of(home, folder.id) == ["task_started", "task_notification"], f"killed before {steps[number]}"
        found.add(tuple(before))

    assert {(), ("task_started",), ("task_started", "task_notification")} == found


@pytest.mark.req("N-06", "B-05")
def test_one_who_repairs_and_is_killed_between_any_two_steps_doubles_nothing(home: str) -> None:
    def decided() -> JobPaths:
        """A job whose keeper died right after its decision."""
        folder = job_folder(home, recipient="ada")
        finish_halfway(folder, End("exited", 3))
        os.unlink(folder.end)
        return folder

    add(home)
    repair(decided())()()
    steps = calls_of(repair(decided()))
    for number in range(len(steps)):
        folder = decided()
        assert killed_before(number, repair(folder))
        assert query.read_job(home, folder.id).is_final
        assert told_of(home, folder.id) == ["task_notification"], f"killed before {steps[number]}"

    ends = [event.data["uuid"] for event in all_events(home) if event.is_end]
    assert len(set(ends)) == len(ends) == len(steps) + 2
