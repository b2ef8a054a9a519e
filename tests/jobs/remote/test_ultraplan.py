"""Where an ultraplan stands, by what its session says."""

from __future__ import annotations

import json

import pytest

from taskyard.jobs.remote.backend import RemoteState
from taskyard.jobs.remote.completion import extract_plan, next_phase, visible_phase


def uses(tool: str, **given: str) -> str:
    block = {"type": "tool_use", "name": tool, "input": given}
    return json.dumps({"type": "assistant", "message": {"content": [block]}})


ANSWER = json.dumps({"type": "user", "message": {"content": [{"type": "tool_result"}]}})


@pytest.mark.req("K-03")
@pytest.mark.parametrize(
    ("before", "lines", "phase"),
    [
        ("", ["plain", "{"], ""),
        ("", [uses("ExitPlanMode", plan="P")], "plan_ready"),
        ("", [uses("AskUserQuestion")], "needs_input"),
        ("", [uses("Read")], ""),
        ("plan_ready", [uses("Read")], "plan_ready"),
        ("plan_ready", [ANSWER], ""),
        ("", [uses("AskUserQuestion"), ANSWER, uses("ExitPlanMode")], "plan_ready"),
        ("needs_input", [uses("ExitPlanMode"), ANSWER], ""),
    ],
)
def test_tools_begin_a_phase_and_an_answer_ends_it(before: str, lines: list[str], phase: str) -> None:
    assert next_phase(before, lines) == phase


@pytest.mark.req("K-03")
@pytest.mark.parametrize(
    ("phase", "state", "shown"),
    [
        ("", RemoteState.RUNNING, ""),
        ("", RemoteState.NEEDS_INPUT, "needs_input"),
        ("plan_ready", RemoteState.NEEDS_INPUT, "plan_ready"),
        ("plan_ready", RemoteState.RUNNING, "plan_ready"),
    ],
)
def test_a_session_that_waits_needs_input_unless_its_plan_is_ready(phase: str, state: RemoteState, shown: str) -> None:
    assert visible_phase(phase, state) == shown


def test_the_plan_is_the_last_one_that_was_shown() -> None:
    assert extract_plan([uses("ExitPlanMode", plan="one"), "x", uses("ExitPlanMode", plan=" two ")]) == "two"
    assert extract_plan(["x"]) == ""
