"""Following the stream of events: what comes is seen once and in order, ends when they are written, deaths at once."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import taskyard
from support.ended_jobs import job_folder
from support.event_streams import add, segments
from support.jobs import kill_keeper
from support.wait import until
from taskyard.errors import EventsGone
from taskyard.jobs import event_log, wait
from taskyard.jobs.events import Event, Events
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.storage.locks import RangeLock

pytestmark = pytest.mark.req("N-06")


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that hold a few events."""
    monkeypatch.setattr(event_log, "SEGMENT_SIZE", 1000)


class Follower:
    """Somebody in another thread who follows."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.seen: list[Event] = []
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for event in self.events:
                self.seen.append(event)
        except taskyard.TaskyardError as error:
            self.error = error

    def end(self) -> None:
        self.events.close()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture
def following() -> Iterator[Callable[..., Follower]]:
    made: list[Follower] = []

    def begin(home: str, since: int | None = None, **how: Any) -> Follower:
        made.append(Follower(Events(home, since, follow=True, debounce=0.0, **how)))
        return made[-1]

    yield begin
    for follower in made:
        follower.end()


def test_a_follower_sees_what_is_there_and_what_comes_once_and_in_order(
    home: str, following: Callable[..., Follower]
) -> None:
    before = [add(home, n=n) for n in range(3)]
    follower = following(home, 0)
    until(lambda: len(follower.seen) == 3)
    after = [add(home, n=n) for n in range(3, 6)]
    until(lambda: len(follower.seen) == 6)

    assert [event.id for event in follower.seen] == before + after


def test_a_follower_may_come_before_the_first_event(home: str, following: Callable[..., Follower]) -> None:
    follower = following(home)
    event_id = add(home)

    until(lambda: [event.id for event in follower.seen] == [event_id])


@pytest.mark.usefixtures("small")
def test_a_follower_goes_on_over_segments(home: str, following: Callable[..., Follower]) -> None:
    follower = following(home, 0)
    ids = [add(home, n=n) for n in range(50)]
    until(lambda: len(follower.seen) == 50)

    assert len(segments(home)) > 5
    assert [event.id for event in follower.seen] == ids


@pytest.mark.usefixtures("small")
def test_a_follower_who_is_too_slow_is_told(home: str) -> None:
    for n in range(30):
        add(home, n=n)
    following = iter(Events(home, 0, follow=True))
    assert next(following).data["n"] == 0
    for path in segments(home)[:-1]:
        path.unlink()

    with pytest.raises(EventsGone):
        list(following)


@pytest.mark.req("N-06", "B-08")
def test_a_follower_hears_of_a_killed_keeper_by_itself(jobs: Jobs, following: Callable[..., Follower]) -> None:
    before = jobs.start(Shell("sleep 60"))
    follower = following(jobs.home)
    until(lambda: follower.seen)
    after = jobs.start(Shell("sleep 60"))
    until(lambda: len(follower.seen) == 2)
    for job in (before, after):
        kill_keeper(jobs, job)

    until(lambda: len(follower.seen) == 4)
    assert {event.task_id for event in follower.seen if event.is_end} == {before.id, after.id}


def test_whoever_follows_one_job_stays_until_its_end(jobs: Jobs, following: Callable[..., Follower]) -> None:
    job = jobs.start(Shell("sleep 60"))
    follower = following(jobs.home, job=job.id)
    jobs.run(Shell("true"), timeout=20)
    jobs.stop(job.id, grace=0.1)
    follower.thread.join(10)

    assert [(event.task_id, event.subtype) for event in follower.seen] == [
        (job.id, "task_started"),
        (job.id, "task_notification"),
    ]
    late = following(jobs.home, follower.seen[-1].id, job=job.id)
    late.thread.join(10)
    assert not late.thread.is_alive() and late.seen == []


def test_whoever_hears_of_an_end_finds_it(jobs: Jobs) -> None:
    started = [jobs.start(Shell("true")).id for _ in range(20)]
    ended = 0
    for event in Events(jobs.home, 0, follow=True, debounce=0.0):
        if event.is_end:
            assert jobs.get(event.task_id).is_final
            ended += 1
            if ended == len(started):
                break


@pytest.fixture
def told_but_not_ended(home: str) -> Iterator[JobPaths]:
    """A job whose keeper lives, and has told of its end but not written it yet."""
    folder = job_folder(home)
    add(home, folder.id, "task_notification")
    with RangeLock(folder.lock) as keeper:
        assert keeper.try_take(0)
        yield folder


def test_an_end_is_shown_when_it_is_written_not_already_when_it_is_told(
    told_but_not_ended: JobPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = told_but_not_ended
    monkeypatch.setattr(wait, "wait", lambda *_: Path(folder.end).touch())  # the keeper goes on meanwhile

    event = next(iter(Events(folder.home, 0, follow=True)))

    assert event.is_end
    assert Path(folder.end).exists()


def test_a_keeper_stopped_on_its_way_to_the_end_does_not_stop_followers(told_but_not_ended: JobPaths) -> None:
    assert next(iter(Events(told_but_not_ended.home, 0, follow=True))).task_id == told_but_not_ended.id


def test_a_program_with_an_event_loop_awaits_events(tmp_path: Path) -> None:
    async def work() -> list[str]:
        seen: list[str] = []
        async with taskyard.open_async(tasks_dir=tmp_path, list="plan", agent="ada") as yard:
            waiting = asyncio.create_task(_first_end(yard, seen))
            job = await yard.jobs.start(Shell("true"))
            ended = await asyncio.wait_for(waiting, 20)
            assert ended.task_id == job.id
            seen += [event.subtype async for event in yard.events(job=job.id)]
        return seen

    assert asyncio.run(work()) == ["task_started", "task_notification"] * 2


async def _first_end(yard: taskyard.AsyncYard, seen: list[str]) -> Event:
    async for event in yard.events(follow=True):
        seen.append(event.subtype)
        if event.is_end:
            return event
    raise AssertionError


def test_a_loop_that_gives_up_waiting_is_not_held_back(home: str) -> None:
    async def work() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                async for _ in Events(home, follow=True):
                    pass

    before = threading.active_count()
    asyncio.run(work())  # waits for every thread that it started
    until(lambda: threading.active_count() <= before + 1, what="only the shared watcher to be left")


def test_following_leaves_no_descriptor_behind(home: str) -> None:
    add(home)

    def look() -> int:
        next(iter(Events(home, 0, follow=True)))
        return len(os.listdir("/proc/self/fd"))

    first = look()
    until(lambda: look() <= first, what="as few descriptors as after the first look")
