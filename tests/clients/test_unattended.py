"""Teams of real agent programs that nobody watches: six tasks, rate limits, refused permissions, a member that dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import taskyard
from support.cli import Ran, process
from support.cli import taskyard as command_line
from support.crews import members, plan
from support.model_api import Call, Choose, Fail, Limit, ModelApi, Request, Say
from support.wait import until

pytestmark = [pytest.mark.client, pytest.mark.timeout(300)]

Model = Callable[..., ModelApi]

PLAN = """\
name: six
tasks:
  - {id: a, subject: Read the specification}
  - {id: b, subject: Write the parser, needs: a}
  - {id: c, subject: Write the printer, needs: a}
  - {id: d, subject: Write the tests, needs: [b]}
  - {id: e, subject: Write the manual, needs: [c]}
  - {id: f, subject: Verify all of it, needs: [d, e]}
"""

#: How the model of each program writes a file.
WRITES: dict[str, Callable[[str], Call]] = {
    "claude": lambda path: Call("Write", file_path=path, content="x"),
    "codex": lambda path: Call("exec_command", cmd=f"printf x > {path}; sleep 0.3"),
    "gemini": lambda path: Call("write_file", file_path=path, content="x"),
    "opencode": lambda path: Call("write", filePath=path, content="x"),
}

#: Who limits each, as the lead names it, and for how long here: Claude Code for the 40 s of the acceptance list.
LIMITS = {"claude": ("anthropic", 40), "codex": ("openai", 15), "gemini": ("google", 15), "opencode": ("opencode", 15)}

#: By these the program asks before it writes; with the others a person is asked after the turn, and answers `retry`.
ASKS = ("claude", "gemini-acp", "opencode-acp")


class Provider:
    """Its model writes one file for each task; after `limit_after` files it refuses everybody, once, for a while."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine, self.folder = engine, folder
        self.limit_after, self.limit_seconds = 100, 0.0
        self.lifts_at = 0.0
        self.refused: list[float] = []
        self.held_task = ""  #: the model thinks about this one until `go_on`
        self.is_holding, self.go_on = threading.Event(), threading.Event()
        self._calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def step(self, request: Request) -> Say | Call | Limit | Fail:
        """What the model does with a request."""
        with self._lock:
            if len(self.written()) >= self.limit_after and not self.lifts_at:
                self.lifts_at = time.time() + self.limit_seconds
            if (left := self.lifts_at - time.time()) > 0:
                self.refused.append(time.time())
                return Limit(max(round(left), 1))
        task = re.findall(r"Task #(\d+): ", request.text)[-1]
        if task == self.held_task and not self.go_on.is_set():
            self.is_holding.set()
            self.go_on.wait(60)
            return Fail(500)  # to a program that is no more
        path = self.folder / f"task-{task}.txt"
        if path.exists():
            return Say("It is written.")
        with self._lock:
            if self._calls[task] > request.text.count("A person was asked"):
                return Say("I could not write the file.")
            self._calls[task] += 1
        return WRITES[self.engine.removesuffix("-acp")](str(path))

    def written(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("task-*.txt"))


ALL = [f"task-{number}.txt" for number in range(1, 7)]


@pytest.fixture(params=list(WRITES))
def provider(request: pytest.FixtureRequest, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Provider:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)  # views show the jobs of this project
    found = Provider(request.param, folder)
    model(Choose(found.step))
    return found


class Lead:
    """`team up` in the folder of the work, whose words can be read while it lives."""

    def __init__(self, provider: Provider, folder: Path) -> None:
        self._out, self._err = folder / "lead.out", folder / "lead.err"
        words = ["team", "up", "--plan", plan(folder, PLAN), "--agents", "2", "--engine", provider.engine, "--json"]
        with self._out.open("w") as out, self._err.open("w") as err:
            command = [sys.executable, "-m", "taskyard", *words]
            streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            self.process = subprocess.Popen(command, cwd=provider.folder, **streams)  # type: ignore[call-overload]

    @property
    def err(self) -> str:
        return self._err.read_text(encoding="utf-8")

    def ended(self) -> Ran:
        code = self.process.wait(240)
        return Ran(code, self._out.read_text(encoding="utf-8"), self.err)


@pytest.fixture
def lead(provider: Provider, tmp_path: Path) -> Iterator[Callable[[], Lead]]:
    started: list[Lead] = []

    def start() -> Lead:
        started.append(Lead(provider, tmp_path))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGINT)
            one.process.wait(60)


def failures() -> list[object]:
    with taskyard.open(list="six", is_person=True) as yard:
        return [task.extra[name] for task in yard.tasks.list() for name in ("failed", "held") if name in task.extra]


def waiting() -> list[dict[str, object]]:
    return [job for job in members() if job["rate_limited"]]


def asking() -> list[dict[str, object]]:
    return [job for job in members() if job["needs_input"]]


@pytest.mark.req("M-04")
def test_all_six_tasks_are_done_where_everything_is_permitted(
    provider: Provider, lead: Callable[[], Lead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_PERMISSIONS", "work")
    done = lead().ended()
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert provider.written() == ALL


@pytest.mark.parametrize("provider", [*WRITES, "gemini-acp", "opencode-acp"], indirect=True)
@pytest.mark.req("Q-03", "M-04")
def test_what_is_not_permitted_is_asked_and_nothing_is_done_before_the_answer(
    provider: Provider, lead: Callable[[], Lead]
) -> None:
    settings = Path(os.environ["XDG_CONFIG_HOME"], "taskyard", "config.toml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('agent_permissions = "ask"\n', encoding="utf-8")
    team = lead()
    until(lambda: " asks: " in team.err, timeout=90, what="the lead says that a member asks")
    assert (provider.written(), len(asking())) == ([], 1)
    tasks = command_line("task", "list", "--list", "six", "--json").data
    assert [task["id"] for task in tasks if task["status"] == "in_progress"] == ["1"]
    settings.write_text('agent_permissions = "work"\n', encoding="utf-8")
    answer = "y" if provider.engine in ASKS else "retry"
    assert command_line("send", str(asking()[0]["id"]), answer).code == 0
    done = team.ended()
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert (provider.written(), failures()) == (ALL, [])


@pytest.mark.req("Q-01")
def test_a_limit_in_the_middle_is_waited_for_and_costs_no_task(
    provider: Provider, lead: Callable[[], Lead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_PERMISSIONS", "work")
    name, seconds = LIMITS[provider.engine]
    provider.limit_after, provider.limit_seconds = 2, seconds
    team = lead()
    until(waiting, timeout=120, what="a member waits")
    done = team.ended()
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert (provider.written(), failures(), done.data["died"]) == (ALL, [], 0)
    assert f"pending: rate-limited by {name}" in done.err
    assert len(provider.refused) <= 20  # two programs, with the retries they make by themselves


@pytest.mark.parametrize("provider", ["claude"], indirect=True)
@pytest.mark.req("Q-01")
def test_a_member_killed_while_it_waits_is_replaced_by_one_that_waits(
    provider: Provider, lead: Callable[[], Lead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_PERMISSIONS", "work")
    provider.limit_after, provider.limit_seconds = 2, 25.0
    team = lead()
    until(waiting, timeout=120, what="a member waits")
    os.kill(int(str(waiting()[0]["pid"])), signal.SIGKILL)
    done = team.ended()
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert (provider.written(), done.data["died"]) == (ALL, 1)


@pytest.mark.req("M-04")
def test_a_killed_client_costs_no_task(
    provider: Provider, lead: Callable[[], Lead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_PERMISSIONS", "work")
    provider.held_task = "2"
    team = lead()
    assert provider.is_holding.wait(90)
    [client] = children(int(str(holder("2")["pid"])))
    os.kill(client, signal.SIGKILL)
    provider.go_on.set()
    done = team.ended()
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert (provider.written(), failures(), done.data["died"]) == (ALL, [], 0)


@pytest.mark.req("Q-01")
def test_an_agent_whose_first_request_is_limited_continues(provider: Provider, tmp_path: Path) -> None:
    provider.limit_after, provider.limit_seconds = 0, 6
    words = ("--engine", provider.engine, "--permissions", "work", "--", "Task #1: Read the specification")
    ran = process("agent", *words, timeout=120)
    assert (ran.code, provider.written()) == (0, ALL[:1]), ran
    assert provider.refused


def holder(task: str) -> dict[str, object]:
    """The job of the member that works on a task."""
    [owner] = [
        one["owner"] for one in command_line("task", "list", "--list", "six", "--json").data if one["id"] == task
    ]
    print(owner, members(), command_line("task", "list", "--list", "six").out)
    [job] = [one for one in members() if str(one["description"]).startswith(f"{owner}@")]
    return job


def children(pid: int) -> list[int]:
    """Programs that a process runs."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
