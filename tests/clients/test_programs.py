"""The agent programs are installed, and are those that the tests were written for."""

from __future__ import annotations

import subprocess

import pytest

from support import agent_programs

pytestmark = [pytest.mark.client, pytest.mark.smoke]


@pytest.mark.parametrize("program", ["claude", "codex", "gemini", "opencode", "claude-agent-acp", "codex-acp"])
def test_the_program_says_the_version_that_is_pinned(program: str) -> None:
    command = agent_programs.folder() / program

    said = subprocess.run([command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50)

    assert agent_programs.pinned(program) in said.stdout.split() + said.stdout.strip().split("@"), said
