"""The Responses API of OpenAI."""

from __future__ import annotations

import json
import time
from itertools import count
from typing import Any

from support.model_api.script import Cut, Fail, Hang, Limit, Reply, Say, Step, Usage

_number = count(1)

_WORDS = {
    429: "Rate limit reached for requests",
    500: "The server had an error while processing your request",
    503: "The engine is currently overloaded, please try again later",
}


def reply(step: Step, body: Any) -> Reply:
    """A step in its words."""
    if isinstance(step, Limit):
        until = int(time.time()) + step.seconds
        error = {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "plan_type": "plus",
            "resets_at": until,
            "resets_in_seconds": step.seconds,
        }
        return Reply(429, {"x-codex-primary-used-percent": "100"}, {"error": error})
    if isinstance(step, Fail):
        kind = {429: "rate_limit_exceeded"}.get(step.status, "server_error")
        error = {"message": step.message or _WORDS.get(step.status, "It failed."), "type": kind, "code": kind}
        return Reply(step.status, dict(step.headers), {"error": error})
    made = _response(step, body)
    return _stream(step, made) if body.get("stream") else Reply(body=made)


def side(body: Any) -> Reply:
    """What is asked beside the work."""
    return reply(Say("ok", Usage(1, 1)), body)


def _response(step: Step, body: Any) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    text = getattr(step, "text", "")
    if text:
        content: list[dict[str, Any]] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
        item = {"type": "message", "id": f"msg_{next(_number)}", "role": "assistant", "status": "completed"}
        output.append({**item, "content": content})
    for call in getattr(step, "calls", ()):
        number = next(_number)
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
        if call.tool == "apply_patch" and "input" in call.given:  # a tool of free text
            item |= {"type": "custom_tool_call", "id": f"ctc_{number}", "name": call.tool, "input": call.given["input"]}
        elif "/" in call.tool:  # one of a namespace, as Codex groups those of an MCP server
            space, _, name = call.tool.partition("/")
            item |= {"namespace": space, "name": name, "arguments": json.dumps(call.given)}
        else:
            item |= {"name": call.tool, "arguments": json.dumps(call.given)}
        output.append(item)
    usage = getattr(step, "usage", Usage())
    return {
        "id": f"resp_{next(_number)}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": body.get("model", "gpt"),
        "output": output,
        "parallel_tool_calls": True,
        "tools": [],
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input + usage.output,
        },
    }


def _stream(step: Step, made: dict[str, Any]) -> Reply:
    events: list[tuple[str, object]] = []
    number = count()

    def add(kind: str, **fields: object) -> None:
        events.append((kind, {"type": kind, "sequence_number": next(number), **fields}))

    begun = {**made, "status": "in_progress", "output": [], "usage": None}
    add("response.created", response=begun)
    for at, item in enumerate(made["output"]):
        is_text = item["type"] == "message"
        empty: dict[str, object] = {"content": []} if is_text else {"arguments": ""}
        if item["type"] == "custom_tool_call":
            empty = {"input": ""}
        add("response.output_item.added", output_index=at, item={**item, **empty, "status": "in_progress"})
        if is_text:
            place = {"item_id": item["id"], "output_index": at, "content_index": 0}
            part = item["content"][0]
            add("response.content_part.added", **place, part={**part, "text": ""})
            add("response.output_text.delta", **place, delta=part["text"], logprobs=[])
            if isinstance(step, (Cut, Hang)):
                return Reply(events=tuple(events), then="cut" if isinstance(step, Cut) else "hang")
            add("response.output_text.done", **place, text=part["text"], logprobs=[])
            add("response.content_part.done", **place, part=part)
        elif item["type"] == "function_call":
            place = {"item_id": item["id"], "output_index": at}
            add("response.function_call_arguments.delta", **place, delta=item["arguments"])
            add("response.function_call_arguments.done", **place, arguments=item["arguments"])
        add("response.output_item.done", output_index=at, item=item)
    add("response.completed", response=made)
    return Reply(events=tuple(events))
