"""One list, written by two real Claude Code sessions and by our CLI and MCP server, which are killed all the time."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import agent_environment
from support.cli import taskyard
from support.model_api import Call, Calls, ModelApi, Say, Usage, model_api
from support.scale import FULL
from support.wait import until
from taskyard import config

#: How long all of them write, in seconds.
_TIME = 600 if FULL else 8

pytestmark = [pytest.mark.client, pytest.mark.serial, pytest.mark.timeout(_TIME + 120)]

LIST = "shared"

#: Tasks that are changed by all; ours change different ones each, so that the last value of each is known.
_CLI_TASKS, _MCP_TASKS = ("1", "2", "3"), ("4", "5", "6")

#: The share of our commands that can be killed: on a busy machine each of them takes longer than a second.
_ENDANGERED = 0.5

#: MCP servers of ours that are ready to write, threads that start them, and seconds between two writes of one.
_READY, _STARTERS, _REST = (6, 2, 0.2)

#: Tasks that each writer of ours must have made.
_LEAST = 5 if FULL else 1

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


class Writer(NamedTuple):
    """An MCP server of ours that has started and answers, with its own tasks to write."""

    process: subprocess.Popen[str]
    calls: _Calls


class Pool:
    """Writers of ours that wait to be used: one takes seconds to start on a busy machine, and one dies every second."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._ready: queue.Queue[Writer] = queue.Queue()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._started: set[subprocess.Popen[str]] = set()
        self._threads = [threading.Thread(target=self._fill) for _ in range(_STARTERS)]

    def __enter__(self) -> Pool:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        for process in list(self._started):
            self.end(process)

    def take(self) -> Writer:
        """A writer that is ready now, or as soon as there is one."""
        return self._ready.get(timeout=60)

    @property
    def is_full(self) -> bool:
        return self._ready.qsize() >= self._size

    def end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        with self._lock:
            self._started.discard(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _fill(self) -> None:
        while not self._over.wait(0.05):
            if not self.is_full:
                process = started("mcp", "--agent", "mcp-writer")
                with self._lock:
                    self._started.add(process)
                calls = _Calls(process)
                calls.hello()
                calls.tool("TaskGet", {"taskId": "1"})
                self._ready.put(Writer(process, calls))


def started(*words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-P", "-m", "taskyard", *words, "--list", LIST]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


class Victims:
    """Processes of ours that write, one of which dies every second."""

    def __init__(self) -> None:
        self._alive: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self.killed = 0
        self.late: list[float] = []  #: seconds by which a kill came too late, since nobody wrote

    @contextmanager
    def exposed(self, process: subprocess.Popen[str]) -> Iterator[None]:
        """Within the block it can be killed."""
        with self._lock:
            self._alive.add(process)
        try:
            yield
        finally:
            with self._lock:
                self._alive.discard(process)

    def kill(self, due: float) -> None:
        """Kill one at the moment `due`, or as soon after it as there is one that writes."""
        while True:
            time.sleep(max(due - time.monotonic(), 0.005))
            with self._lock:
                living = [process for process in self._alive if process.poll() is None]
                if living:
                    victim = random.choice(living)
                    victim.send_signal(signal.SIGKILL)
                    self._alive.discard(victim)
                    self.killed += 1
                    self.late.append(time.monotonic() - due)
                    return


def cli_writer(over: threading.Event, victims: Victims, index: Ledger) -> None:
    """One command after the other: every second of them can be killed, so that some are acknowledged."""

    def ran(*words: str) -> bool:
        process = started(*words)
        with victims.exposed(process) if random.random() < _ENDANGERED else contextlib.nullcontext():
            out, _ = process.communicate()
        if process.returncode not in (0, -signal.SIGKILL):
            index.errors.append(f"{words}: {process.returncode} {out}")
        return process.returncode == 0

    number = 0
    while not over.is_set():
        number += 1
        subject, value, task = f"cli-{number}", f"v{number}", _CLI_TASKS[number % len(_CLI_TASKS)]
        index.create(subject, partial(ran, "task", "add", subject))
        index.label(task, value, partial(ran, "task", "edit", task, "--label", value))


def mcp_writer(over: threading.Event, pool: Pool, victims: Victims, index: Ledger, name: str, task: str) -> None:
    """Write to a task of its own and create others, by one server after the other."""
    number = 0
    while not over.is_set():
        process, calls = pool.take()
        try:
            with victims.exposed(process):
                while not over.is_set():
                    number += 1
                    subject, value = f"{name}-{number}", f"v{number}"
                    made = {"subject": subject, "description": "by a tool"}
                    index.create(subject, partial(calls.tool, "TaskCreate", made))
                    changed = {"taskId": task, "labels": [value]}
                    index.label(task, value, partial(calls.tool, "TaskUpdate", changed))
                    time.sleep(_REST)
        except (BrokenPipeError, EOFError):
            pass  # it was killed
        except AssertionError as error:
            index.errors.append(str(error))
        finally:
            pool.end(process)


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
        self.index = Ledger()
        self.updates = 0

    def work(self, over: threading.Event) -> None:
        env = {**os.environ, "ANTHROPIC_BASE_URL": self._api.url}
        argv = ["claude", "-p", "go", "--output-format", "stream-json", "--verbose", "--no-session-persistence"]
        while not over.is_set():
            self._api.then(*(self._turn() for _ in range(_TURNS)), Say("Done."))
            ran = subprocess.run(argv, cwd=self._folder, env=env, capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                self.index.errors.append(ran.stdout[-500:] + ran.stderr[-500:])
            self._understood(ran.stdout)

    def _turn(self) -> Calls:
        calls: list[Call] = []
        for _ in range(_CALLS // 2):
            self._number += 1
            subject = f"{self._name}-{self._number}"
            self.index.created[subject] = False
            calls.append(Call("TaskCreate", subject=subject, description="by a session"))
            task = str(self._number % (len(_CLI_TASKS) + len(_MCP_TASKS)) + 1)
            calls.append(Call("TaskUpdate", taskId=task, metadata={self._name: self._number}))
        return Calls(*calls, usage=Usage())

    def _understood(self, output: str) -> None:
        """Take in what was acknowledged: the tools' own answers."""
        for found in re.finditer(r"Task #\d+ created successfully: ([\w-]+)", output):
            self.index.created[found[1]] = True
        self.updates += len(re.findall(r"Updated task #\d+ metadata", output))


def has_written(*ledgers: Ledger) -> bool:
    """Whether each writer of ours got far enough."""
    return all(sum(index.created.values()) >= _LEAST for index in ledgers)


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
    cli, *mcp = [Ledger() for _ in range(1 + len(_MCP_TASKS))]
    with Pool(_READY) as pool:
        until(lambda: pool.is_full, timeout=60, what="the first writers are ready")
        threads = [
            *(threading.Thread(target=session.work, args=(over,)) for session in sessions),
            threading.Thread(target=cli_writer, args=(over, victims, cli)),
            *(
                threading.Thread(target=mcp_writer, args=(over, pool, victims, index, f"mcp{task}", task))
                for task, index in zip(_MCP_TASKS, mcp, strict=True)
            ),
        ]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        for second in range(1, _TIME + 1):
            victims.kill(began + second)
        over.set()
        for thread in threads:
            thread.join()

    assert not [error for each in (cli, *mcp, *(one.index for one in sessions)) for error in each.errors]
    files = {
        path.stem: json.loads(path.read_bytes()) for path in Path(config.tasks_dir()).joinpath(LIST).glob("*.json")
    }
    assert {name: raw["id"] for name, raw in files.items()} == {name: name for name in files}
    subjects = Counter(raw["subject"] for raw in files.values())
    for index in (cli, *mcp, *(one.index for one in sessions)):
        assert [
            subject for subject, acknowledged in index.created.items() if acknowledged and not subjects[subject]
        ] == []
        assert [subject for subject in index.created if subjects[subject] > 1] == []
        for task, tried in index.values.items():
            last = max((at for at, (_, acknowledged) in enumerate(tried) if acknowledged), default=-1)
            allowed = [[value] for value, _ in tried[max(last, 0) :]] + ([[]] if last < 0 else [])
            shown = taskyard("task", "show", task, "--json").data["metadata"].get("taskyard", {})
            assert shown.get("labels", []) in allowed, (task, shown, tried[-5:])
    assert all(one.updates for one in sessions)
    assert has_written(cli, *mcp), [one.created for one in (cli, *mcp)]
    assert victims.killed == _TIME
    made = [sum(one.created.values()) for one in (cli, *mcp, *(one.index for one in sessions))]
    labels = [sum(is_known for tried in one.values.values() for _, is_known in tried) for one in (cli, *mcp)]
    print(f"tasks acknowledged to our CLI, our MCP servers and the sessions: {made}; labels to ours: {labels}")
    print(f"updates of the sessions: {[one.updates for one in sessions]}, killed: {victims.killed} in {_TIME} s")
    in_time = sum(late < 1 for late in victims.late)
    print(f"kills within a second of the time they were due: {in_time}; latest {max(victims.late):.2f} s after it")
    taskyard("doctor", "--fix")  # what a killed writer left beside the tasks
    checked = taskyard("doctor", "--json")
    assert checked.code == 0, checked
