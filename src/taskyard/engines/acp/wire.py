"""The protocol's messages over a program's stdin and stdout, a line each: bounded, and whatever it prints survived."""

from __future__ import annotations

import json
import time
from typing import Any

from taskyard.engines.process import LONGEST_LINE, Program
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Watcher

#: Lines that are no message, before the program is taken to speak something else: a greeting or a warning is none.
_MOST_STRANGE = 200

#: Characters of such a line that are kept.
_LONGEST_STRANGE = 2_000

#: What JSON-RPC calls an error that has no better number.
_INTERNAL_ERROR = -32603


class Wire:
    """A connection, as the protocol's library wants one (`acp.connection.Transport`)."""

    def __init__(self, program: Program, watcher: Watcher) -> None:
        self._program = program
        self._lines = program.lines()
        self._watcher = watcher
        self._strange = 0
        self.heard_at = time.monotonic()
        self.fault = ""  #: why nothing more is read, if it is the program's fault

    async def send(self, message: dict[str, Any]) -> None:
        """Say something to it. One that is gone is noticed by whoever reads."""
        await self._program.say(json.dumps(message, separators=(",", ":")) + "\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when there will be none."""
        while (line := await anext(self._lines, None)) is not None:
            if (message := _message(line)) is not None:
                self.heard_at = time.monotonic()
                return message
            if line.strip():
                self._watcher.record({"type": "stdout", "text": line[:_LONGEST_STRANGE]})
                self._strange += 1
                self.fault = self._why(line)
            if self.fault:
                break
        return None

    async def close(self) -> None:
        """Nothing more is sent; the program itself is ended by whoever started it."""

    def _why(self, line: str) -> str:
        if len(line.encode("utf-8", "replace")) >= LONGEST_LINE:
            return f"it sent a message of more than {LONGEST_LINE:,} bytes"
        if self._strange > _MOST_STRANGE:
            return f"it does not speak the Agent Client Protocol: {line[:100]!r}"
        return ""


def _message(line: str) -> dict[str, Any] | None:
    """The message in a line, if it has the shape of one: the library trusts it from here on."""
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
    if found is None or not isinstance(found.get("method", ""), str):
        return None
    if not isinstance(found.get("id"), (int, str, type(None))) or isinstance(found.get("id"), bool):
        return None
    if "error" in found:
        found["error"] = _error(found["error"])
    return found


def _error(value: object) -> dict[str, object]:
    """An error as it should be, whatever it was."""
    given = as_object(value) or {}
    code, message = given.get("code"), given.get("message")
    if isinstance(code, int) and isinstance(message, str):
        return given
    return {"code": _INTERNAL_ERROR, "message": str(value)[:_LONGEST_STRANGE]}
