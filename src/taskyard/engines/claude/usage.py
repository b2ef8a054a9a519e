"""Tokens and cost of one run of Claude Code."""

from __future__ import annotations

from taskyard.shapes import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.engines.engine import Watcher

#: Messages whose tokens are remembered; only the latest few can still be repeated.
_REMEMBERED = 1_000


class Usage:
    """Counts each message once.

    The program prints one `assistant` line per content block and repeats the message's usage on each, with the output
    tokens known when the message began. `stream_event` lines bring the final count; the `result` line has the sum.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._output: dict[str, int] = {}  # counted so far, by message id
        self._current = ""  # the message that stream events without an id belong to
        self._in_turn = 0  # output tokens counted since the last result
        self._cost = 0.0

    def message(self, message: Mapping[str, object], *, is_main: bool) -> None:
        """Count a message, or what is new of it. Only the main conversation's input is its size."""
        usage = as_object(message.get("usage"))
        if usage is None:
            return
        known = as_text(message.get("id"))
        seen = self._output.get(known) if known else None
        output = _count(usage.get("output_tokens"))
        new = max(output - (seen or 0), 0)
        if known:
            if len(self._output) >= _REMEMBERED:
                del self._output[next(iter(self._output))]
            self._output[known] = max(output, seen or 0)
        if seen is None and is_main:
            self._tell({**usage, "output_tokens": new})
        elif new:
            self._tell({"output_tokens": new})

    def event(self, event: Mapping[str, object], message_id: str, *, is_main: bool) -> None:
        """Count what an event of the model's stream says."""
        kind = event.get("type")
        if kind == "message_start":
            message = as_object(event.get("message")) or {}
            self._current = as_text(message.get("id"))
            self.message(message, is_main=is_main)
        elif kind == "message_delta" and (known := message_id or self._current) in self._output:
            output = _count((as_object(event.get("usage")) or {}).get("output_tokens"))
            self.message({"id": known, "usage": {"output_tokens": output}}, is_main=False)

    def result(self, result: Mapping[str, object]) -> None:
        """Count what the lines left out, and the cost: the sums of a result are exact."""
        models = as_object(result.get("model_usage_since_last_result"))
        if models is not None:  # subagents and side requests included, earlier runs of the conversation not
            each = [as_object(model) or {} for model in models.values()]
            output = sum(_count(model.get("outputTokens")) for model in each)
            self._cost += sum(_dollars(model.get("costUSD")) for model in each)
        else:
            output = _count((as_object(result.get("usage")) or {}).get("output_tokens"))
            self._cost = _dollars(result.get("total_cost_usd"))
        if (missing := output - self._in_turn) > 0:
            self._tell({"output_tokens": missing})
        self._in_turn = 0
        if models is not None or "total_cost_usd" in result:
            self._watcher.costs(self._cost)

    def _tell(self, usage: Mapping[str, object]) -> None:
        self._in_turn += _count(usage.get("output_tokens"))
        self._watcher.used_tokens(usage)


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _dollars(value: object) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < float("inf") else 0.0  # type: ignore[arg-type, operator]  # is_number
