"""Taskyard's MCP tools in real agent programs: what their models are offered, and what they read of an answer."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import cli
from support.model_api import Call, ModelApi, Request, Say

pytestmark = [pytest.mark.client, pytest.mark.timeout(240)]

#: No program takes longer, in seconds.
PATIENCE = 200


def run(command: list[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


PROMPT = "Look at the list."

#: How each program is asked for one turn.
COMMANDS = {
    "claude-code": ["claude", "-p", PROMPT, "--model", "claude-sonnet-4-5"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT],
    "gemini": ["gemini", "-p", PROMPT, "--approval-mode", "yolo", "-m", "gemini-2.5-pro"],
    "opencode": ["opencode", "run", PROMPT],
}


def installed(client: str, project: Path) -> None:
    """Set a program up as a user does."""
    if client != "opencode":
        words = ["--allow"] if client == "claude-code" else []
        done = cli.process("install", client, "--yes", *words)
        assert done.code == 0, done.err
        return
    printed = json.loads(cli.process("install", "opencode", "--print").out)
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "opencode" / "opencode.json"
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **printed}), encoding="utf-8")


def offered(request: Request, tool: str) -> str:
    """The name under which the model is offered a tool of ours."""
    names = [name for name in request.tools if name.lower().endswith(tool.lower()) and "taskyard" in name.lower()]
    assert names, request.tools
    return names[0]


#: What each program makes of a tool's name.
NAMES = {
    "claude-code": "mcp__taskyard__{}",
    "codex": "mcp__taskyard/{}",
    "gemini": "mcp_taskyard_{}",
    "opencode": "taskyard_{}",
}


@pytest.mark.smoke
@pytest.mark.req("T-04", "T-05", "N-01")
@pytest.mark.parametrize("client", COMMANDS)
def test_a_model_is_offered_the_tools_at_once_and_reads_answers_and_each_notice_once(
    client: str, model: Callable[..., ModelApi], tmp_path: Path
) -> None:
    def tool(name: str, **given: Any) -> Call:
        return Call(NAMES[client].format(name), **given)

    api = model(
        tool("TaskCreate", subject="Port the parser"),
        tool("Bash", command="exit 3", description="Fail on purpose", run_in_background=True),
        tool("Bash", command="sleep 1; echo slept"),
        tool("TaskList"),
        Say("Done."),
    )
    installed(client, tmp_path)
    done = run(COMMANDS[client], tmp_path, ENABLE_TOOL_SEARCH="false")

    first, last = api.turns[0], api.turns[-1]
    assert offered(first, "TaskList")
    results = last.tool_results
    assert len(results) == 4, (results, done.stderr)
    assert "Task #1 created successfully: Port the parser" in results[0]
    assert "Command running in background with ID: b" in results[1]
    assert "slept" in results[2]
    assert "#1 [pending] Port the parser" in results[3]
    said = last.text
    assert said.count("<status>failed</status>") == 1
    assert "not user input" in said
    assert '"check"' not in said and "hmac" not in said.lower()


#: What each program that can say so says of a server it has connected to.
LISTS = {
    "claude-code": (["claude", "mcp", "list"], "✔"),
    "gemini": (["gemini", "mcp", "list"], "Connected"),
    "opencode": (["opencode", "mcp", "list"], "connected"),
}


@pytest.mark.parametrize("client", LISTS)
def test_a_program_reads_what_is_installed_and_connects(
    client: str, model: Callable[..., ModelApi], tmp_path: Path
) -> None:
    model(Say("ok"))
    installed(client, tmp_path)
    command, connected = LISTS[client]
    done = run(command, tmp_path)
    said = done.stdout + done.stderr
    assert "taskyard" in said
    assert connected in said, said


def test_installing_and_uninstalling_leaves_claude_code_s_files_as_they_were(
    model: Callable[..., ModelApi], tmp_path: Path
) -> None:
    model(Say("ok"))
    settings = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "settings.json"
    settings.write_text('{\n  "permissions": {"allow": ["Read"],  "deny": []},\n  "x": 1.50\n}', encoding="utf-8")
    assert cli.process("install", "claude-code", "--yes", "--allow").code == 0
    assert "mcp__taskyard" in settings.read_text(encoding="utf-8")
    assert run(COMMANDS["claude-code"], tmp_path).returncode == 0
    assert cli.process("uninstall", "claude-code", "--yes").code == 0
    assert settings.read_text(encoding="utf-8") == (
        '{\n  "permissions": {"allow": ["Read"],  "deny": []},\n  "x": 1.50\n}'
    )
    known = json.loads((Path(os.environ["CLAUDE_CONFIG_DIR"]) / ".claude.json").read_text(encoding="utf-8"))
    assert not known.get("mcpServers")
