"""
A message to an agent that works, as one line of its job's input: whatever is in it, and from whom.

    {"type": "message", "from": "ada", "text": "…"}

What people type (`taskyard send JOB TEXT`) is a message too, a line each, from nobody in particular. Pure.
"""

from __future__ import annotations

import json

from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

_TYPE = "message"


class Received(NamedTuple):
    """What an agent is told while it works."""

    text: str
    sender: str = ""

    def __str__(self) -> str:
        return f"Message from {self.sender}: {self.text}" if self.sender else self.text


def as_line(sender: str, text: str) -> str:
    """A message as it is sent."""
    return json.dumps({"type": _TYPE, "from": sender, "text": text}) + "\n"


def received(line: str) -> Received:
    """The message in a line; one that is none of ours is taken as it is."""
    if line.startswith('{"type": "message"'):
        try:
            found = as_object(json.loads(line))
        except (ValueError, RecursionError):
            found = None
        match found or {}:
            case {"type": "message", "from": str(sender), "text": str(text), **more} if not more:
                return Received(text, sender)
            case _:
                pass
    return Received(line)
