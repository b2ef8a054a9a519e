"""One list, written by two real Claude Code sessions and by our CLI and MCP server, which are killed all the time."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support import agent_environment
from support.cli import taskyard
from support.model_api import Call, Calls, ModelApi, Say, Usage, model_api
from support.scale import FULL
from taskyard import paths

#: How long all of them write, in seconds.
_TIME = 600 if FULL else 8

pytestmark = [pytest.mark.client, pytest.mark.serial, pytest.mark.timeout(_TIME + 120)]

LIST = "shared"

#: Tasks that are changed by all; ours change different ones each, so that the last value of each is known.
_CLI_TASKS, _MCP_TASKS = ("1", "2", "3"), ("4", "5", "6")

#: How many of our commands can be killed: on a busy machine each of them takes longer than a second.
_ENDANGERED = 0.5

#: Tasks that each writer of ours must have made.
_LEAST = 5

#: Turns of a session, and tool calls in each.
_TURNS, _CALLS = 12, 6


class Ledger:
    """What one writer tried, in order, and what was acknowledged."""

    def __init__(self) -> None:
        self.created: dict[str, bool] = {}  #: subject: acknowledged
        self.values: dict[str, list[tuple[str, bool]]] = {}  #: label of a task: acknowledged
        self.errors: list[str] = []

    def create(self, subject: str, act: Callable[[], bool]) -> None:
        self.created[subject] = False
        self.created[subject] = act()

    def label(self, task: str, value: str, act: Callable[[], bool]) -> None:
        tried = self.values.setdefault(task, [])
        tried.append((value, False))
        if act():
            tried[-1] = (value, True)


class Victims:
    """Processes of ours, one of which dies every second."""

    def __init__(self) -> None:
        self._alive: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self.killed = 0

    def start(self, *words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        argv = [sys.executable, "-P", "-m", "taskyard", *words, "--list", LIST]
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        if words[0] != "mcp" and random.random() < _ENDANGERED:
            self.expose(process)
        return process

    def expose(self, process: subprocess.Popen[str]) -> None:
        """From now on it can be killed: a server only once it has begun to work."""
        with self._lock:
            self._alive.add(process)

    def ended(self, process: subprocess.Popen[str]) -> None:
        with self._lock:
            self._alive.discard(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def kill_one(self) -> None:
        with self._lock:
            living = [process for process in self._alive if process.poll() is None]
            if living:
                random.choice(living).send_signal(signal.SIGKILL)
                self.killed += 1


def cli_writer(over: threading.Event, victims: Victims, ledger: Ledger) -> None:
    def ran(*words: str) -> bool:
        process = victims.start(*words)
        _, err = process.communicate()
        victims.ended(process)
        if process.returncode not in (0, -signal.SIGKILL):
            ledger.errors.append(f"{words}: {process.returncode} {err}")
        return process.returncode == 0

    number = 0
    while not over.is_set():
        number += 1
        subject, value, task = f"cli-{number}", f"v{number}", _CLI_TASKS[number % len(_CLI_TASKS)]
        ledger.create(subject, partial(ran, "task", "add", subject))
        ledger.label(task, value, partial(ran, "task", "edit", task, "--label", value))


def mcp_writer(over: threading.Event, victims: Victims, ledger: Ledger) -> None:
    number = 0
    while not over.is_set():
        process = victims.start("mcp", "--agent", "mcp-writer")
        calls = _Calls(process)
        try:
            calls.hello()
            calls.tool("TaskGet", {"taskId": "1"})
            victims.expose(process)
            while not over.is_set():
                number += 1
                subject, value, task = f"mcp-{number}", f"v{number}", _MCP_TASKS[number % len(_MCP_TASKS)]
                made = {"subject": subject, "description": "by a tool"}
                ledger.create(subject, partial(calls.tool, "TaskCreate", made))
                changed = {"taskId": task, "labels": [value]}
                ledger.label(task, value, partial(calls.tool, "TaskUpdate", changed))
        except (BrokenPipeError, EOFError):
            pass  # it was killed
        except AssertionError as error:
            ledger.errors.append(str(error))
        finally:
            process.kill()
            process.wait()
            victims.ended(process)


class _Calls:
    """Requests to one server, by hand: nothing is retried."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._number = 0

    def hello(self) -> None:
        client = {"name": "soak", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._say({"method": "notifications/initialized"})

    def tool(self, name: str, arguments: dict[str, Any]) -> bool:
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        assert not result.get("isError"), result
        return True

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._say({"id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._number:
                assert "result" in answer, answer
                return answer["result"]
        raise EOFError

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


class Session:
    """Runs of one Claude Code session after the other, each on its own script."""

    def __init__(self, name: str, api: ModelApi, folder: Path) -> None:
        self._name = name
        self._api = api
        self._folder = folder
        self._number = 0
        self.ledger = Ledger()
        self.updates = 0

    def work(self, over: threading.Event) -> None:
        env = {**os.environ, "ANTHROPIC_BASE_URL": self._api.url}
        argv = ["claude", "-p", "go", "--output-format", "stream-json", "--verbose", "--no-session-persistence"]
        while not over.is_set():
            self._api.then(*(self._turn() for _ in range(_TURNS)), Say("Done."))
            ran = subprocess.run(argv, cwd=self._folder, env=env, capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                self.ledger.errors.append(ran.stdout[-500:] + ran.stderr[-500:])
            self._understood(ran.stdout)

    def _turn(self) -> Calls:
        calls: list[Call] = []
        for _ in range(_CALLS // 2):
            self._number += 1
            subject = f"{self._name}-{self._number}"
            self.ledger.created[subject] = False
            calls.append(Call("TaskCreate", subject=subject, description="by a session"))
            task = str(self._number % (len(_CLI_TASKS) + len(_MCP_TASKS)) + 1)
            calls.append(Call("TaskUpdate", taskId=task, metadata={self._name: self._number}))
        return Calls(*calls, usage=Usage())

    def _understood(self, output: str) -> None:
        """Take in what was acknowledged: the tools' own answers."""
        for found in re.finditer(r"Task #\d+ created successfully: ([\w-]+)", output):
            self.ledger.created[found[1]] = True
        self.updates += len(re.findall(r"Updated task #\d+ metadata", output))


def has_written(*ledgers: Ledger) -> bool:
    """Whether each writer of ours got far enough: a server takes seconds to start on a busy machine."""
    return all(sum(ledger.created.values()) >= _LEAST for ledger in ledgers)


@pytest.fixture
def apis(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ModelApi]]:
    monkeypatch.setenv("TASKYARD_LIST", LIST)
    monkeypatch.setenv("CLAUDE_CODE_TASK_LIST_ID", LIST)
    monkeypatch.setenv("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1")
    with ExitStack() as stack:
        found = [stack.enter_context(model_api(Say("Hello."))) for _ in range(2)]
        agent_environment.arranged(found[0], monkeypatch)
        yield found


@pytest.mark.req("L-02")
def test_nothing_is_lost_doubled_or_torn_beside_real_sessions(apis: list[ModelApi], tmp_path: Path) -> None:
    for task in (*_CLI_TASKS, *_MCP_TASKS):
        assert taskyard("task", "add", f"seed-{task}").code == 0
    over, victims = threading.Event(), Victims()
    sessions = [Session(f"claude{at}", api, tmp_path) for at, api in enumerate(apis)]
    cli, mcp = Ledger(), Ledger()
    threads = [
        *(threading.Thread(target=session.work, args=(over,)) for session in sessions),
        threading.Thread(target=cli_writer, args=(over, victims, cli)),
        threading.Thread(target=mcp_writer, args=(over, victims, mcp)),
    ]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    while (spent := time.monotonic() - began) < _TIME or not (spent > _TIME + 60 or has_written(cli, mcp)):
        time.sleep(1)
        victims.kill_one()
    over.set()
    for thread in threads:
        thread.join()

    assert not [error for each in (cli, mcp, *(one.ledger for one in sessions)) for error in each.errors]
    files = {path.stem: json.loads(path.read_bytes()) for path in Path(paths.tasks_dir()).joinpath(LIST).glob("*.json")}
    assert {name: raw["id"] for name, raw in files.items()} == {name: name for name in files}
    subjects = Counter(raw["subject"] for raw in files.values())
    for ledger in (cli, mcp, *(one.ledger for one in sessions)):
        assert [
            subject for subject, acknowledged in ledger.created.items() if acknowledged and not subjects[subject]
        ] == []
        assert [subject for subject in ledger.created if subjects[subject] > 1] == []
        for task, tried in ledger.values.items():
            last = max((at for at, (_, acknowledged) in enumerate(tried) if acknowledged), default=-1)
            allowed = [[value] for value, _ in tried[max(last, 0) :]] + ([[]] if last < 0 else [])
            shown = taskyard("task", "show", task, "--json").data["metadata"].get("taskyard", {})
            assert shown.get("labels", []) in allowed, (task, shown, tried[-5:])
    assert all(one.updates for one in sessions)
    assert has_written(cli, mcp), (cli.created, mcp.created)
    assert victims.killed >= _TIME // 3
    made = [sum(one.created.values()) for one in (cli, mcp, *(one.ledger for one in sessions))]
    print(f"acknowledged: {made}, updates of sessions: {[one.updates for one in sessions]}, killed: {victims.killed}")
    taskyard("doctor", "--fix")  # what a killed writer left beside the tasks
    checked = taskyard("doctor", "--json")
    assert checked.code == 0, checked
