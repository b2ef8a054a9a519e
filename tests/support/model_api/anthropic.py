"""The Messages API of Anthropic."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

from support.model_api.script import Call, Calls, Cut, Fail, Hang, Limit, Reply, Say, Step, Usage

_number = count(1)

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_WORDS = {
    429: "This request would exceed your account's rate limit. Please try again later.",
    500: "Internal server error",
    529: "Overloaded",
}


def reply(step: Step, body: Any) -> Reply:
    """A step in its words."""
    if isinstance(step, Limit):
        until = int(time.time()) + step.seconds
        headers = {
            "retry-after": str(step.seconds),
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(until),
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-5h-status": "rejected",
            "anthropic-ratelimit-unified-5h-reset": str(until),
            "anthropic-ratelimit-unified-overage-status": "rejected",
            "anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
        }
        return _error(429, "This request would exceed your account's rate limit. Please try again later.", headers)
    if isinstance(step, Fail):
        return _error(step.status, step.message, dict(step.headers))
    if isinstance(step, (Cut, Hang)) and not body.get("stream"):
        return Reply(then="cut" if isinstance(step, Cut) else "hang")
    message = _message(step, body)
    if body.get("stream"):
        return _stream(step, message)
    return Reply(body=message)


def side(body: Any) -> Reply:
    """What is asked beside the work: a title, a summary."""
    return reply(Say("ok", Usage(1, 1)), body)


def count_tokens(body: Any) -> Reply:
    return Reply(body={"input_tokens": 1000})


def _error(status: int, message: str, headers: dict[str, str]) -> Reply:
    error = {"type": _KINDS.get(status, "api_error"), "message": message or _WORDS.get(status, "It failed.")}
    return Reply(status, headers, {"type": "error", "error": error, "request_id": "req_1"})


def _message(step: Say | Call | Calls | Cut | Hang, body: Any) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if isinstance(step, (Say, Cut, Hang)):
        content.append({"type": "text", "text": step.text})
    else:
        if step.text:
            content.append({"type": "text", "text": step.text})
        for call in step.calls:
            content.append(
                {"type": "tool_use", "id": f"toolu_{next(_number):06d}", "name": call.tool, "input": call.given}
            )
    usage = step.usage if isinstance(step, (Say, Call, Calls)) else Usage()
    return {
        "id": f"msg_{next(_number):06d}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "claude"),
        "content": content,
        "stop_reason": "end_turn" if isinstance(step, Say) else "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input - usage.cached,
            "cache_read_input_tokens": usage.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": usage.output,
        },
    }


def _stream(step: Step, message: dict[str, Any]) -> Reply:
    import json

    events: list[tuple[str, object]] = []

    def add(kind: str, **fields: object) -> None:
        events.append((kind, {"type": kind, **fields}))

    first = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    add("message_start", message=first)
    for at, block in enumerate(message["content"]):
        if block["type"] == "text":
            add("content_block_start", index=at, content_block={"type": "text", "text": ""})
            add("content_block_delta", index=at, delta={"type": "text_delta", "text": block["text"]})
        else:
            add("content_block_start", index=at, content_block={**block, "input": {}})
            partial = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            add("content_block_delta", index=at, delta=partial)
        if isinstance(step, (Cut, Hang)):
            return Reply(events=tuple(events), then="cut" if isinstance(step, Cut) else "hang")
        add("content_block_stop", index=at)
    add("message_delta", delta={"stop_reason": message["stop_reason"], "stop_sequence": None}, usage=message["usage"])
    add("message_stop")
    return Reply(events=tuple(events))
