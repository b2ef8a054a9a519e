"""The Gemini API of Google."""

from __future__ import annotations

from typing import Any

from support.model_api.script import Cut, Fail, Hang, Limit, Reply, Say, Step, Usage

_KINDS = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
_WORDS = {
    429: "Resource has been exhausted (e.g. check quota).",
    503: "The model is overloaded. Please try again later.",
}

_TYPES = "type.googleapis.com/google.rpc"


def reply(step: Step, *, is_stream: bool) -> Reply:
    """A step in its words."""
    if isinstance(step, Limit):
        violation = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_requests_per_model",
            "quotaId": "GenerateRequestsPerDayPerProjectPerModel",
        }
        details = [
            {"@type": f"{_TYPES}.QuotaFailure", "violations": [violation]},
            {"@type": f"{_TYPES}.RetryInfo", "retryDelay": f"{step.seconds}s"},
        ]
        words = f"You exceeded your current quota. Please retry in {step.seconds}.5s."
        return Reply(429, {}, {"error": {"code": 429, "message": words, "status": _KINDS[429], "details": details}})
    if isinstance(step, Fail):
        words = step.message or _WORDS.get(step.status, "An internal error has occurred.")
        error = {"code": step.status, "message": words, "status": _KINDS.get(step.status, "UNKNOWN")}
        return Reply(step.status, dict(step.headers), {"error": error})
    made = _response(step)
    if not is_stream:
        return Reply(body=made)
    if isinstance(step, (Cut, Hang)):
        del made["candidates"][0]["finishReason"]
        return Reply(events=(("", made),), then="cut" if isinstance(step, Cut) else "hang")
    return Reply(events=(("", made),))


def side(*, is_stream: bool) -> Reply:
    """What is asked beside the work: which model to route to, whether the agent goes in circles."""
    return reply(Say('{"complexity_reasoning": "simple", "complexity_score": 1}', Usage(1, 1)), is_stream=is_stream)


def count_tokens() -> Reply:
    return Reply(body={"totalTokens": 1000})


def _response(step: Step) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if text := getattr(step, "text", ""):
        parts.append({"text": text})
    for call in getattr(step, "calls", ()):
        parts.append({"functionCall": {"name": call.tool, "args": call.given}})
    usage = getattr(step, "usage", Usage())
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": usage.input,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output,
        },
        "modelVersion": "gemini",
        "responseId": "r1",
    }
