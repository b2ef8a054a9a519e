"""Every engine that runs an agent program, with the real program, in every case that unattended work meets."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from support import cli
from support.engine_turns import turn
from support.model_api import Call, Calls, Cut, Fail, Hang, Limit, ModelApi, Say, Usage
from support.wait import until
from taskyard.engines.engine import Said

pytestmark = [pytest.mark.client, pytest.mark.timeout(150)]

Model = Callable[..., ModelApi]


class Client(NamedTuple):
    """How one engine's program names its tools, and what it says of its use."""

    engine: str
    writes: Callable[[Path], Call]  #: writes "x" to the path
    runs: Callable[[str], Call]  #: runs a command
    tool: str  #: the command's tool, as the watcher is told
    own_tool: str  #: our TaskList, as its model sees it; "" if it cannot be handed our tools for one run
    #: Tokens it tells of two requests (1000 in, 30 out; 1200 in, 20 out), and of a turn with one (1000 in, 50 out).
    tokens: tuple[int, int]
    asks: Callable[[Path], Call] | None = None  #: a call that needs permission, and writes to the path if it gets it
    tells_reset: bool = True  #: it tells when a limit lifts

    @property
    def is_acp(self) -> bool:
        return self.engine.endswith("-acp")


def together(extra: int = 0) -> tuple[int, int]:
    """What all requests of a turn took, and what was asked beside the work."""
    return 2250 + extra, 1050 + extra


#: The last request, and all answers.
EACH = (1250, 1050)

#: What the conversation weighs at the end.
WEIGHT = (1220, 1050)


CLIENTS = [
    Client(
        "codex",
        lambda path: Call("exec_command", cmd=f"printf x > {path}; sleep 0.3"),
        lambda command: Call("exec_command", cmd=command),
        "exec_command",
        "mcp__taskyardTaskList",
        together(),
    ),
    Client(
        "gemini",
        lambda path: Call("write_file", file_path=str(path), content="x"),
        lambda command: Call("run_shell_command", command=command, description="d"),
        "run_shell_command",
        "",
        together(2),
    ),
    Client(
        "opencode",
        lambda path: Call("write", filePath=str(path), content="x"),
        lambda command: Call("bash", command=command, description="d"),
        "bash",
        "taskyard_TaskList",
        EACH,
        tells_reset=False,
    ),
    Client(
        "claude-acp",
        lambda path: Call("Bash", command=f"printf x > {path}", description="d"),
        lambda command: Call("Bash", command=command, description="d"),
        "printf y > b.txt",
        "mcp__taskyard__TaskList",
        WEIGHT,
        lambda path: Call("Bash", command=f"printf x > {path}", description="d"),
        tells_reset=False,
    ),
    Client(
        "codex-acp",
        lambda path: Call("exec_command", cmd=f"printf x > {path}"),
        lambda command: Call("exec_command", cmd=command),
        "printf y > b.txt",
        "mcp__taskyardTaskList",
        WEIGHT,
        lambda path: Call(
            "exec_command", cmd=f"printf x > {path}", sandbox_permissions="require_escalated", justification="d"
        ),
    ),
    Client(
        "gemini-acp",
        lambda path: Call("write_file", file_path=str(path), content="x"),
        lambda command: Call("run_shell_command", command=command, description="d"),
        "printf y > b.txt",
        "mcp_taskyard_TaskList",
        together(),
        lambda path: Call("run_shell_command", command=f"printf x > {path}", description="d"),
        tells_reset=False,
    ),
    Client(
        "opencode-acp",
        lambda path: Call("write", filePath=str(path), content="x"),
        lambda command: Call("bash", command=command, description="d"),
        "printf y > b.txt",
        "taskyard_TaskList",
        WEIGHT,
        lambda path: Call("write", filePath=str(path.parent.parent / path.name), content="x"),
        tells_reset=False,
    ),
]


@pytest.fixture(params=CLIENTS, ids=lambda client: client.engine)
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.param
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the agent works."""
    found = tmp_path / "work"
    found.mkdir()
    return found


@pytest.fixture(autouse=True)
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "1")


def done(said: Said | None) -> Said:
    assert said is not None
    return said


@pytest.mark.smoke
def test_result(client: Client, model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    api = model(Say("Forty-two, as always."))

    ran = cli.process("agent", "--engine", client.engine, "--", "- What is the answer?", timeout=120)

    assert ran.code == 0, ran.err
    assert "Forty-two, as always." in ran.out
    assert "- What is the answer?" in api.turns[0].text


def test_files_and_commands(client: Client, model: Model, folder: Path) -> None:
    api = model(client.writes(folder / "a.txt"), client.runs("printf y > b.txt; sleep 0.3"), Say("Done."))

    said, watch = turn(client.engine, "Work", folder, permissions="work")

    assert done(said).is_complete, (said, api.turns[-1].tool_results, watch.lines)
    assert (folder / "a.txt").read_text().strip() == "x"
    assert (folder / "b.txt").read_text() == "y"
    assert watch.asked == []
    assert watch.tools[-1][0].startswith(client.tool)
    assert "printf y > b.txt" in str(watch.tools[-1])


def test_usage(client: Client, model: Model, folder: Path) -> None:
    model(Calls(client.runs("true; sleep 0.3"), usage=Usage(1000, 30, cached=400)), Say("Done.", Usage(1200, 20)))

    said, watch = turn(client.engine, "Work", folder, permissions="work")

    assert done(said).is_complete, said
    assert watch.progress.tokens == client.tokens[0]


def test_resume(client: Client, model: Model, folder: Path) -> None:
    if client.engine == "gemini-acp":
        pytest.skip("it finds no session of an earlier process")
    api = model(Say("One."))
    _, first = turn(client.engine, "The word is walnut.", folder)
    assert first.session is not None
    api.then(Say("Two."))

    said, second = turn(client.engine, "Go on.", folder, session=first.session)

    assert done(said).text == "Two."
    assert "walnut" in api.turns[-1].text
    assert second.session == first.session
    assert second.progress.tokens == client.tokens[1]


def test_refusal(client: Client, model: Model, folder: Path) -> None:
    wanted = client.asks or client.writes
    model(wanted(folder / "a.txt"), Say("I could not write the file."))

    said, _ = turn(client.engine, "Write a.txt", folder, permissions="ask", answer="n")

    assert list(folder.parent.rglob("a.txt")) == []
    assert done(said).refused, said
    assert not done(said).is_complete


def test_permission(client: Client, model: Model, folder: Path) -> None:
    if client.asks is None:
        pytest.skip("its program cannot ask")
    if client.engine == "codex-acp":
        pytest.skip("in its default mode a model reviews requests")
    api = model(client.asks(folder / "a.txt"), Say("Done."))

    said, watch = turn(client.engine, "Write a.txt", folder, answer="y")

    assert len(watch.asked) == 1 and "a.txt" in watch.asked[0], watch.lines
    assert done(said).is_complete, said
    assert len(list(folder.parent.rglob("a.txt"))) == 1, api.turns[-1].tool_results


def test_stop(client: Client, model: Model, folder: Path) -> None:
    api = model(Hang())

    said, _ = turn(client.engine, "Work", folder, until=lambda _: bool(api.turns))

    assert said is None
    until(lambda: not running_in(folder))


def running_in(folder: Path) -> list[str]:
    """Processes whose folder is that of the agent."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").resolve() == folder:
                    found.append(entry.name)
            except OSError:
                continue
    return found


def test_limit_of_the_account(client: Client, model: Model, folder: Path) -> None:
    model(Limit(1800))

    said, _ = turn(client.engine, "Work", folder)

    limit = done(said).rate_limit
    assert limit is not None, said
    if client.tells_reset:
        assert limit.until_ms is not None, limit
        assert abs(limit.until_ms / 1000 - time.time() - 1800) < 180


@pytest.mark.parametrize("status", [429, 500])
def test_server_errors(client: Client, model: Model, folder: Path, status: int) -> None:
    model(Fail(status))

    said, _ = turn(client.engine, "Work", folder)

    assert done(said).error
    assert done(said).is_retryable, said
    assert (done(said).rate_limit is not None) is (status == 429), said


def test_cut_stream(client: Client, model: Model, folder: Path) -> None:
    model(Cut())

    said, _ = turn(client.engine, "Work", folder)

    assert done(said).error and done(said).is_retryable, said
    assert done(said).rate_limit is None


def test_own_tools(client: Client, model: Model, folder: Path) -> None:
    if not client.own_tool:
        pytest.skip("its program takes no MCP server for one run")
    api = model(Say("Done."))

    turn(client.engine, "Work", folder, own_tools=True)

    # Claude Code names tools of servers in a text, and its model asks for those it needs.
    assert client.own_tool in (api.turns[0].text if client.engine == "claude-acp" else api.turns[0].tools)
