"""What sessions say, line by line: messages in JSON as agents print them, or plain text. Pure."""

from __future__ import annotations

import json

from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Message = Mapping[str, object]


def messages_in(lines: Iterable[str]) -> Iterator[Message]:
    """Those lines that are messages."""
    for line in lines:
        if (message := message_in(line)) is not None:
            yield message


def message_in(line: str) -> Message | None:
    """The message in a line; None if it is plain text."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None


def spoken(message: Message) -> str:
    """What an agent says in a message; "" if it is about something else."""
    if message.get("type") != "assistant":
        return ""
    if text := as_text(message.get("text")):
        return text
    content = (as_object(message.get("message")) or message).get("content")
    if isinstance(content, str):
        return content
    return "".join(as_text(block.get("text")) for block in _blocks(message) if block.get("type") == "text")


def used(message: Message) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The tools that an agent uses in a message, each with what it is given."""
    for block in _blocks(message):
        if message.get("type") == "assistant" and block.get("type") == "tool_use":
            yield as_text(block.get("name")), as_object(block.get("input")) or {}


def answer_in(lines: Iterable[str]) -> str:
    """The final answer in what was said: the last result, else what an agent said last; "" if nothing is either."""
    result = last = ""
    for message in messages_in(lines):
        if message.get("type") == "result":
            result = as_text(message.get("result")) or as_text(message.get("text")) or result
        last = spoken(message) or last
    return (result or last).strip()


def _blocks(message: Message) -> Iterator[Mapping[str, object]]:
    content = as_list((as_object(message.get("message")) or message).get("content")) or []
    for raw in content:
        if (block := as_object(raw)) is not None:
            yield block
