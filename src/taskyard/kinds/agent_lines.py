"""Lines of a transcript, as the engines write them. Pure."""

from __future__ import annotations

import re

from taskyard.shapes import as_list, as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def spoken(line: Mapping[str, object]) -> str:
    """What the agent says in a line; nothing if it is about something else."""
    if line.get("type") != "assistant":
        return ""
    if isinstance(text := line.get("text"), str):
        return text
    content = as_list((as_object(line.get("message")) or {}).get("content")) or []
    blocks = [(as_object(raw) or {}).get("text") for raw in content]
    return "\n".join(each for each in blocks if isinstance(each, str))


def session_in(line: Mapping[str, object]) -> str | None:
    """What an engine calls the conversation, where it says so as it begins."""
    named = line.get("session_id")
    is_beginning = line.get("type") == "system" and line.get("subtype") == "init"
    return named if is_beginning and isinstance(named, str) and is_session(named) else None


def is_session(text: str) -> bool:
    """Whether it can be the name of a conversation: nothing that a program would take for an option or a path."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", text, re.ASCII) is not None
