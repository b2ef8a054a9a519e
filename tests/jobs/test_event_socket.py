"""The stream of events over a socket: whole, from any id, to many readers, and to nobody else."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli import process, taskyard
from support.wait import until
from taskyard.errors import AlreadyExists, BadValue
from taskyard.jobs.event_socket import EventQuery, EventSocket, parse_query
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.storage.inotify import watcher


@pytest.fixture
def home(tmp_path: Path) -> str:
    folder = tmp_path / "h"
    folder.mkdir(mode=0o700)
    return str(folder)


@pytest.fixture
def path(home: str) -> Iterator[str]:
    """A socket that answers."""
    with EventSocket(home, f"{home}/s") as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server.path
        server.close()
        thread.join(10)
        assert not thread.is_alive()


class Reader:
    """A program that connects."""

    def __init__(self, path: str, question: bytes = b"\n") -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)
        self.socket.sendall(question)
        self._lines = self.socket.makefile("rb")

    def read(self) -> dict[str, Any] | None:
        """The next line; None at the end."""
        line = self._lines.readline()
        found: dict[str, Any] | None = json.loads(line) if line else None
        return found

    def event(self) -> dict[str, Any]:
        line = self.read()
        assert line is not None
        data: dict[str, Any] = line["data"]
        return data

    def close(self) -> None:
        self._lines.close()
        self.socket.close()


@pytest.mark.req("N-06")
def test_a_reader_hears_what_is_there_and_what_comes(home: str, path: str) -> None:
    jobs = Jobs(home)
    first = jobs.run(Shell(["true"]))
    reader = Reader(path)
    assert [reader.event()["subtype"] for _ in range(2)] == ["task_started", "task_notification"]
    second = jobs.run(Shell(["false"]))
    heard = [reader.event() for _ in range(2)]
    assert [event["task_id"] for event in heard] == [second.id, second.id]
    assert heard[1]["status"] == "failed"
    reader.close()

    later = Reader(path, json.dumps({"since": heard[0]["id"]}).encode() + b"\n")
    assert later.event() == heard[1]  # right behind the one it knew
    later.close()
    of_one = Reader(path, json.dumps({"job": first.id, "types": ["task_notification"]}).encode() + b"\n")
    assert of_one.event()["task_id"] == first.id
    assert of_one.read() is None  # its job is over, and so is this
    of_one.close()
    jobs.close()


@pytest.mark.req("N-06")
@pytest.mark.parametrize(
    ("question", "code"),
    [
        (b"what?\n", "bad_value"),
        (b'{"since": "x"}\n', "bad_value"),
        (b'{"since": -1}\n', "bad_value"),
        (b'{"since": 999999}\n', "events_gone"),
        (b'{"job": "bxxxxxxxx"}\n', "job_not_found"),
        (b'{"job": "../../etc"}\n', "bad_job_id"),
        (b'{"types": ["all"]}\n', "bad_value"),
        (b'{"until": 7}\n', "bad_value"),
        (b"[" * 4096, "bad_value"),
    ],
)
def test_a_question_that_has_no_answer_gets_an_error_and_the_end(path: str, question: bytes, code: str) -> None:
    reader = Reader(path, question)
    line = reader.read()
    assert line is not None
    assert line["error"]["code"] == code
    assert reader.read() is None
    reader.close()


@pytest.mark.req("N-06")
@given(st.binary(max_size=200))
def test_no_line_does_harm(line: bytes) -> None:
    try:
        assert isinstance(parse_query(line), EventQuery)
    except BadValue:
        pass


@pytest.mark.req("N-06")
def test_readers_that_hang_up_leave_nothing(home: str, path: str) -> None:
    first = Reader(path)
    watcher().listen()  # what the process has once, however many follow
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        readers = [Reader(path) for _ in range(8)]
        for reader in readers:
            reader.close()
    first.close()
    until(lambda: not any(thread.name.startswith("events-") for thread in threading.enumerate()))
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)
    still = Reader(path)
    jobs = Jobs(home)
    jobs.run(Shell(["true"]))
    assert still.event()["subtype"] == "task_started"
    still.close()
    jobs.close()


@pytest.mark.req("N-06", "O-02")
def test_only_a_dead_server_s_socket_is_taken_over(home: str, path: str) -> None:
    with pytest.raises(AlreadyExists):
        EventSocket(home, path)
    precious = Path(home) / "precious"
    precious.write_text("mine", encoding="utf-8")
    with pytest.raises(AlreadyExists):
        EventSocket(home, str(precious))
    assert precious.read_text(encoding="utf-8") == "mine"
    left = socket.socket(socket.AF_UNIX)
    left.bind(f"{home}/left")
    left.close()
    with EventSocket(home, f"{home}/left"):
        assert os.stat(f"{home}/left").st_mode & 0o777 == 0o600
    assert not os.path.exists(f"{home}/left")
    with pytest.raises(BadValue):
        EventSocket(home, f"{home}/{'x' * 120}")


@pytest.mark.req("N-06")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_told_to_stop(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "taskyard", "events", "--socket", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert server.stdout is not None
    path = json.loads(server.stdout.readline())["data"]["socket"]
    job = process("run", "-d", "--json", "--", "true").data
    reader = Reader(path)
    assert reader.event()["task_id"] == job["id"]

    server.send_signal(number)

    assert server.wait(20) == 0
    server.stdout.close()
    reader.close()
    assert not os.path.exists(path)


@pytest.mark.req("N-06")
def test_what_to_tell_is_each_reader_s_to_say() -> None:
    ran = taskyard("events", "--socket", "--follow")
    assert ran.code == 2
    assert "--socket cannot be combined" in ran.err
