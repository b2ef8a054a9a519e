"""Taskyard's own tools in real agent programs: none of them runs a command in a mode that allows no commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.engine_turns import turn
from support.model_api import ModelApi, Say

pytestmark = [pytest.mark.client, pytest.mark.timeout(150), pytest.mark.req("Q-03")]


@pytest.mark.parametrize(
    ("engine", "lists", "runs"),
    [
        ("codex", "mcp__taskyardTaskList", "mcp__taskyardBash"),
        ("opencode", "taskyard_TaskList", "taskyard_Bash"),
        ("opencode-acp", "taskyard_TaskList", "taskyard_Bash"),
    ],
)
@pytest.mark.parametrize(("mode", "is_offered"), [("ask", False), ("edit", False), ("work", True)])
def test_a_command_tool_of_ours_is_offered_only_where_commands_are_allowed(
    engine: str, lists: str, runs: str, mode: str, is_offered: bool, model: Callable[..., ModelApi], tmp_path: Path
) -> None:
    api = model(Say("Done."))

    turn(engine, "Work", tmp_path, own_tools=True, permissions=mode)

    tools = api.turns[0].tools
    assert (lists in tools, runs in tools) == (True, is_offered)
