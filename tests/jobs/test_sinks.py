"""Sinks: news reaches them beside its receiver, signed, repeated if need be, and never in the way."""

from __future__ import annotations

import hmac
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from support.ended_jobs import notice
from support.jobs import marked
from support.wait import until
from taskyard import config
from taskyard.errors import BadValue, Damaged, NotFound
from taskyard.jobs import sink_delivery
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.notice import to_json
from taskyard.jobs.sink_delivery import (
    BACK_OFF,
    MAX_SENDERS,
    deliver,
    post_webhook,
    run_sink_command,
    show_on_desktop,
    write_terminal,
)
from taskyard.jobs.sinks import Sinks, load_sinks, start_sinks

pytestmark = pytest.mark.req("N-08")


class Got(NamedTuple):
    """One request a receiver got."""

    headers: dict[str, str]
    body: bytes


class Receiver:
    """A webhook that answers as it is told to, then with 204."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append(Got(dict(self.headers), body))
                code = receiver.answers.pop(0) if receiver.answers else 204
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", receiver.url)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def home() -> str:
    return config.home()


def configured(text: str) -> None:
    folder = Path(config.config_folder(os.environ))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


def test_a_webhook_is_signed_and_carries_the_notice(receiver: Receiver, home: str) -> None:
    one = notice(home)

    post_webhook(receiver.url, "s3cret", one)

    (got,) = receiver.got
    signed = got.headers["X-Taskyard-Timestamp"].encode() + b"." + got.body
    assert got.headers["X-Taskyard-Signature"] == "sha256=" + hmac.new(b"s3cret", signed, "sha256").hexdigest()
    assert json.loads(got.body) == to_json(one)
    assert got.headers["Idempotency-Key"] == one.id


def test_a_webhook_that_fails_is_tried_again_with_longer_pauses_under_the_same_key(
    receiver: Receiver, home: str
) -> None:
    receiver.answers = [500, 429, 503]
    pauses: list[float] = []
    one = notice(home)

    post_webhook(receiver.url, "s", one, sleep=pauses.append)

    assert [got.headers["Idempotency-Key"] for got in receiver.got] == [one.id] * 4
    assert pauses == list(BACK_OFF[:3])
    assert pauses == sorted(set(pauses))


@pytest.mark.parametrize(("answers", "tries"), [([500] * 99, len(BACK_OFF) + 1), ([410], 1), ([302], 1)])
def test_a_webhook_that_never_takes_it_is_given_up(
    receiver: Receiver, home: str, answers: list[int], tries: int
) -> None:
    receiver.answers = answers

    with pytest.raises(RuntimeError):
        post_webhook(receiver.url, "s", notice(home), sleep=lambda _: None)

    assert len(receiver.got) == tries


def test_a_command_gets_the_notice_as_json(home: str, tmp_path: Path) -> None:
    one = notice(home)

    run_sink_command(f"cat > {tmp_path}/got", one)

    assert json.loads((tmp_path / "got").read_bytes()) == to_json(one)
    with pytest.raises(RuntimeError, match="exited with 3: no"):
        run_sink_command("echo no; exit 3", one)


def test_the_desktop_is_told_by_notify_send_without_markup(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/shown\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    show_on_desktop(notice(home, summary="--icon=x <b>\x1b[31m done"), "")

    assert (tmp_path / "shown").read_text("utf-8").splitlines()[-3:] == [
        "--",
        "Taskyard",
        r"--icon=x &lt;b&gt;\x1b[31m done",
    ]


def test_without_notify_send_the_terminal_shows_it_and_rings(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ours, theirs = os.openpty()
    try:
        show_on_desktop(notice(home, summary="done\x1b]52;c;evil\x07"), os.ttyname(theirs))
        assert os.read(ours, 1000) == b"\x1b]9;done\\x1b]52;c;evil\\x07\a"
        write_terminal(os.ttyname(theirs), b"\a")
        assert os.read(ours, 1000) == b"\a"
    finally:
        os.close(ours)
        os.close(theirs)


def test_nothing_is_written_to_what_is_no_terminal(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    with pytest.raises(NotFound):
        write_terminal(str(file), b"\a")
    assert file.read_bytes() == b"mine"


def test_sinks_come_from_the_settings_and_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_sinks() == Sinks()
    configured('lock_timeout = 5\n[sinks]\nbell = true\ncommand = "true"\n')
    monkeypatch.setenv("TASKYARD_SINKS_BELL", "off")
    monkeypatch.setenv("TASKYARD_SINKS_DESKTOP", "1")

    assert load_sinks() == Sinks(desktop=True, command="true")
    assert config.load_settings().lock_timeout == 5


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("sinks", Damaged),
        ("[sinks]\nbel = true", BadValue),
        ("[sinks]\nbell = 7", BadValue),
        ("[sinks]\ncommand = 7", BadValue),
        ('[sinks]\nwebhook = "https://example.org"', BadValue),
        ('[sinks]\nwebhook = "file:///etc/passwd"\nwebhook_secret = "s"', BadValue),
    ],
)
def test_settings_that_make_no_sense_are_refused_and_never_raise_where_a_job_ends(
    home: str, text: str, error: type[Exception]
) -> None:
    configured(text)
    one = notice(home)

    with pytest.raises(error):
        load_sinks()
    assert not start_sinks(home, one.news)
    assert "start: " in Path(home, "sinks.log").read_text("utf-8")


def test_news_is_told_by_a_process_of_its_own(home: str, tmp_path: Path, receiver: Receiver) -> None:
    configured(f'[sinks]\ncommand = "cat > {tmp_path}/got"\nwebhook = "{receiver.url}"\nwebhook_secret = "s"\n')
    one = notice(home)

    assert start_sinks(home, one.news)

    until(lambda: receiver.got, timeout=20)
    assert json.loads((tmp_path / "got").read_bytes())["id"] == one.id == receiver.got[0].headers["Idempotency-Key"]
    assert os.listdir(f"{home}/sinks") == []


@pytest.mark.parametrize("by", ["file", "environment"])
def test_a_keeper_tells_sinks_also_those_set_up_while_its_job_ran(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    command = f"cat > {tmp_path}/half; mv {tmp_path}/half {tmp_path}/got"
    if by == "environment":
        monkeypatch.setenv("TASKYARD_SINKS_COMMAND", command)
    jobs = Jobs(home)
    job = jobs.start(Shell(f"while ! test -e {tmp_path}/go; do sleep 0.01; done"))
    if by == "file":
        configured(f'[sinks]\ncommand = "{command}"\n')
    (tmp_path / "go").touch()
    jobs.wait(job.id, timeout=10)
    jobs.close()

    until(lambda: (tmp_path / "got").exists(), timeout=20)
    assert json.loads((tmp_path / "got").read_bytes())["task_id"] == job.id


def test_where_no_sink_is_set_up_no_process_is_started_and_nothing_is_written(home: str) -> None:
    one = notice(home)
    before = os.listdir(home)

    assert not start_sinks(home, one.news)
    assert os.listdir(home) == before


def test_a_sink_that_fails_is_noted_and_hinders_no_other(home: str, tmp_path: Path) -> None:
    configured(f'[sinks]\nbell = true\nterminal = "/dev/null"\ncommand = "cat > {tmp_path}/got"\n')
    one = notice(home)
    path = Path(home, "sinks", one.id)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"news": one.news, "terminal": "/dev/null"}), encoding="utf-8")

    assert deliver(str(path)) == ["bell: /dev/null is not a terminal."]
    assert (tmp_path / "got").exists()
    assert f"{one.id} bell" in Path(home, "sinks.log").read_text("utf-8")
    with pytest.raises(NotFound):
        deliver(str(path))


class Dripping:
    """A webhook that never ends its answer: a header byte every fifth of a second, for as long as it is asked."""

    def __init__(self) -> None:
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/hook"
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._threads.append(threading.Thread(target=self._drip, args=(connection,)))
            self._threads[-1].start()

    def _drip(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not self._over.wait(0.2):
                    connection.sendall(b"x")
            except OSError:
                pass

    def close(self) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    found = Dripping()
    yield found
    found.close()


def test_a_webhook_that_drips_its_answer_is_given_up_in_bounded_time(
    dripping: Dripping, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_delivery, "ANSWER_TIMEOUT", 0.5)
    monkeypatch.setattr(sink_delivery, "BACK_OFF", (0.0,))
    began = time.monotonic()

    with pytest.raises(RuntimeError, match=r"given up after 2 tries: no answer within 0\.5 s"):
        post_webhook(dripping.url, "secret", notice(home))

    assert time.monotonic() - began < 5 and dripping.connections == 2


def test_ends_of_many_jobs_keep_few_processes_at_a_webhook_that_drips(dripping: Dripping, home: str) -> None:
    configured(f'[sinks]\nwebhook = "{dripping.url}"\nwebhook_secret = "s"')
    jobs = Jobs(home)
    ended = [jobs.start(Shell("true")).id for _ in range(10)]
    for job_id in ended:
        jobs.wait(job_id, timeout=20)

    def senders() -> list[int]:
        return [pid for pid in marked("__sinks") if f"{home}/sinks" in Path(f"/proc/{pid}/cmdline").read_text("utf-8")]

    def waiting() -> int:
        return sum(name.endswith(".webhook") for name in os.listdir(f"{home}/sinks"))

    try:
        until(lambda: os.path.isdir(f"{home}/sinks"))
        until(lambda: waiting() == len(ended) - MAX_SENDERS and len(senders()) == MAX_SENDERS, timeout=20)
    finally:
        for pid in senders():
            os.kill(pid, signal.SIGKILL)
        jobs.close()
