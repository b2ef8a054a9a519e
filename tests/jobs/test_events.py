"""Reading the stream of events: from any id, as it grows, over segments, past what is torn, never past what is gone."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import taskyard
from support.event_streams import add, all_events, segments
from taskyard.errors import BadJobId, BadValue, EventsGone, JobNotFound
from taskyard.jobs import event_log
from taskyard.jobs.events import Events, to_json
from taskyard.storage.inotify import Subscription
from taskyard.storage.journal import Journal

pytestmark = pytest.mark.req("N-06")


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that hold a few events."""
    monkeypatch.setattr(event_log, "SEGMENT_SIZE", 1000)


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


def by_the_book(home: str) -> list[tuple[int, object]]:
    """Every event with its id, as docs/reference/files.md says to read them."""
    found: list[tuple[int, object]] = []
    for path in segments(home):
        data = path.read_bytes()
        for line in re.finditer(rb"(?<=\n)[^\n]+(?=\n(?:\n|\Z))", data):
            if line.start() <= event_log.SEGMENT_SIZE:
                found.append((int(path.stem) + line.start(), json.loads(line[0])["n"]))
    return found


@pytest.mark.usefixtures("small")
def test_the_file_is_read_as_it_is_documented(home: str) -> None:
    ids = [add(home, n=n) for n in range(20)]
    with open(segments(home)[-1], "ab") as file:
        file.write(b'\n{"type": "sys')
    ids += [add(home, n=n) for n in range(20, 30)]

    assert by_the_book(home) == [(event.id, event.data["n"]) for event in all_events(home)] == [*zip(ids, range(30))]


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


def test_only_what_comes_from_now_on(home: str) -> None:
    add(home, n=0)
    events = Events(home)
    position = events.skip()
    add(home, n=1)

    assert [event.data["n"] for event in events] == [1]
    assert [event.data["n"] for event in all_events(home, position)] == [1]


@pytest.mark.req("N-06", "L-14")
def test_a_yard_reads_the_stream_of_its_home() -> None:
    with taskyard.open(list="x", agent="ada") as yard:
        job = yard.jobs.run(taskyard.Shell("true"), timeout=20)
        found = list(yard.events())

        assert [event.task_id for event in found] == [job.id, job.id]
        assert [event.data["session_id"] for event in found] == ["ada", "ada"]
        assert list(yard.events(found[0].id)) == found[1:]


@pytest.mark.timeout(20)
def test_who_is_closed_at_the_very_moment_it_looks_comes_to_its_end(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events(home, follow=True)
    changed = Subscription.changed

    def closed_meanwhile(followed: Subscription) -> set[str] | None:
        events.close()
        return changed(followed)

    monkeypatch.setattr(Subscription, "changed", closed_meanwhile)

    assert list(events) == []
