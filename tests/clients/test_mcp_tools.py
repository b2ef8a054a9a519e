"""Real agent programs with Taskyard's MCP server in their configuration: what their models are offered and read."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import cli
from support.model_api import Call, Choose, ModelApi, Request, Say
from support.terminal import on_a_terminal

pytestmark = [pytest.mark.client, pytest.mark.timeout(240)]

#: No program takes longer, in seconds.
PATIENCE = 200

PROMPT = "Look at the list."

Model = Callable[..., ModelApi]

#: Why a client has no hooks of ours, and why its idle session is not woken. These sentences are footnotes of the page.
_HOOKS = "Taskyard installs no hooks in {}: its model reads notices with the next answer of a tool."
_IDLE = (
    "Taskyard installs nothing that begins a turn of an idle {} session: its model reads the notice with the next"
    " answer of a tool, in the turn that the next prompt begins."
)


class Client(NamedTuple):
    """How one program is run, what it calls our tools, and what of ours it does not have."""

    name: str  #: for `taskyard install`
    command: tuple[str, ...]  #: one turn
    tool: str  #: how its model calls a tool of ours, as a format
    files: tuple[str, ...]  #: of its configuration, below $HOME
    lists: tuple[str, ...] = ()  #: the command that lists its servers
    connected: str = ""  #: what that says of one that it has connected to
    hooks: str = ""  #: why it has none of ours
    idle: str = ""  #: why its idle session is not woken


CLIENTS = [
    Client(
        "claude-code",
        ("claude", "-p", PROMPT, "--model", "claude-sonnet-4-5"),
        "mcp__taskyard__{}",
        (".claude/settings.json",),  # .claude/.claude.json is its own state, which each run changes
        ("claude", "mcp", "list"),
        "✔",
    ),
    Client(
        "codex",
        ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT),
        "mcp__taskyard/{}",
        (".codex/config.toml",),
        ("codex", "mcp", "list"),
        "enabled",  # it does not connect to list them
        _HOOKS.format("Codex"),
        _IDLE.format("Codex"),
    ),
    Client(
        "gemini",
        ("gemini", "-p", PROMPT, "--approval-mode", "yolo", "-m", "gemini-2.5-pro"),
        "mcp_taskyard_{}",
        (".gemini/settings.json",),
        ("gemini", "mcp", "list"),
        "Connected",
        _HOOKS.format("Gemini CLI"),
        _IDLE.format("Gemini CLI"),
    ),
    Client(
        "opencode",
        ("opencode", "run", PROMPT),
        "taskyard_{}",
        (".config/opencode/opencode.json",),
        ("opencode", "mcp", "list"),
        "connected",
        _HOOKS.format("opencode"),
        _IDLE.format("opencode"),
    ),
]


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.param
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project that the program works in."""
    found = tmp_path / "work"
    found.mkdir()
    monkeypatch.chdir(found)
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")  # Claude Code: tools of servers as such, and not by their names
    return found


def run(command: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def installed(client: Client, *words: str) -> None:
    """Set a program up as a user does."""
    done = cli.process("install", client.name, "--yes", *(["--allow"] if client.name == "claude-code" else []), *words)
    assert done.code == 0, done.err


def conversation(client: Client, model: Model, folder: Path, *calls: tuple[str, dict[str, Any]]) -> ModelApi:
    """Install, and run a program whose model calls these tools of ours, one after the other."""
    api = model(*(Call(client.tool.format(name), **given) for name, given in calls), Say("Done."))
    installed(client, "--by", "ada")
    done = run(client.command, folder)
    assert len(api.turns[-1].tool_results) == len(calls), (api.turns[-1].tool_results, done.stderr)
    return api


def offers(request: Request) -> bool:
    """Whether the model is offered our TaskList."""
    return any(re.fullmatch(r"(mcp_+)?taskyard_*TaskList", name) for name in request.tools)


def test_install(client: Client, model: Model, folder: Path) -> None:
    api = model(Say("ok"))
    files = [Path(os.environ["HOME"], name) for name in client.files]
    if client.name == "claude-code":
        files[0].write_text('{\n  "permissions": {"allow": ["Read"],  "deny": []},\n  "x": 1.50\n}', encoding="utf-8")
    before = [file.read_bytes() for file in files]

    installed(client)
    listed = run(client.lists, folder)
    assert re.search(rf"taskyard.*{client.connected}", listed.stdout + listed.stderr, re.DOTALL), listed
    assert cli.process("uninstall", client.name, "--yes").code == 0

    assert [file.read_bytes() for file in files] == before
    assert run(client.command, folder).returncode == 0
    assert not offers(api.turns[-1])


@pytest.mark.smoke
@pytest.mark.req("T-04", "T-05")
def test_answers(client: Client, model: Model, folder: Path) -> None:
    api = conversation(
        client,
        model,
        folder,
        ("TaskCreate", {"subject": "Port the parser"}),
        ("Bash", {"command": "printf 'sle%s' pt"}),  # its output is not among its words
        ("Bash", {"command": "echo $((7 * 600))"}),  # JSON, and no object
        ("Bash", {"command": 'echo "[$((7 * 600))]"'}),
        ("TaskList", {}),
    )

    assert offers(api.turns[0]), api.turns[0].tools
    created, printed, number, items, listed = api.turns[-1].tool_results
    assert "Task #1 created successfully: Port the parser" in created
    assert "slept" in printed
    assert "4200" in number and "[4200]" not in number
    assert "[4200]" in items
    assert "#1 [pending] Port the parser" in listed
    assert '"check"' not in api.turns[-1].text and "hmac" not in api.turns[-1].text.lower()


@pytest.mark.req("N-01", "T-05")
def test_notices(client: Client, model: Model, folder: Path) -> None:
    api = conversation(
        client,
        model,
        folder,
        ("Bash", {"command": "exit 3", "description": "Fail on purpose", "run_in_background": True}),
        ("Bash", {"command": "sleep 1"}),
        ("TaskList", {}),
    )

    assert "Command running in background with ID: b" in api.turns[-1].tool_results[0]
    said = api.turns[-1].text
    assert (said.count("<status>failed</status>"), "not user input" in said) == (1, True)
    assert '"check"' not in said and "hmac" not in said.lower()
    assert cli.process("notices", "take", "--all", "--json").data == []


@pytest.mark.req("T-05")
def test_mail(client: Client, model: Model, folder: Path) -> None:
    def step(request: Request) -> Say | Call:
        number = len(request.tool_results)
        if number == 1:  # now that somebody of that name is there
            sent = cli.process("mail", "send", "ada", "The API is frozen.", "--from", "bob")
            assert sent.code == 0, sent
        return Say("Done.") if number == 3 else Call(client.tool.format(("ListJobs", "ListJobs", "ReadMail")[number]))

    api = model(Choose(step))
    installed(client, "--by", "ada")
    done = run(client.command, folder)

    first, second, read = api.turns[-1].tool_results
    assert "mail" not in first.lower(), done.stderr
    assert "ReadMail" in second and "The API is frozen." not in second
    assert read.count("The API is frozen.") == 1 and "bob" in read


def test_reminder(client: Client, model: Model, folder: Path) -> None:
    quiet = [
        ("Bash", {"command": f"echo line {number}"}) for number in range(11)
    ]  # Gemini CLI ends a turn that repeats itself

    api = conversation(client, model, folder, ("TaskCreate", {"subject": "Port the parser"}), *quiet)

    reminded = [result for result in api.turns[-1].tool_results if "An automatic note from Taskyard" in result]
    assert len(reminded) == 1
    assert "Port the parser" in reminded[0]


@pytest.mark.req("N-07", "T-05")
def test_hooks(client: Client, model: Model, folder: Path) -> None:
    if client.hooks:
        pytest.skip(client.hooks)
    started: list[str] = []

    def step(request: Request) -> Say | Call:
        if not started:
            started.append(cli.process("run", "-d", "--", "sh", "-c", "exit 4").out.strip())
            return Call("Bash", command="true", description="d")  # one of its own: no answer of ours carries a notice
        assert cli.process("wait", started[0], "--timeout", "20").code != 0
        return Say("Done.")

    api = model(Choose(step))
    installed(client)
    early = cli.process("run", "-d", "--", "sh", "-c", "exit 3").out.strip()
    assert cli.process("wait", early, "--timeout", "20").code != 0
    done = run((*client.command, "--allowedTools", "Bash"), folder)

    assert done.returncode == 0, done
    assert f"<task-id>{early}</task-id>" in api.turns[0].text  # with the prompt
    assert f"<task-id>{started[0]}</task-id>" in api.turns[-1].text  # when it wanted to stop
    for job in (early, started[0]):
        assert api.turns[-1].text.count(f"<task-id>{job}</task-id>") == 1
    assert cli.process("notices", "take", "--all", "--json").data == []


@pytest.mark.req("N-07")
def test_idle_session(client: Client, model: Model, folder: Path) -> None:
    if client.idle:
        pytest.skip(client.idle)
    ends = folder / "ends"
    build = f"while [ ! -e {ends} ]; do sleep 0.05; done; exit 3"

    def step(request: Request) -> Say | Call:
        results = request.tool_results
        if not results:
            return Call(client.tool.format("Bash"), command=build, description="The build", run_in_background=True)
        if len(results) == 1:
            wait = re.search(r"run_in_background: (.* notices take .*--ack)", results[0])
            assert wait is not None, results
            return Call("Bash", command=wait[1], description="Wait for the build", run_in_background=True)
        told = re.search(r"<output-file>([^<]*)</output-file>", request.text)
        if told is None:
            return Say("I am waiting.")
        return Call("Read", file_path=told[1]) if len(results) == 2 else Say("I have read it.")

    api = model(Choose(step))
    trust(folder)
    installed(client)
    session = ["claude", "--allowedTools", "Bash,Read", "--model", "claude-sonnet-4-5", "Start the build."]
    with on_a_terminal(argv=session) as terminal:
        terminal.reads(lambda: b"done " in terminal.seen, what="the end of the turn", timeout=60)
        assert len(api.turns) == 3
        ends.touch()  # nobody types anything
        terminal.reads(lambda: len(api.turns) >= 5, what="a turn of its own", timeout=60)

    assert "Background command" in api.turns[3].text
    assert api.turns[4].tool_results[-1].count("<status>failed</status>") == 1


def trust(folder: Path) -> None:
    """Answer the questions that Claude Code asks a person when it is first started in a folder."""
    file = Path(os.environ["CLAUDE_CONFIG_DIR"], ".claude.json")
    known = json.loads(file.read_text(encoding="utf-8"))
    answered = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    file.write_text(json.dumps({**known, "projects": {str(folder): answered}}), encoding="utf-8")
