"""The agent programs that `make clients` installed, at the versions that are pinned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.repo import ROOT

#: The npm package of each program.
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "claude-agent-acp": "@agentclientprotocol/claude-agent-acp",
    "codex-acp": "@agentclientprotocol/codex-acp",
}


def folder() -> Path:
    """The folder of the commands; skips the test where there is none."""
    found = ROOT / ".clients" / "bin"
    if not found.is_dir():
        pytest.skip("no agent programs here: run `make clients`")
    return found


def pinned(program: str) -> str:
    """The version that the tests are written for."""
    recipe = json.loads((ROOT / "tests" / "clients" / "package.json").read_text(encoding="utf-8"))
    version: str = recipe["dependencies"][PACKAGES[program]]
    return version
