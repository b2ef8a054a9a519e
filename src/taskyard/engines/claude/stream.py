"""What the lines of Claude Code say: progress, usage, and the outcome of a turn."""

from __future__ import annotations

import json

from taskyard.clock import now_ms
from taskyard.engines.claude import limits
from taskyard.engines.claude.usage import Usage
from taskyard.engines.engine import Said
from taskyard.harmless import safe
from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.engines.engine import Watcher

#: Names of refused tools that are kept, and characters of one.
_MOST_REFUSED, _LONGEST_NAME = 20, 100

#: Lines that show that the model works: after a result, that another turn began.
_WORK = frozenset({"assistant", "stream_event", "user", "control_request"})


class Stream:
    """The conversation of one run."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._usage = Usage(watcher)
        self._refused: dict[str, None] = {}
        self._error_line: Mapping[str, object] = {}  # the latest message that stands for an error of the API
        self._resets_ms: int | None = None  # of a quota that rejects requests
        self.session = ""  #: the conversation's name, to resume it
        self.is_working = True  #: a turn is under way
        self.said: Said | None = None  #: the outcome of the latest turn

    def hear(self, line: str) -> Mapping[str, object]:
        """Take in a line; the message in it, empty if it is none."""
        message = _message(line)
        if message is None:
            self._watcher.record({"type": "stdout", "text": line})
            return {}
        kind = as_text(message.get("type"))
        if kind != "stream_event":  # the same again, in pieces
            self._watcher.record(message)
        if kind in _WORK:
            self.is_working = True
        act = _ACTS.get(kind)
        if act is not None:
            act(self, message)
        return message

    def _spoke(self, message: Mapping[str, object]) -> None:
        inner = as_object(message.get("message")) or {}
        self._usage.message(inner, is_main=not message.get("parent_tool_use_id"))
        if message.get("is_api_error_message") is True or as_text(message.get("error")):
            self._error_line = message
        elif inner:
            self._error_line = {}
        for raw in as_list(inner.get("content")) or []:
            block = as_object(raw) or {}
            if block.get("type") == "tool_use":
                self._watcher.used_tool(as_text(block.get("name")) or "tool", as_object(block.get("input")) or {})

    def _streamed(self, message: Mapping[str, object]) -> None:
        event = as_object(message.get("event")) or {}
        is_main = not message.get("parent_tool_use_id")
        self._usage.event(event, as_text(message.get("api_message_id")), is_main=is_main)

    def _system(self, message: Mapping[str, object]) -> None:
        subtype = message.get("subtype")
        if subtype == "init":
            self.session = as_text(message.get("session_id"))
            self.is_working = True
        elif subtype == "permission_denied":
            self._refuse(message.get("tool_name"))
        elif subtype == "api_retry":
            self._retries(message)

    def _retries(self, message: Mapping[str, object]) -> None:
        """The program waits by itself: a limit is shown as such."""
        status, delay = message.get("error_status"), message.get("retry_delay_ms")
        kind = as_text(message.get("error"))
        fault = limits.Fault("", status if type(status) is int else None, (kind,) if kind else ())
        if limits.judge(fault, now_ms=now_ms()).rate_limit is not None:
            seconds = delay / 1000 if isinstance(delay, (int, float)) and 0 <= delay < 1e9 else 0.0
            self._watcher.limited(seconds, f"{kind or 'rate limit'} ({status}), the agent retries")

    def _quota(self, message: Mapping[str, object]) -> None:
        self._resets_ms = limits.rejected_until(as_object(message.get("rate_limit_info")) or message)

    def _ended(self, message: Mapping[str, object]) -> None:
        self.is_working = False
        self._usage.result(message)
        for raw in as_list(message.get("permission_denials")) or []:
            self._refuse((as_object(raw) or {}).get("tool_name"))
        refused = tuple(self._refused)
        self._refused = {}
        text = as_text(message.get("result"))
        is_failed = message.get("is_error") is True or as_text(message.get("subtype")).startswith("error")
        if not is_failed and message.get("terminal_reason") != "api_error":
            self.said = Said(text, refused=refused)
            return
        fault = limits.fault_of(message, self._error_line, self._resets_ms)
        verdict = limits.judge(fault, now_ms=now_ms())
        self.said = Said(
            error=fault.text, is_retryable=verdict.is_retryable, rate_limit=verdict.rate_limit, refused=refused
        )

    def _refuse(self, name: object) -> None:
        if isinstance(name, str) and name and len(self._refused) < _MOST_REFUSED:
            self._refused[safe(name)[:_LONGEST_NAME]] = None


_ACTS = {
    "assistant": Stream._spoke,  # pyright: ignore[reportPrivateUsage]
    "stream_event": Stream._streamed,  # pyright: ignore[reportPrivateUsage]
    "system": Stream._system,  # pyright: ignore[reportPrivateUsage]
    "rate_limit_event": Stream._quota,  # pyright: ignore[reportPrivateUsage]
    "result": Stream._ended,  # pyright: ignore[reportPrivateUsage]
}


def _message(line: str) -> dict[str, object] | None:
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
