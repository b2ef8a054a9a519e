"""`taskyard web` as a process: how it begins, goes on after a restart, and ends."""

from __future__ import annotations

import signal
import stat
import time
from pathlib import Path

import pytest

import taskyard
from support import cli
from support.wait import until
from support.web import Open, Told, WebServer
from taskyard.jobs.kinds.shell import Shell

#: Seconds a server may take to end, on a machine with other things to do.
BOUND = 10.0


def made(subject: str) -> str:
    with taskyard.open(list="plan") as yard:
        return yard.tasks.create(subject).id


def tasks_of(told: Told) -> set[str]:
    return set(told.data.get("tasks", {}))


@pytest.mark.req("U-04")
def test_fifty_who_listen_all_hear_of_a_change_and_keep_no_server_from_ending_at_once() -> None:
    with WebServer() as server:
        streams = [server.open("/api/stream?list=plan") for _ in range(50)] + [server.open("/api/events")]
        assert all(stream.next().name == "snapshot" for stream in streams[:50])
        task = made("For everybody")
        for stream in streams[:50]:
            stream.until(lambda told: tasks_of(told) == {task})
        began = time.monotonic()
        assert server.stop(signal.SIGINT) == 0
        assert time.monotonic() - began < BOUND
        for stream in streams:
            assert stream.answer.read() is not None  # the answer is whole: its end was told
            stream.close()
    assert server.said == ""


def test_a_second_ctrl_c_ends_it_without_a_word() -> None:
    with WebServer() as server, server.open("/api/stream") as stream:
        assert stream.next().name == "snapshot"
        server.process.send_signal(signal.SIGINT)
        assert server.stop(signal.SIGINT) == 0
    assert server.said == ""


@pytest.mark.req("U-04")
def test_who_comes_back_after_a_restart_sees_everything_and_nothing_twice() -> None:
    with WebServer() as server:
        with server.open("/api/stream") as stream:
            assert stream.next().name == "snapshot"
            first = made("Before")
            seen = stream.until(lambda told: first in tasks_of(told))
        port = server.address.rpartition(":")[2]
        assert server.stop() == 0
    second = made("While nobody served")
    with WebServer(port=port) as again:
        assert again.token == server.token
        with again.open("/api/stream", Last_Event_ID=seen.id) as stream:
            whole = stream.next()
            assert (whole.name, tasks_of(whole)) == ("snapshot", {first, second})
            third = made("After")
            assert tasks_of(stream.until(lambda told: "tasks" in told.data)) == {third}


@pytest.mark.req("N-06")
def test_events_of_jobs_go_on_over_a_restart_where_they_were_left() -> None:
    def run() -> str:
        with taskyard.open(list="plan") as yard:
            return yard.jobs.run(Shell("true"), timeout=30).id

    def both(stream: Open, job: str) -> Told:
        told = [stream.next(), stream.next()]
        assert [each.name for each in told] == ["task_started", "task_notification"]
        assert {each.data["task_id"] for each in told} == {job}
        return told[-1]

    with WebServer() as server, server.open("/api/events") as stream:
        last = both(stream, run())
    job = run()
    with WebServer() as again, again.open("/api/events", Last_Event_ID=last.id) as stream:
        both(stream, job)


@pytest.mark.req("U-04")
def test_the_address_it_prints_holds_the_token_of_a_file_for_its_owner_alone() -> None:
    with WebServer() as server:
        file = Path(server.ready["token_file"])
        assert file.read_text(encoding="ascii").strip() == server.token
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert server.url.startswith("http://127.0.0.1:")
        assert server.get("/api/about.json").status == 200
        assert server.get("/api/about.json", token=server.token[:-1]).status == 401
        assert server.get("/api/about.json", Host="evil.example").status == 421
        assert server.get("/healthz", token=None, Origin="http://evil.example").status == 403
    with WebServer("--new-token") as fresh:
        assert fresh.token != server.token
        assert fresh.get("/api/about.json", token=server.token).status == 401


@pytest.mark.req("U-04")
def test_a_port_that_is_taken_is_said_to_be_with_what_to_do() -> None:
    with WebServer() as server:
        ran = cli.process("web", "--port", server.address.rpartition(":")[2], "--json")
        assert (ran.code, ran.error["code"]) == (1, "cannot_listen")
        assert "0 for any free one" in ran.error["message"]
        assert server.get("/healthz", token=None).status == 200


def test_it_listens_on_either_loopback_and_on_nothing_that_others_reach() -> None:
    with WebServer(port="[::1]:0") as server:
        assert server.url.startswith("http://[::1]:")
        assert server.get("/api/about.json").status == 200
    for port in ("0.0.0.0:0", "[::]:0", "10.0.0.1:80"):
        ran = cli.taskyard("web", "--port", port, "--json")
        assert (ran.code, ran.error["code"]) == (2, "usage")
        assert "proxy" in ran.error["message"]


def test_a_proxy_may_ask_under_the_name_it_was_given() -> None:
    with WebServer("--allow-host", "yard.example") as server:
        for host, origin, status in (
            ("yard.example", "https://yard.example", 200),
            ("yard.example:81", "https://yard.example", 421),
            ("yard.example", "https://evil.example", 403),
        ):
            assert server.get("/api/about.json", Host=host, Origin=origin).status == status
    assert cli.taskyard("web", "--allow-host", "a/b", "--port", "0", "--json").error["code"] == "bad_value"


def test_it_says_to_people_where_it_is_and_what_it_may() -> None:
    server = cli.start("web", "--port", "0", "--list", "plan")
    try:
        assert server.stdout is not None
        lines = [server.stdout.readline(), server.stdout.readline()]
    finally:
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=30)
    assert lines[0].startswith("http://127.0.0.1:")
    assert "Read-only" in lines[1]
    assert (server.returncode, said) == (0, "")


@pytest.mark.req("X-02")
def test_a_browser_is_opened_without_the_token_among_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$*" > {seen}.new && mv {seen}.new {seen}\n', encoding="utf-8")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    with WebServer("--open") as server:
        until(seen.exists)
        given = seen.read_text(encoding="utf-8")
        assert server.token not in given
        page = Path(given.removeprefix("file://"))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert f"{server.url}#token={server.token}" in page.read_text(encoding="utf-8")
    assert not page.exists()
