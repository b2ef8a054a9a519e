"""`taskyard agent` and `taskyard engines`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.cli import process, taskyard
from support.jobs import marked
from support.terminal import on_a_terminal
from support.wait import until


@pytest.mark.req("K-02", "T-05")
def test_an_agent_s_answer_is_printed_and_its_exit_code_says_how_it_went() -> None:
    done = process("agent", "count", "--command", "sh -c 'read x; echo You said $x'")
    assert (done.code, done.out) == (0, "You said count\n")
    failed = process("agent", "count", "--command", "sh -c 'echo no key >&2; exit 3'")
    assert failed.code != 0
    assert "exit code 3: no key" in failed.err


@pytest.mark.req("K-02", "B-07")
def test_one_in_the_background_is_a_job_like_any_other() -> None:
    started = process("agent", "-d", "--json", "look around", "--command", "cat", "--description", "Explore").data
    assert (started["id"][0], started["type"], started["description"]) == ("a", "local_agent", "Explore")
    ended = process("wait", started["id"], "--output", "--json").data
    assert (ended["status"], ended["text"]) == ("completed", "look around")
    assert ended["facts"]["prompt"] == "look around"
    assert '"type": "prompt"' in process("logs", started["id"]).out


@pytest.mark.req("B-01")
def test_what_it_runs_on_is_listed_with_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "gemini"
    said = """{"type":"message","role":"assistant","content":"Gemini got: '"$(cat)"'"}"""
    over = '{"type":"result","status":"success"}'
    tool.write_text(f"#!/bin/sh\necho '{said}'\necho '{over}'\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    engines = {one["name"]: one for one in taskyard("engines", "--json").data}
    assert engines["command"]["ready"] is True
    assert (engines["gemini"]["ready"], engines["gemini"]["path"]) == (True, str(tool))
    assert (engines["aider"]["ready"], engines["aider"]["missing"]) == (False, "aider is not installed")
    assert (engines["acp"]["ready"], engines["model"]["ready"]) == (True, True)
    assert "(aider is not installed)" in taskyard("engines").out
    assert process("agent", "hello", "--engine", "gemini").out == "Gemini got: hello\n"


@pytest.mark.req("B-12", "N-02")
def test_an_agent_can_be_given_a_budget_and_a_worktree(tmp_path: Path) -> None:
    spends = """sh -c 'echo "{\\"type\\": \\"cost\\", \\"usd\\": 3}"; sleep 60'"""
    spent = process("agent", "go", "--command", spends, "--max-cost", "2.50")
    assert "its budget is used up: $3.00 of $2.50" in spent.err
    assert "dollars" in taskyard("agent", "go", "--command", "cat", "--max-cost", "nan").err
    outside = process("agent", "go", "--command", "cat", "--worktree", "--cwd", str(tmp_path))
    assert outside.code != 0 and "No worktree could be made for it" in outside.err


def test_what_is_missing_is_named() -> None:
    assert "needs a program" in taskyard("agent", "go").err
    unknown = taskyard("agent", "go", "--engine", "comand", "--json")
    assert (unknown.code, unknown.error["nearest"][0]) == (4, "command")
    assert "cannot be parsed" in taskyard("agent", "go", "--command", "sh -c 'x").err


@pytest.mark.req("B-11", "K-02")
def test_at_a_terminal_it_is_told_what_is_typed_and_a_key_moves_it_to_the_background() -> None:
    listens = """sh -c 'while read -r line; do echo "heard $line"; done' {prompt}"""
    with on_a_terminal("agent", "go", "--command", listens, "--description", "Listen") as terminal:
        until(lambda: [row["status"] for row in taskyard("ps", "--json").data] == ["running"])
        (row,) = taskyard("ps", "--json").data
        terminal.type(b"first\n")
        until(lambda: "heard first" in taskyard("logs", row["id"]).out)
        terminal.type(b"\x02")
        terminal.shows(b"Running in the background")
        assert terminal.ended() == 0
    moved = taskyard("ps", "--json").data[0]
    assert (moved["id"], moved["status"], moved["backgrounded"]) == (row["id"], "running", True)
    assert taskyard("send", row["id"], "second", "--eof").code == 0
    assert process("wait", row["id"], "--output", "--json").data["text"] == "heard first\nheard second"


@pytest.mark.req("B-11")
def test_ctrl_c_stops_it_with_everything_it_started() -> None:
    with on_a_terminal("agent", "go", "--command", "sh -c 'sleep 4321.25 & wait' {prompt}") as terminal:
        until(lambda: len(marked("sleep\x004321.25")) > 0)
        terminal.type(b"\x03")
        assert terminal.ended() == 130
    assert marked("4321.25") == []
    assert taskyard("ps", "--all", "--json").data[0]["status"] == "killed"
