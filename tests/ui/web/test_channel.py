"""The changes of one list, for all who look at it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from support.web import events_in
from taskyard.tasks.model import Task, TaskStatus
from taskyard.ui.snapshot import Snapshot, ViewInput, build_snapshot, snapshot_json
from taskyard.ui.web import channel as channels
from taskyard.ui.web.channel import Channel, EventIds


class Source:
    """What a list shows: tasks, each with its subject."""

    def __init__(self) -> None:
        self.subjects: dict[str, str] = {"1": "first"}
        self.snapshot: Snapshot = self._made()

    def change(self, **subjects: str) -> None:
        self.subjects.update({name.strip("_"): subject for name, subject in subjects.items()})
        self.snapshot = self._made()

    def _made(self) -> Snapshot:
        tasks = [Task(one, text, text, None, None, TaskStatus.PENDING) for one, text in self.subjects.items()]
        return build_snapshot(ViewInput("plan", tasks))


def channel(numbers: EventIds | None = None) -> tuple[Source, Channel]:
    def wake(what: Callable[[], None]) -> None:
        what()

    source = Source()
    return source, Channel(source, numbers or EventIds("s"), wake)


def shown(data: list[bytes]) -> dict[str, object]:
    """What a screen shows that got these events."""
    found: dict[str, object] = {}
    for told in events_in(b"".join(data).decode()):
        if told.name == "snapshot":
            found = {**told.data}
            found.pop("id")
            continue
        for key, value in told.data.items():
            if key in ("tasks", "jobs", "people"):
                rows = found[key]
                assert isinstance(rows, dict)
                rows.update(value)
                found[key] = {one: row for one, row in rows.items() if row is not None}
            else:
                found[key] = value
    return found


@pytest.mark.req("U-04")
def test_who_comes_back_with_an_id_that_is_kept_gets_what_came_since_and_nothing_twice() -> None:
    source, seen = channel()
    first = seen.whole()
    source.change(_1="changed")
    seen.look()
    middle = seen.number
    source.change(_2="second")
    seen.look()
    got = seen.after(first.number)
    assert got is not None
    assert [item.number for item in got] == [middle, seen.number]
    assert shown([first.data, *(item.data for item in got)]) == json.loads(json.dumps(snapshot_json(source.snapshot)))
    assert seen.after(middle) == got[1:]
    assert seen.after(seen.number) == []


@pytest.mark.req("U-04")
def test_ids_of_another_server_or_list_or_of_nobody_lead_to_the_whole() -> None:
    numbers = EventIds("s")
    (_, one), (other_source, other) = channel(numbers), channel(numbers)
    other_source.change(_1="x")
    other.look()
    assert one.after(other.number) is None
    assert other.after(one.number) is None
    for mark in ("", "s", "s-", "t-1", "s-x", "s--1", "s-" + "1" * 99, "-1", "s-٣"):
        assert numbers.parsed(mark) is None
    assert numbers.parsed(numbers.shown(12)) == 12
    assert one.after(None) is None


def test_all_who_look_get_the_same_bytes() -> None:
    source, seen = channel()
    before = seen.number
    source.change(_1="changed")
    seen.look()
    ours, theirs = seen.after(before), seen.after(before)
    assert ours and theirs and ours[0].data is theirs[0].data
    assert seen.whole() is seen.whole()


def test_what_shows_the_same_is_no_change() -> None:
    source, seen = channel()
    before = seen.number
    source.change(_1="first")
    seen.look()
    seen.look()
    assert seen.number == before


@pytest.mark.req("U-04")
def test_however_much_changes_what_is_kept_is_bounded_and_who_lags_begins_anew() -> None:
    source, seen = channel()
    begin = seen.number
    for number in range(channels.MOST_BEHIND + 1):
        source.change(_1=f"subject {number}")
        seen.look()
    assert seen.after(begin) is None
    assert seen.after(begin + 1) is not None
    for number in range(channels.MOST_KEPT):
        source.change(_1=f"another {number}")
        seen.look()
    assert len(seen._kept) == channels.MOST_KEPT
    assert seen.after(begin + 1) is None


def test_few_large_changes_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MOST_BYTES", 10_000)
    source, seen = channel()
    for number in range(20):
        source.change(_1=f"{number}" * 1000)
        seen.look()
    assert sum(len(item.data) for item in seen._kept) <= 10_000
    assert seen.after(seen.number) == []


def test_who_lags_by_few_large_changes_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MOST_BEHIND_BYTES", 3_000)
    source, seen = channel()
    begin = seen.number
    for number in range(3):
        source.change(_1=f"{number}" * 1000)
        seen.look()
    assert seen.after(begin) is None
    assert seen.after(seen.number - 1) is not None
