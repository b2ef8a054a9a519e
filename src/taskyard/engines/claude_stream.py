"""
Agents that print their conversation as Claude Code does: `claude-stream`.

`claude -p --output-format stream-json` and those that speak alike: a line of JSON for each message, and a last one of
type `result`. A stream that breaks off without one was cut: that is a failure, which may go well another time.
"""

from __future__ import annotations

import json

from taskyard.engines.engine import Said
from taskyard.engines.load import is_load
from taskyard.engines.process import Program
from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.engines.engine import Brief, Watcher

#: What is run if no program is named.
DEFAULT = ("claude",)

#: What makes it speak so; the prompt comes on stdin.
ARGUMENTS = ("-p", "--output-format", "stream-json", "--verbose")


class ClaudeStream:
    """A command line that streams JSON messages."""

    def check(self, brief: Brief) -> None:
        """Nothing is needed beyond the program, which is looked for when it is started."""

    async def work(self, brief: Brief, watcher: Watcher) -> Said:
        """Run it to its last message."""
        chosen = ("--model", brief.model) if brief.model else ()
        goes_on = ("--resume", brief.session) if brief.session else ()
        argv = [*(brief.command or DEFAULT), *ARGUMENTS, *chosen, *goes_on]
        try:
            program = await Program.start(argv, brief, watcher)
        except OSError as error:
            return Said(error=f"{argv[0]} cannot be started: {error.strerror}")
        async with program:
            program.feed(brief.prompt)
            result: Said | None = None
            async for line in program.lines():
                message = _message(line)
                watcher.record(message if message is not None else {"type": "stdout", "text": line})
                if message is not None:
                    result = _understood(message, watcher) or result
            code = await program.ended()
        if result is not None:
            return result
        words = f": {program.last_words}" if program.last_words else ""
        return Said(error=f"its stream broke off without a result (exit code {code}){words}", is_retryable=True)


def _understood(message: Mapping[str, object], watcher: Watcher) -> Said | None:
    """Tell of what a message says; the last word, if it is one."""
    kind = message.get("type")
    if kind == "assistant":
        inner = as_object(message.get("message")) or {}
        watcher.used_tokens(as_object(inner.get("usage")) or {})
        for raw in as_list(inner.get("content")) or []:
            block = as_object(raw) or {}
            if block.get("type") == "tool_use":
                watcher.used_tool(as_text(block.get("name")) or "tool", as_object(block.get("input")) or {})
        return None
    if kind != "result":
        return None
    if isinstance(usd := message.get("total_cost_usd"), (int, float)):
        watcher.costs(float(usd))
    text = as_text(message.get("result"))
    if message.get("is_error") is True or as_text(message.get("subtype")).startswith("error"):
        return Said(error=text or as_text(message.get("subtype")) or "it failed", is_retryable=is_load(text))
    return Said(text)


def _message(line: str) -> dict[str, object] | None:
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
