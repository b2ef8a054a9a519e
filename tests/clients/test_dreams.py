"""Dreams by real agent programs: they read the sessions and edit the copy, and may do nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from support import cli
from support.dreams import Memory
from support.model_api import Call, ModelApi, Say

pytestmark = [pytest.mark.client, pytest.mark.timeout(150)]

#: Seconds for a dream: it starts the program four times, and each start takes up to twenty on a busy machine.
PATIENCE = 120.0

Model = Callable[..., ModelApi]


class Tools(NamedTuple):
    """How one engine's program names its tools."""

    engine: str
    reads: Callable[[str], Call]
    writes: Callable[[str], Call]
    runs: Callable[[str], Call] | None  #: a command, where the mode for dreams does not allow one


CLAUDE = Tools(
    "claude",
    lambda path: Call("Read", file_path=path),
    lambda path: Call("Write", file_path=path, content="Use tabs."),
    lambda command: Call("Bash", command=command, description="d"),
)
CODEX = Tools(
    "codex",
    lambda path: Call("exec_command", cmd=f"cat {path}"),
    lambda path: Call("exec_command", cmd=f"printf 'Use tabs.' > {path}; sleep 0.3"),
    None,  # it edits by commands, in its sandbox
)
GEMINI = Tools(
    "gemini",
    lambda path: Call("read_file", file_path=path),
    lambda path: Call("write_file", file_path=path, content="Use tabs."),
    lambda command: Call("run_shell_command", command=command, description="d"),
)
OPENCODE = Tools(
    "opencode",
    lambda path: Call("read", filePath=path),
    lambda path: Call("write", filePath=path, content="Use tabs."),
    lambda command: Call("bash", command=command, description="d"),
)
TOOLS = [
    CLAUDE,
    CODEX,
    GEMINI,
    OPENCODE,
    CLAUDE._replace(engine="claude-acp"),
    OPENCODE._replace(engine="opencode-acp"),
]


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_TOOLS", "false")
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "0")


def dreamt(memory: Memory, engine: str, monkeypatch: pytest.MonkeyPatch) -> cli.Ran:
    monkeypatch.chdir(memory.project)
    words = ("dream", "--force", "--memory", str(memory.path), "--engine", engine, "--json")
    return cli.process(*words, timeout=PATIENCE)


@pytest.mark.req("Q-03", "K-07")
@pytest.mark.parametrize("tools", TOOLS, ids=lambda tools: tools.engine)
def test_it_reads_the_sessions_and_edits_the_copy_without_asking(
    tools: Tools, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = model()
    memory = Memory(tmp_path, sessions=1)
    session = f"{memory.side.work}/sessions/001-claude-session-0.md"
    api.then(
        Say("Little."),
        tools.reads(session), Say("Tabs."),
        tools.writes(f"{memory.side.stage}/style.md"), Say("Written."),
        Say("Learned about tabs."),
    )  # fmt: skip

    done = dreamt(memory, tools.engine, monkeypatch)

    assert done.code == 0, done
    assert any("use tabs (0)" in turn.text for turn in api.turns), "it could not read the session"
    assert memory.texts["style.md"] == "Use tabs."


@pytest.mark.req("Q-03", "K-07")
@pytest.mark.parametrize("tools", [tools for tools in TOOLS if tools.runs], ids=lambda tools: tools.engine)
def test_a_command_is_refused_and_the_memory_stays_as_it_was(
    tools: Tools, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tools.runs is not None
    api = model()
    memory = Memory(tmp_path, sessions=1)
    before = memory.texts
    command = tools.runs(f"printf x > {memory.side.stage}/made; printf x > {tmp_path}/made")
    api.then(command, *[Say("Done.")] * 4)

    done = dreamt(memory, tools.engine, monkeypatch)

    assert done.code != 0, done
    assert "refused for want of permission" in done.out + done.err
    assert not os.path.exists(tmp_path / "made")
    assert memory.texts == before
