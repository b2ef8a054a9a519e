"""Reading the stream of events: from any id, as it grows, over segments, past what is torn, never past what is gone."""

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
from support.event_streams import add, all_events, segments
from support.jobs import kill_keeper
from support.wait import until
from taskyard.disk.journal import Journal
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import BadJobId, BadValue, EventsGone, JobNotFound
from taskyard.kinds.shell import Shell
from taskyard.runtime import event_stream, waiting
from taskyard.runtime.events import Event, Events, to_json
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.jobs import Jobs

pytestmark = pytest.mark.req("N-06")


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that hold a few events."""
    monkeypatch.setattr(event_stream, "SEGMENT_SIZE", 1000)


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


def test_a_stream_that_nobody_wrote_to_is_empty(home: str) -> None:
    assert all_events(home) == all_events(home, 0) == []


def test_ids_grow_and_each_of_them_resumes_right_behind_itself(home: str) -> None:
    ids = [add(home, n=n) for n in range(5)]

    assert [event.id for event in all_events(home, 0)] == ids == sorted(set(ids))
    for count, event_id in enumerate(ids, 1):
        assert [event.data["n"] for event in all_events(home, event_id)] == list(range(count, 5))


def test_an_id_is_where_the_line_begins(home: str) -> None:
    event_id = [add(home, n=n) for n in range(3)][1]
    (segment,) = segments(home)

    assert segment.read_bytes()[event_id:].startswith(b'{"type": "system"')


@pytest.mark.usefixtures("small")
def test_any_number_resumes_at_the_next_event_over_segments(home: str) -> None:
    ids = [add(home, n=n) for n in range(30)]
    assert len(segments(home)) > 3

    for since in range(0, ids[-1] + 1, 7):
        assert [event.id for event in all_events(home, since)] == [event_id for event_id in ids if event_id > since]


def test_an_event_is_a_message_with_its_id_and_time(home: str) -> None:
    event_id = add(home, "b12345678", summary="x")
    (event,) = all_events(home)

    assert (event.id, event.subtype, event.task_id, event.is_end) == (event_id, "task_progress", "b12345678", False)
    assert to_json(event) == {"id": event_id, "at": event.at, **event.data}
    assert event.data == {
        "type": "system",
        "subtype": "task_progress",
        "task_id": "b12345678",
        "summary": "x",
        "uuid": "u",
        "session_id": "me",
    }


#: An event of which the disk took all but the last newline, so that its writer was refused.
REFUSED = b'\n{"type": "system", "subtype": "task_started", "task_id": "b00000000", "at": 1}'


@pytest.mark.parametrize("torn", [b"\n", b'\n{"type": "sys', REFUSED, b"\n" + b"\x00\xff" * 3000])
def test_a_torn_tail_is_neither_shown_nor_swallows_the_next(home: str, torn: bytes) -> None:
    first = add(home, n=0)
    with open(segments(home)[0], "ab") as file:
        file.write(torn)
    events = Events(home)
    assert [event.id for event in events] == [first]
    assert events.unreadable == 0  # it may be on its way
    after = add(home, n=1)

    assert [event.id for event in events] == [after]
    assert [event.id for event in all_events(home)] == [first, after]
    assert events.unreadable == (1 if torn.strip() else 0)


def test_lines_that_are_no_events_are_passed_over_and_counted_once(home: str) -> None:
    first = add(home)
    with open(segments(home)[0], "ab") as file:
        file.write(b'\n[1]\n\n{"at": 1}\n\n{"at": 1, "subtype": "task_started", "task_id": "../x"}\n\n\xff\n')
    last = add(home)
    events = Events(home)

    assert [event.id for event in events] == [first, last]
    assert list(events) == []
    assert events.unreadable == 4


@pytest.mark.usefixtures("small")
def test_events_that_are_no_longer_kept_are_said_to_be_gone(home: str) -> None:
    ids = [add(home, n=n) for n in range(30)]
    first, *_, last = segments(home)
    first.unlink()
    oldest = int(segments(home)[0].stem)

    for since in (0, ids[0]):
        with pytest.raises(EventsGone) as gone:
            Events(home, since)
        assert (gone.value.since, gone.value.first) == (since, oldest)
    kept = [event.id for event in all_events(home)]
    assert kept == [event.id for event in all_events(home, oldest)] == [one for one in ids if one > oldest]
    last.unlink()
    with pytest.raises(EventsGone, match="begun anew"):
        Events(home, ids[-1])


@pytest.mark.usefixtures("small")
def test_a_gap_in_the_middle_is_not_stepped_over_in_silence(home: str) -> None:
    for n in range(30):
        add(home, n=n)
    segments(home)[2].unlink()

    with pytest.raises(EventsGone):
        all_events(home)


@pytest.mark.usefixtures("small")
def test_a_segment_that_goes_while_it_is_about_to_be_read_is_missed(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(30):
        add(home, n=n)
    events = Events(home, 0)
    listed = Journal(f"{home}/events", segment_size=1000).segments()
    segments(home)[0].unlink()
    monkeypatch.setattr(Journal, "segments", lambda _: listed)

    with pytest.raises(EventsGone):
        list(events)


def test_a_position_that_was_never_reached_is_refused(home: str) -> None:
    with pytest.raises(EventsGone):
        Events(home, 7)
    last = add(home)
    with pytest.raises(EventsGone) as beyond:
        Events(home, last + 10_000)
    assert beyond.value.last < last + 10_000
    with pytest.raises(BadValue):
        Events(home, -1)


@pytest.mark.parametrize(("job", "error"), [("b00000000", JobNotFound), ("../x", BadJobId)])
def test_a_job_that_is_none_is_refused(home: str, job: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Events(home, job=job)


def test_reading_on_costs_only_what_is_new(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2000):
        last = add(home, text="x" * 1000)
    read: list[bytes] = []
    whole = os.pread

    def counted(fd: int, size: int, at: int) -> bytes:
        read.append(whole(fd, size, at))
        return read[-1]

    monkeypatch.setattr(os, "pread", counted)

    assert all_events(home, last) == []
    assert len(b"".join(read)) < 10_000


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


def test_only_what_comes_from_now_on(home: str) -> None:
    add(home, n=0)
    events = Events(home)
    position = events.skip()
    add(home, n=1)

    assert [event.data["n"] for event in events] == [1]
    assert [event.data["n"] for event in all_events(home, position)] == [1]


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
def told_but_not_ended(home: str) -> Iterator[JobFolder]:
    """A job whose keeper lives, and has told of its end but not written it yet."""
    folder = job_folder(home)
    add(home, folder.id, "task_notification")
    with RangeLock(folder.lock) as keeper:
        assert keeper.try_take(0)
        yield folder


def test_an_end_is_shown_when_it_is_written_not_already_when_it_is_told(
    told_but_not_ended: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = told_but_not_ended
    monkeypatch.setattr(waiting, "wait", lambda *_: Path(folder.end).touch())  # the keeper goes on meanwhile

    event = next(iter(Events(folder.home, 0, follow=True)))

    assert event.is_end
    assert Path(folder.end).exists()


def test_a_keeper_stopped_on_its_way_to_the_end_does_not_stop_followers(told_but_not_ended: JobFolder) -> None:
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


@pytest.mark.req("N-06", "L-14")
def test_a_yard_reads_the_stream_of_its_home() -> None:
    with taskyard.open(list="x", agent="ada") as yard:
        job = yard.jobs.run(taskyard.Shell("true"), timeout=20)
        found = list(yard.events())

        assert [event.task_id for event in found] == [job.id, job.id]
        assert [event.data["session_id"] for event in found] == ["ada", "ada"]
        assert list(yard.events(found[0].id)) == found[1:]
