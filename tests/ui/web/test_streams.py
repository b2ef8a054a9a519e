"""What goes on: a list as it changes, what a job prints, what happens to jobs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from support.wait import until
from support.web import Listening, Told, Web, with_web
from support.yards import write_task
from taskyard.config import tasks_dir
from taskyard.jobs.kinds.shell import Shell
from taskyard.ui.web import site, streams
from taskyard.ui.web.channel import MOST_BEHIND

#: Seconds in which a change from outside is to be seen.
SOON = 1.0


def tells_of(task_id: str, subject: str) -> Callable[[Told], bool]:
    def fits(told: Told) -> bool:
        row = told.data.get("tasks", {}).get(task_id)
        return row is not None and row["subject"] == subject

    return fits


async def in_thread(act: Callable[..., object], *words: object) -> None:
    await anyio.to_thread.run_sync(lambda: act(*words))


async def becomes(condition: Callable[[], object]) -> None:
    await anyio.to_thread.run_sync(lambda: until(condition))


@pytest.mark.req("U-04")
def test_a_stream_begins_with_the_whole_and_goes_on_with_what_changes() -> None:
    async def body(web: Web) -> None:
        web.yard.tasks.create("First")
        async with web.listen("/api/stream?list=plan") as stream:
            first = await stream.next()
            assert first.name == "snapshot"
            assert first.data["tasks"]["1"]["subject"] == "First"
            assert first.data["id"] == first.id
            await in_thread(web.yard.tasks.create, "Second")
            change = await stream.next()
            assert change.name == "change"
            assert set(change.data["tasks"]) == {"2"}
            assert change.data["task_order"] == ["1", "2"]
            assert change.id != first.id
            got = (await web.get("/api/snapshot.json")).data
            assert got["id"] == change.id

    with_web(body)


@pytest.mark.serial
@pytest.mark.req("L-18", "U-04")
def test_writes_of_other_programs_are_seen_within_a_second() -> None:
    async def body(web: Web) -> None:
        folder = Path(tasks_dir()) / "plan"
        write_task(folder, "1", subject="As it was")
        async with web.listen("/api/stream") as stream:
            await stream.next("snapshot")
            raw = json.loads((folder / "1.json").read_bytes())
            began = time.monotonic()
            (folder / "1.json").write_text(json.dumps({**raw, "subject": "In place"}), encoding="utf-8")
            await stream.until(tells_of("1", "In place"))
            assert time.monotonic() - began < SOON
            (folder / "swap").write_text(json.dumps({**raw, "subject": "By an editor"}), encoding="utf-8")
            began = time.monotonic()
            os.rename(folder / "swap", folder / "1.json")
            await stream.until(tells_of("1", "By an editor"))
            assert time.monotonic() - began < SOON

    with_web(body)


@pytest.mark.req("L-18", "U-04")
def test_a_list_whose_folder_is_made_later_appears() -> None:
    async def body(web: Web) -> None:
        async with web.listen("/api/stream") as stream:
            first = await stream.next("snapshot")
            assert first.data["lists"] == []
            write_task(Path(tasks_dir()) / "plan", "7", subject="Late")
            await stream.until(tells_of("7", "Late"))
            write_task(Path(tasks_dir()) / "other", "1")
            await stream.until(lambda told: told.data.get("lists") == ["other", "plan"])
        assert (await web.get("/api/board.json?list=other")).data["task_order"] == ["1"]

    with_web(body)


@pytest.mark.req("U-04")
def test_who_comes_back_misses_nothing_and_gets_nothing_twice() -> None:
    async def body(web: Web) -> None:
        async with web.listen("/api/stream") as stream:
            first = await stream.next("snapshot")
            await in_thread(web.yard.tasks.create, "One")
            seen = await stream.until(tells_of("1", "One"))
        for number in range(3):
            await in_thread(web.yard.tasks.create, f"Meanwhile {number}")
        async with web.listen("/api/stream", Last_Event_ID=seen.id) as again:
            came: set[str] = set()
            while len(came) < 3:
                told = await again.next()
                assert told.name == "change"
                assert not came & set(told.data["tasks"])
                came |= set(told.data["tasks"])
            assert came == {"2", "3", "4"}
        async with web.listen(f"/api/stream?last_event_id={first.id}") as by_query:
            assert (await by_query.next()).name == "change"
        for mark in ("0-1", "nonsense", "x" * 64):
            async with web.listen("/api/stream", Last_Event_ID=mark) as stranger:
                assert (await stranger.next()).name == "snapshot"

    with_web(body)


@pytest.mark.req("U-04")
def test_who_does_not_read_keeps_nobody_waiting_and_then_gets_the_whole() -> None:
    async def body(web: Web) -> None:
        web.yard.tasks.create("Task")
        async with web.listen("/api/stream", reads=False) as slow, web.listen("/api/stream") as quick:
            await quick.next("snapshot")
            for number in range(MOST_BEHIND + 2):
                await in_thread(lambda n: web.yard.tasks.update("1", subject=f"Subject {n}"), number)
                await quick.until(tells_of("1", f"Subject {number}"))
            assert slow.sent < 500  # what waits for it is what it has not read, and no more
            slow.resume_reading()
            first = await slow.next()
            assert first.name == "snapshot"
            assert first.data["tasks"]["1"]["subject"] == f"Subject {MOST_BEHIND + 1}"
            assert slow.unread == 0

    with_web(body)


@pytest.mark.req("U-04")
def test_who_does_not_read_for_long_is_let_go() -> None:
    async def body(web: Web) -> None:
        async with web.listen("/api/stream", reads=False):
            await becomes(lambda: web.site.metrics.streams == 1)
            await becomes(lambda: web.site.metrics.streams == 0)

    with_web(body, patience=0.1)


def test_a_silent_stream_says_that_it_is_there() -> None:
    async def body(web: Web) -> None:
        async with web.listen("/api/stream") as stream, web.listen("/api/events") as events:
            await stream.next("snapshot")
            await stream.heard(": still here")
            await events.heard(": still here")

    with_web(body, heartbeat=0.05)


def test_as_many_may_listen_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskyard.ui.web.site.MOST_STREAMS", 1)

    async def body(web: Web) -> None:
        async with web.listen("/api/stream") as stream:
            await stream.next("snapshot")
            for path in ("/api/stream", "/api/events"):
                got = await web.get(path)
                assert (got.status, got.error["code"], "retry-after" in got.headers) == (503, "busy", True)

    with_web(body)


def test_a_list_nobody_looks_at_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "LINGER", 0.02)

    async def body(web: Web) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(web.site.lists.tidy)
            async with web.listen("/api/stream") as stream:
                await stream.next("snapshot")
                assert set(web.site.lists.open) == {"plan"}
            await becomes(lambda: not web.site.lists.open)
            assert (await web.get("/api/board.json")).status == 200
            tasks.cancel_scope.cancel()

    with_web(body)


def test_only_so_many_lists_are_kept_up_to_date_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "MOST_OPEN", 2)

    async def body(web: Web) -> None:
        for name in ("a", "b", "c"):
            write_task(Path(tasks_dir()) / name, "1")
        for name in ("a", "b", "c"):
            assert (await web.get(f"/api/board.json?list={name}")).status == 200
        assert len(web.site.lists.open) == 2
        async with web.listen("/api/stream?list=a") as one, web.listen("/api/stream?list=b") as two:
            await one.next()
            await two.next()
            got = await web.get("/api/board.json?list=c")
            assert (got.status, got.error["code"]) == (503, "busy")

    with_web(body)


# -- what a job prints -----------------------------------------------------------------------------


async def lines_until_over(stream: Listening) -> list[str]:
    """Every line, as a screen that lays windows over each other has it."""
    found: dict[int, str] = {}
    while True:
        window = (await stream.next("output")).data
        found = {offset: text for offset, text in found.items() if offset < window["start"]}
        for offset, runs in zip(window["offsets"], window["lines"], strict=True):
            found[offset] = "".join(text for text, _ in runs)
        if window["is_over"] and window["end"] == window["size"]:
            return [found[offset] for offset in sorted(found)]


@pytest.mark.req("U-04")
def test_what_a_job_prints_comes_as_it_is_printed(tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def body(web: Web) -> None:
        script = f"printf 'one\\n'; printf 'half'; until [ -e {go} ]; do sleep 0.02; done; echo ' and half'; echo three"
        job = await anyio.to_thread.run_sync(lambda: web.yard.jobs.start(Shell(script)))
        async with web.listen(f"/api/stream?job={job.id}&after=0") as stream:
            await stream.until(lambda told: told.data["partial"])
            go.touch()
            stream.rewind()
            assert await lines_until_over(stream) == ["one", "half and half", "three"]
            await becomes(lambda: stream.is_over)

    with_web(body)


def test_a_job_and_a_list_can_be_heard_on_one_stream() -> None:
    async def body(web: Web) -> None:
        job = await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell("echo hello"), timeout=30))
        async with web.listen(f"/api/stream?list=plan&job={job.id}") as stream:
            names = {(await stream.next()).name, (await stream.next()).name}
            assert names == {"snapshot", "output"}
        assert (await web.get("/api/stream?job=b00000000")).status == 404

    with_web(body)


def test_much_output_is_told_whole_to_who_keeps_up_and_by_its_end_to_who_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("taskyard.ui.web.reads._WINDOW_BYTES", 20_000)

    async def body(web: Web) -> None:
        job = await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell("seq 30000"), timeout=30))
        async with web.listen(f"/api/stream?job={job.id}&after=0") as stream:
            assert await lines_until_over(stream) == [str(number) for number in range(1, 30_001)]
        monkeypatch.setattr("taskyard.ui.web.reads._MOST_BEHIND", 100_000)
        async with web.listen(f"/api/stream?job={job.id}&after=0") as stream:
            window = (await stream.next("output")).data
            assert window["omitted"] == window["start"] > 100_000
            assert window["lines"][-1] == [["30000", ""]]

    with_web(body)


# -- what happens to jobs --------------------------------------------------------------------------


@pytest.mark.req("N-06")
def test_events_of_jobs_come_with_the_ids_of_the_journal_from_any_of_them_on() -> None:
    async def body(web: Web) -> None:
        async with web.listen("/api/events") as stream:
            job = await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell("true"), timeout=30))
            started = await stream.next()
            ended = await stream.next()
            assert [started.name, ended.name] == ["task_started", "task_notification"]
            assert started.data["task_id"] == ended.data["task_id"] == job.id
            assert int(started.id) == started.data["id"] < int(ended.id)
        assert [event.id for event in web.yard.events()] == [int(started.id), int(ended.id)]
        async with web.listen(f"/api/events?since={started.id}") as again:
            assert (await again.next()) == ended
        async with web.listen("/api/events?since=0", Last_Event_ID=ended.id) as last:
            more = await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell("true"), timeout=30))
            assert (await last.next()).data["task_id"] == more.id
        async with web.listen(f"/api/events?job={more.id}") as one:
            assert (await one.next()).data["task_id"] == more.id

    with_web(body)


@pytest.mark.req("N-06")
def test_events_that_are_not_there_are_not_left_out_in_silence() -> None:
    async def body(web: Web) -> None:
        got = await web.get("/api/events?since=999999")
        assert (got.status, got.error["code"]) == (404, "events_gone")
        assert (await web.get("/api/events", Last_Event_ID="x")).status == 400
        assert (await web.get("/api/events?job=b00000000")).status == 404

    with_web(body)


@pytest.mark.req("N-06")
def test_many_events_are_told_in_order_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_BATCH", 7)

    async def body(web: Web) -> None:
        from taskyard.jobs import event_log

        ids = [
            event_log.append(web.yard.home, {"subtype": "task_progress", "task_id": "b3k9x0q2m", "n": number})
            for number in range(100)
        ]
        async with web.listen("/api/events") as stream:
            assert [int((await stream.next()).id) for _ in ids] == ids

    with_web(body)
