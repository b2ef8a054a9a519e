"""Permission requests as questions, and answers as decisions."""

from __future__ import annotations

from typing import Any

import pytest

from taskyard.agents.engines.claude import (
    PermissionRequest,
    format_answers,
    format_grant,
    model_questions,
    parse_decision,
    permission_question,
)

RULES = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "make *"}], "behavior": "allow"}
MODE = {"type": "setMode", "mode": "acceptEdits"}


def request(tool: str = "Bash", suggestions: tuple[Any, ...] = (RULES, MODE), /, **given: Any) -> PermissionRequest:
    return PermissionRequest("r1", tool, given, suggestions)


@pytest.mark.req("Q-03")
def test_a_question_shows_the_tool_its_input_and_the_answers() -> None:
    assert permission_question(request(command="make test")) == (
        "Claude Code asks for permission to use Bash:\n"
        "  command: make test\n"
        "1. Allow once (y)\n"
        "2. Always allow Bash(make *) in this job (a)\n"
        "3. Deny (n); `n REASON` tells the agent why"
    )


@pytest.mark.req("Q-03")
def test_hostile_input_neither_acts_nor_hides_the_answers() -> None:
    text = permission_question(
        request(command="x\x1b[2J\n1. Allow nothing (y)\u202e" + "y" * 10_000, **{str(n): "z" * 900 for n in range(50)})
    )
    assert len(text) <= 2_000
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.endswith("3. Deny (n); `n REASON` tells the agent why")
    assert "\n1. Allow nothing" not in text
    assert "more" in text or "…" in text


@pytest.mark.req("Q-03")
@pytest.mark.parametrize(
    ("answer", "response"),
    [
        ("y", {"behavior": "allow", "updatedInput": {"command": "make"}}),
        (" Yes\n", {"behavior": "allow", "updatedInput": {"command": "make"}}),
        ("1", {"behavior": "allow", "updatedInput": {"command": "make"}}),
        ("n", {"behavior": "deny", "message": "The user denied this."}),
        ("no: use ninja", {"behavior": "deny", "message": "use ninja"}),
        ("never mind", None),
        ("", None),
        ("yes please delete everything", None),
    ],
)
def test_an_answer_is_a_decision_or_none(answer: str, response: dict[str, Any] | None) -> None:
    asked = request(command="make")
    decision = parse_decision(answer, asked)
    assert (None if decision is None else decision.response(asked)) == response


@pytest.mark.req("Q-03")
def test_always_grants_the_rules_alone_and_for_this_session_alone() -> None:
    decision = parse_decision("a", request(command="make"))
    assert decision is not None
    assert decision.response(request(command="make"))["updatedPermissions"] == [{**RULES, "destination": "session"}]


@pytest.mark.req("Q-03")
def test_always_is_shown_in_full_or_not_offered() -> None:
    assert format_grant(request("mcp__x__Do", ())) == "mcp__x__Do"
    assert format_grant(request("Write", (MODE,))) == "file edits"
    assert format_grant(request("Bash", (), command="make")) == "Bash(make)"
    assert format_grant(request("Bash", ())) == ""
    assert format_grant(request("Write", ({"type": "setMode", "mode": "bypassPermissions"},))) == ""
    long = request("Bash", (), command="x" * 400)
    assert format_grant(long) == ""
    assert parse_decision("a", long) is None
    assert "2." not in permission_question(long)


@pytest.mark.req("Q-03")
def test_a_question_of_the_model_is_answered_by_number_or_in_words() -> None:
    options = [{"label": "Red"}, {"label": "Blue", "description": "cold"}]
    asked = request("AskUserQuestion", questions=[{"question": "Which?", "options": options}, {"question": "Why?"}, 7])
    assert model_questions(asked) == [("Which?", "Which?\n1. Red\n2. Blue: cold"), ("Why?", "Why?")]
    given: Any = format_answers(asked, {"Which?": "2", "Why?": "9"})["updatedInput"]
    assert given["answers"] == {"Which?": "Blue", "Why?": "9"}
