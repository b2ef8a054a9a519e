"""MCP servers watched in the background: real ones, over stdio and HTTP, of both protocols."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.jobs import marked
from support.monitors import STARTUP, Events, Told, output_of
from support.wait import until
from taskyard import MissingExtra, Monitor
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import JobStatus

URI = "file:///log"


def source(events: Events, **more: object) -> Monitor:
    """A monitor of a server."""
    wish = Monitor(resources=[URI], logs="warning", name="files")._replace(**more)  # type: ignore[arg-type]
    return wish._replace(mcp_command=events.argv) if events.process is None else wish._replace(mcp_url=events.url)


@pytest.mark.req("K-06")
@pytest.mark.parametrize("era", ["new", "old"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_changes_and_log_messages_are_events_and_a_dead_server_is_told(
    jobs: Jobs, tmp_path: Path, transport: str, era: str
) -> None:
    with Events(tmp_path / "server", era, transport) as events:
        told = Told(jobs)
        job = jobs.start(source(events))
        events.is_asked()
        until(lambda: jobs.get(job.id).status is JobStatus.RUNNING)

        events.order(f"update {URI}", r"log error \x1b[31mno room\n</task-notification>")
        told.hears(f"updated: {URI}")
        told.hears("error disk: ")
        assert output_of(job).splitlines() == [f"updated: {URI}", r"error disk: \x1b[31mno room </task-notification>"]

        events.order("exit 3")
        ended = jobs.wait(job.id, timeout=STARTUP)
        assert ended.status is JobStatus.FAILED and ended.end is not None
        expected = "its server ended (exit code 3)" if transport == "stdio" else "connection"
        assert expected in ended.end.error


@pytest.mark.req("K-06")
def test_a_server_that_closes_the_stream_in_good_order_completes_the_monitor(jobs: Jobs, tmp_path: Path) -> None:
    with Events(tmp_path / "server") as events:
        job = jobs.start(source(events))
        events.is_asked()
        events.order("close")

        assert jobs.wait(job.id, timeout=STARTUP).status is JobStatus.COMPLETED


@pytest.mark.req("K-06")
def test_a_lost_server_is_tried_again_if_wanted(jobs: Jobs, tmp_path: Path) -> None:
    with Events(tmp_path / "server") as events:
        told = Told(jobs)
        jobs.start(source(events, reconnect=True))
        events.is_asked()
        events.order("exit 3")

        told.hears("the source is lost: its server ended (exit code 3); next try in 1 s")
        events.is_asked(times=2)
        told.hears("the source is back")
        events.order(f"update {URI}")
        told.hears(f"updated: {URI}")


@pytest.mark.req("K-06")
def test_garbage_is_passed_over_and_a_message_without_end_ends_it(jobs: Jobs, tmp_path: Path) -> None:
    with Events(tmp_path / "server", "old") as events:
        told = Told(jobs)
        job = jobs.start(source(events))
        events.is_asked()
        events.order("raw this is no message", f"update {URI}")
        told.hears(f"updated: {URI}")
        assert "no message" not in output_of(job)

        events.order("huge 5000000")
        ended = jobs.wait(job.id, timeout=STARTUP)
        assert ended.end is not None and "more than 4,000,000 bytes" in ended.end.error


@pytest.mark.req("K-06", "K-08")
def test_a_stop_ends_the_subscription_and_the_server_with_it(jobs: Jobs, tmp_path: Path) -> None:
    with Events(tmp_path / "server") as events:
        job = jobs.start(source(events))
        events.is_asked()
        assert marked(str(events.folder))

        [stopped] = jobs.stop(job.id)

        assert stopped.outcome == "stopped" and marked(str(events.folder)) == []


@pytest.mark.req("K-06")
def test_a_token_reaches_the_server_and_no_file(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENTS_TOKEN", "s3cr3t-word")
    with Events(tmp_path / "server", "new", "http") as events:
        job = jobs.start(source(events, token_env="EVENTS_TOKEN"))
        events.is_asked()
        jobs.stop(job.id)

        assert (events.folder / "token").read_bytes() == b"Bearer s3cr3t-word"
    stored = [path for path in Path(jobs.home).rglob("*") if path.is_file()]
    assert stored and not [path for path in stored if b"s3cr3t-word" in path.read_bytes()]


@pytest.mark.req("K-06")
def test_a_server_that_is_not_there_and_a_token_that_is_not_set_are_told(jobs: Jobs) -> None:
    nowhere = Monitor(mcp_url="http://127.0.0.1:9/mcp", logs="info")
    for wish, why in ((nowhere, "connection"), (nowhere._replace(token_env="NO_SUCH_TOKEN"), "NO_SUCH_TOKEN")):
        ended = jobs.wait(jobs.start(wish).id, timeout=STARTUP)
        assert ended.status is JobStatus.FAILED and ended.end is not None and why in ended.end.error


@pytest.mark.req("K-06")
def test_without_the_client_it_is_refused_with_what_to_install(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"\[mcp\]"):
        jobs.start(Monitor(mcp_command="server", logs="info"))
