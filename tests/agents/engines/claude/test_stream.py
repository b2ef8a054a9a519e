"""Lines of Claude Code 2.1.325, as recorded, with what they tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from support.watching import Watched
from taskyard.agents.engines.claude import StreamParser
from taskyard.agents.engines.engine import Progress, TurnResult


class Counted(Watched):
    """A watcher that counts as jobs do."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = Progress()

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        self.progress = self.progress.used_tool(name, given)

    def used_tokens(self, usage: Mapping[str, object]) -> None:
        self.progress = self.progress.used_tokens(usage)


def heard(*messages: Any) -> tuple[Counted, StreamParser]:
    watched = Counted()
    stream = StreamParser(watched)
    for message in messages:
        stream.hear(message if isinstance(message, str) else json.dumps(message))
    return watched, stream


def usage(output: int, *, fresh: int = 100, cached: int = 0) -> dict[str, int]:
    return {"input_tokens": fresh, "output_tokens": output, "cache_read_input_tokens": cached}


def block(number: int, *content: dict[str, Any], parent: str | None = None, out: int = 1) -> dict[str, Any]:
    message = {"id": f"msg_{number}", "content": list(content), "usage": usage(out, fresh=100 * number)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def delta(number: int, output: int) -> dict[str, Any]:
    event = {"type": "message_delta", "usage": {"output_tokens": output}}
    return {"type": "stream_event", "event": event, "api_message_id": f"msg_{number}", "parent_tool_use_id": None}


def used(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": {"file_path": "x"}}


def result(text: str = "Done.", **fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, **fields}


def models(output: int, cost: float) -> dict[str, Any]:
    return {"claude-opus": {"inputTokens": 1, "outputTokens": output, "costUSD": cost}}


@pytest.mark.req("K-02")
def test_a_message_of_three_blocks_is_counted_once() -> None:
    text = {"type": "text", "text": "I will"}
    watched, _ = heard(block(1, text), block(1, used("Write")), block(1, used("Bash")), delta(1, 40))
    assert (watched.progress.tokens, watched.progress.tools) == (140, 2)


@pytest.mark.req("K-02")
def test_the_result_brings_what_the_lines_left_out() -> None:
    watched, stream = heard(
        block(1), block(2), result(model_usage_since_last_result=models(80, 0.5), total_cost_usd=9.0)
    )
    assert (watched.progress.tokens, watched.cost) == (280, 0.5)
    stream.hear(json.dumps(result("More.", model_usage_since_last_result=models(40, 0.25))))
    assert (watched.progress.tokens, watched.cost, stream.said) == (320, 0.75, TurnResult("More."))


@pytest.mark.req("K-02")
def test_an_older_program_counts_by_the_turn() -> None:
    watched, _ = heard(block(1, out=30), result(usage=usage(45), total_cost_usd=0.5))
    assert (watched.progress.tokens, watched.cost) == (145, 0.5)


@pytest.mark.req("K-02")
def test_a_subagents_input_is_not_the_size_of_the_conversation() -> None:
    watched, _ = heard(block(5), block(1, used("Read"), parent="toolu_1", out=20))
    assert (watched.progress.latest_input, watched.progress.output, watched.progress.tools) == (500, 21, 1)


@pytest.mark.req("Q-03")
def test_refused_tools_are_named_once_from_both_places() -> None:
    denied = {"type": "system", "subtype": "permission_denied", "tool_name": "Write"}
    denials = [{"tool_name": "Write"}, {"tool_name": "Bash\x1b"}, {"tool_name": 7}, 3]
    _, stream = heard(denied, result("I could not.", permission_denials=denials))
    assert stream.said == TurnResult("I could not.", refused=("Write", "Bash\\x1b"))
    assert stream.said is not None
    assert not stream.said.is_complete
    stream.hear(json.dumps(result("Now I could.")))
    assert stream.said == TurnResult("Now I could.")


@pytest.mark.req("Q-01")
def test_a_wait_of_the_program_for_a_limit_is_shown() -> None:
    retry = {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 2000}
    watched, _ = heard(
        {**retry, "error_status": 429, "error": "rate_limit"},
        {**retry, "retry_delay_ms": 521, "error_status": 529, "error": "overloaded"},
        {**retry, "error_status": 500, "error": "server_error"},
        {**retry, "error_status": 401, "error": "authentication_failed"},
    )
    assert watched.limits == [
        (2.0, "rate_limit (429), the agent retries"),
        (0.521, "overloaded (529), the agent retries"),
    ]


@pytest.mark.req("Q-01")
def test_a_rejected_quota_is_a_limit_until_its_reset() -> None:
    from taskyard.core.system import now_ms

    until = now_ms() // 1000 + 3600
    info = {"status": "rejected", "resetsAt": until, "rateLimitType": "five_hour", "isUsingOverage": False}
    spoken: dict[str, Any] = {
        "type": "assistant",
        "message": {"id": "x", "content": []},
        "error": "rate_limit",
        "api_error_status": 429,
    }
    text = "You've hit your 5-hour limit · resets 8am (UTC)"
    last = result(text, is_error=True, api_error_status=429, terminal_reason="api_error")
    _, stream = heard({"type": "rate_limit_event", "rate_limit_info": info}, spoken, last)
    assert stream.said is not None
    assert stream.said.rate_limit == ("anthropic", text, until * 1000)


def test_a_quota_that_rejects_is_no_limit_of_a_turn_that_succeeds() -> None:
    info = {"status": "rejected", "resetsAt": 1_900_000_000, "isUsingOverage": True}
    _, stream = heard({"type": "rate_limit_event", "rate_limit_info": info}, result())
    assert stream.said == TurnResult("Done.")


def test_a_result_counts_only_for_the_turn_it_ends() -> None:
    _, stream = heard(result())
    assert not stream.is_working
    stream.hear(json.dumps(block(2)))
    assert stream.is_working


@pytest.mark.parametrize(
    "line",
    [
        "no JSON", "[1]", '"x"', "{}", '{"type": 7}', '{"type": "assistant"}', '{"type": "assistant", "message": [1]}',
        '{"type": "result", "permission_denials": 7, "modelUsage": 3, "model_usage_since_last_result": {"x": 1}}',
        '{"type": "stream_event", "event": 3}', '{"type": "rate_limit_event", "rate_limit_info": []}',
        '{"type": "system", "subtype": "api_retry", "retry_delay_ms": "x", "error_status": "429"}',
        '{"type": "assistant", "message": {"id": 4, "usage": {"output_tokens": -5}, "content": {"a": 1}}}',
        '{"type": "result", "total_cost_usd": 1e999, "usage": {"output_tokens": 1e400}}', "[" * 100_000,
    ],
)  # fmt: skip
def test_any_line_is_survived(line: str) -> None:
    watched, _ = heard(line)
    assert watched.progress.tokens == 0
    assert not watched.cost
