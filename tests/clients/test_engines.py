"""Every engine that runs an agent program, with the real program, in every case that unattended work meets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from support import cli
from support.engine_turns import turn
from support.model_api import Call, Calls, Cut, Fail, Limit, ModelApi, Say, Usage
from support.wait import until
from taskyard.agents.engines.engine import TurnResult

pytestmark = [pytest.mark.client, pytest.mark.timeout(150)]

Model = Callable[..., ModelApi]


class Client(NamedTuple):
    """How one engine's program names its tools, and what it says of its use."""

    engine: str
    writes: Callable[[Path], Call]  #: writes "x" to the path
    runs: Callable[[str], Call]  #: runs a command
    tool: str  #: the command's tool, as the watcher is told
    own_tool: str  #: how its model is offered a tool of ours, as a format
    #: Tokens it tells of two requests (1000 in, 30 out; 1200 in, 20 out), and of a turn with one (1000 in, 50 out).
    tokens: tuple[int, int]
    asks: Callable[[Path], Call] | None = None  #: a call that needs permission, and writes to the path if it gets it
    permission: str = ""  #: why it cannot ask for permission
    reset: str = ""  #: why it does not tell when a limit lifts
    server: str = ""  #: why it cannot be handed our MCP server for one run


def together(extra: int = 0) -> tuple[int, int]:
    """What all requests of a turn took, and what was asked beside the work."""
    return 2250 + extra, 1050 + extra


#: The last request, and all answers.
EACH = (1250, 1050)

#: What the conversation weighs at the end.
WEIGHT = (1220, 1050)


#: What a program cannot do, and what Taskyard does instead. These sentences are footnotes of the page.
_REFUSED = "The turn fails and names the refused tools, and a team member asks a person whether to retry."
_CODEX_ASKS = f"`codex exec` always sets the approval policy `never`. {_REFUSED} The engine `codex-acp` asks."
_GEMINI_ASKS = (
    "`gemini` without a terminal does not offer its model the tools that need approval."
    f" {_REFUSED} The engine `gemini-acp` asks."
)
_OPENCODE_ASKS = f"`opencode run` rejects every permission request itself. {_REFUSED} The engine `opencode-acp` asks."
_GEMINI_SERVER = (
    "Gemini CLI takes MCP servers from the files of the user, the project or root alone, not for one run:"
    " `taskyard install gemini` adds ours (see the second table), and the engine `gemini-acp` is handed it."
)
_WAIT = "Taskyard recognizes the limit and retries with growing intervals."
_OPENCODE_RESET = f"opencode logs the message of the error and not its `retry-after` header. {_WAIT}"
_GEMINI_RESET = f"`gemini --acp` answers with the message of the error and not its `retryDelay`. {_WAIT}"


CLIENTS = [
    Client(
        "claude",
        lambda path: Call("Write", file_path=str(path), content="x"),
        lambda command: Call("Bash", command=command, description="d"),
        "Bash",
        "mcp__taskyard__{}",
        EACH,
        lambda path: Call("Bash", command=f"python3 -c \"open('{path}', 'w')\"", description="d"),
    ),
    Client(
        "codex",
        lambda path: Call("exec_command", cmd=f"printf x > {path}; sleep 0.3"),
        lambda command: Call("exec_command", cmd=command),
        "exec_command",
        "mcp__taskyard{}",
        together(),
        permission=_CODEX_ASKS,
    ),
    Client(
        "gemini",
        lambda path: Call("write_file", file_path=str(path), content="x"),
        lambda command: Call("run_shell_command", command=command, description="d"),
        "run_shell_command",
        "mcp_taskyard_{}",
        together(2),
        permission=_GEMINI_ASKS,
        server=_GEMINI_SERVER,
    ),
    Client(
        "opencode",
        lambda path: Call("write", filePath=str(path), content="x"),
        lambda command: Call("bash", command=command, description="d"),
        "bash",
        "taskyard_{}",
        EACH,
        permission=_OPENCODE_ASKS,
        reset=_OPENCODE_RESET,
    ),
    Client(
        "claude-acp",
        lambda path: Call("Bash", command=f"printf x > {path}", description="d"),
        lambda command: Call("Bash", command=command, description="d"),
        "printf y > b.txt",
        "mcp__taskyard__{}",
        WEIGHT,
        lambda path: Call("Bash", command=f"printf x > {path}", description="d"),
    ),
    Client(
        "codex-acp",
        lambda path: Call("exec_command", cmd=f"printf x > {path}"),
        lambda command: Call("exec_command", cmd=command),
        "printf y > b.txt",
        "mcp__taskyard{}",
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
        "mcp_taskyard_{}",
        together(),
        lambda path: Call("run_shell_command", command=f"printf x > {path}", description="d"),
        reset=_GEMINI_RESET,
    ),
    Client(
        "opencode-acp",
        lambda path: Call("write", filePath=str(path), content="x"),
        lambda command: Call("bash", command=command, description="d"),
        "printf y > b.txt",
        "taskyard_{}",
        WEIGHT,
        lambda path: Call("write", filePath=str(path), content="x"),
        reset=_OPENCODE_RESET,
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


def done(said: TurnResult | None) -> TurnResult:
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


def test_progress(client: Client, model: Model, folder: Path) -> None:
    api = model(client.writes(folder / "a.txt"), client.runs("printf y > b.txt; sleep 0.3"), Say("Done."))

    said, watch = turn(client.engine, "Work", folder, permissions="work")

    assert done(said).is_complete, (said, api.turns[-1].tool_results, watch.lines)
    assert (folder / "a.txt").read_text().strip() == "x"
    assert (folder / "b.txt").read_text() == "y"
    assert watch.asked == []
    writing, running = watch.tools
    assert "a.txt" in str(writing)
    assert running[0].startswith(client.tool)
    assert "printf y > b.txt" in str(running)


def test_usage(client: Client, model: Model, folder: Path) -> None:
    model(Calls(client.runs("true; sleep 0.3"), usage=Usage(1000, 30, cached=400)), Say("Done.", Usage(1200, 20)))

    said, watch = turn(client.engine, "Work", folder, permissions="work")

    assert done(said).is_complete, said
    assert watch.progress.tokens == client.tokens[0]


@pytest.mark.req("K-02")
def test_resume(client: Client, model: Model, folder: Path) -> None:
    api = model(Say("One."))
    _, first = turn(client.engine, "The word is walnut.", folder)
    assert first.session is not None
    api.then(Say("Two."))

    said, second = turn(client.engine, "Go on.", folder, session=first.session)

    assert done(said).text == "Two."
    assert "walnut" in api.turns[-1].text
    assert second.session == first.session
    assert second.progress.tokens == client.tokens[1]


@pytest.mark.req("Q-03")
def test_refusal(client: Client, model: Model, folder: Path) -> None:
    wanted = client.asks or client.writes
    model(wanted(folder / "a.txt"), Say("I could not write the file."))

    said, _ = turn(client.engine, "Write a.txt", folder, permissions="ask", answer="n")

    assert list(folder.parent.rglob("a.txt")) == []
    assert done(said).refused, said
    assert not done(said).is_complete


@pytest.mark.req("Q-03")
def test_permission(client: Client, model: Model, folder: Path) -> None:
    api = model((client.asks or client.writes)(folder / "a.txt"), Say("Done."))

    said, watch = turn(client.engine, "Write a.txt", folder, permissions="ask", answer="y")

    written = list(folder.parent.rglob("a.txt"))
    if client.permission:
        assert (watch.asked, written, bool(done(said).refused)) == ([], [], True), said
        pytest.skip(client.permission)
    assert len(watch.asked) == 1 and "a.txt" in watch.asked[0], watch.lines
    assert done(said).is_complete, said
    assert len(written) == 1, api.turns[-1].tool_results


@pytest.mark.req("B-09")
def test_stop(client: Client, model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    model(client.runs("touch began; sleep 600"), Say("No."))
    words = ("agent", "-d", "Work", "--engine", client.engine, "--permissions", "work")
    job = cli.process(*words).out.strip()
    until((folder / "began").exists, timeout=60, what="the beginning of the command")

    stopped = cli.process("stop", job)

    assert stopped.code == 0, stopped
    assert running_in(folder) == []


def running_in(folder: Path) -> list[str]:
    """Processes whose folder is that of the agent, beside this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if (entry / "cwd").resolve() == folder:
                    found.append(entry.name)
            except OSError:
                continue
    return found


@pytest.mark.req("Q-01")
def test_status_429(client: Client, model: Model, folder: Path) -> None:
    model(Fail(429))

    said, _ = turn(client.engine, "Work", folder)

    assert done(said).error and done(said).is_retryable, said
    assert done(said).rate_limit is not None


@pytest.mark.req("Q-01")
def test_status_529(client: Client, model: Model, folder: Path) -> None:
    model(Fail(529))

    said, _ = turn(client.engine, "Work", folder)

    assert done(said).error and done(said).is_retryable, said
    assert done(said).rate_limit is not None


def test_status_500(client: Client, model: Model, folder: Path) -> None:
    model(Fail(500, "Something broke."))  # words from which nothing can be concluded

    said, _ = turn(client.engine, "Work", folder)

    assert done(said).error and done(said).is_retryable, said
    assert done(said).rate_limit is None


@pytest.mark.req("Q-01")
def test_reset_time(client: Client, model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(Limit(1800))
    if client.engine.startswith("claude"):  # it tells subscribers alone when a quota lifts
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-test")

    said, _ = turn(client.engine, "Work", folder)

    limit = done(said).rate_limit
    assert limit is not None, said
    if client.reset:
        assert limit.until_ms is None, limit
        pytest.skip(client.reset)
    assert limit.until_ms is not None, limit
    assert abs(limit.until_ms / 1000 - time.time() - 1800) < 180


def test_cut_stream(client: Client, model: Model, folder: Path) -> None:
    model(Cut())

    said, _ = turn(client.engine, "Work", folder)

    assert done(said).error and done(said).is_retryable, said
    assert done(said).rate_limit is None


@pytest.mark.req("Q-03", "T-01")
def test_own_tools(client: Client, model: Model, folder: Path) -> None:
    if client.server:
        pytest.skip(client.server)
    name = client.own_tool.format("TaskCreate")
    # Codex puts the tools of a server into a namespace, and a call names both.
    called = name.replace("mcp__taskyardTask", "mcp__taskyard/Task")
    api = model(Call(called, subject="Paint the shed", description="Blue"), Say("Done."))

    said, watch = turn(client.engine, "Work", folder, own_tools=True, answer="y")

    # Claude Code by ACP names the tools of servers in a text, and its model asks for those it needs.
    assert name in (api.turns[0].text if client.engine == "claude-acp" else api.turns[0].tools)
    assert done(said).is_complete, (said, watch.lines)
    assert "Task #1 created successfully: Paint the shed" in api.turns[-1].tool_results[-1]


@pytest.mark.req("Q-03")
def test_own_commands(client: Client, model: Model, folder: Path) -> None:
    if client.server:
        pytest.skip(client.server)
    name = client.own_tool.format("Bash").replace("mcp__taskyardBash", "mcp__taskyard/Bash")
    api = model(Call(name, command=f"touch {folder}/made", description="d"), Say("I could not."))

    turn(client.engine, "Work", folder, own_tools=True, permissions="ask", answer="n")

    assert len(api.turns) >= 1
    assert not (folder / "made").exists(), api.turns[-1].tool_results
