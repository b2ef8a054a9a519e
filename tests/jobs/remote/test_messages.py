"""What sessions say, understood where it is a message, and left alone where it is not."""

from __future__ import annotations

import json

import pytest

from taskyard.jobs.remote.backend import assistant_text, final_answer

TEXT = {"type": "assistant", "message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (TEXT, "ab"),
        ({"type": "assistant", "text": "x"}, "x"),
        ({"type": "assistant", "message": {"content": "y"}}, "y"),
        ({"type": "assistant", "content": [{"type": "text", "text": "z"}]}, "z"),
        ({"type": "user", "text": "x"}, ""),
        ({"type": "assistant", "message": {"content": [{"type": "tool_use", "text": "x"}, 7]}}, ""),
    ],
)
def test_what_an_agent_says_is_found(message: dict[str, object], said: str) -> None:
    assert assistant_text(message) == said


@pytest.mark.req("K-03")
@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["plain", "{"], ""),
        ([json.dumps(TEXT), "plain"], "ab"),
        ([json.dumps({"type": "result", "result": "done"}), json.dumps(TEXT)], "done"),
        ([json.dumps({"type": "result", "text": "short"})], "short"),
    ],
)
def test_the_last_result_is_the_answer_else_what_was_said_last(lines: list[str], answer: str) -> None:
    assert final_answer(lines) == answer
