"""How far an agent is, in numbers."""

from __future__ import annotations

import pytest

from taskyard.agents.engines.engine import Progress


@pytest.mark.req("K-02")
def test_tokens_are_the_latest_input_with_its_cache_and_all_output() -> None:
    first = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 7}
    second = {"input_tokens": 20, "cache_read_input_tokens": 115, "output_tokens": 3}
    progress = Progress().used_tokens(first).used_tokens(second)
    assert progress.tokens == 20 + 115 + 7 + 3


@pytest.mark.req("K-02")
def test_the_last_five_activities_are_remembered() -> None:
    progress = Progress()
    for number in range(8):
        progress = progress.used_tool("Edit", {"file": f"{number}.py"})
    told = progress.to_json()
    assert told["toolUseCount"] == 8
    assert told["lastActivity"] == {"toolName": "Edit", "input": {"file": "7.py"}}
    assert [one["input"]["file"] for one in progress.to_json()["recentActivities"]] == [  # type: ignore[attr-defined]
        "3.py", "4.py", "5.py", "6.py", "7.py",
    ]  # fmt: skip


@pytest.mark.req("K-02")
@pytest.mark.parametrize("usage", [{}, {"input_tokens": "many"}, {"output_tokens": -5}, {"input_tokens": True}])
def test_what_is_no_number_of_tokens_counts_nothing(usage: dict[str, object]) -> None:
    assert Progress().used_tokens(usage).tokens == 0


def test_what_a_tool_was_given_is_kept_short() -> None:
    progress = Progress().used_tool("Write", {"content": "x" * 10_000, "lines": [1, 2], "n": 3})
    given = progress.recent[0]["input"]
    assert isinstance(given, dict)
    assert len(given["content"]) == 500
    assert (given["lines"], given["n"]) == ("[1, 2]", 3)
