"""
What an agent says, as lines: its messages and artifacts, each part once. Pure.

    text            as it is; parts of one artifact follow each other without a break, as they are streamed
    data            a line of JSON
    a file          a line of JSON that says what it is, without its content

Of an artifact that still grows, half a line is kept back until its end comes, or until the task is over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from a2a.types.a2a_pb2 import Artifact, Message, Part, Role, Task
from google.protobuf.json_format import MessageToDict, MessageToJson

from taskyard.remote.a2a.cursor import MOST_MESSAGES, Cursor, Piece, digest
from taskyard.shapes import as_list, as_object

#: Whole numbers up to here are exact.
_EXACT = 1 << 53


def text_of(parts: Iterable[Part]) -> str:
    """What parts say, one after the other; a longer list of the same begins with the same text."""
    told = ""
    for part in parts:
        if part.HasField("text"):
            told += part.text
            continue
        told += "\n" if told and not told.endswith("\n") else ""
        told += json.dumps(_value(part), ensure_ascii=False, sort_keys=True) + "\n"  # keys come in any order
    return told


def news(task: Task, cursor: Cursor, *, is_over: bool) -> tuple[str, Cursor]:
    """What a task said since, as whole lines, and how far that is."""
    told: list[str] = []
    said = dict.fromkeys(cursor.said)
    for message in _messages(task):
        mark = _mark(message)
        if mark not in said:
            said[mark] = None
            told.append(ended(text_of(message.parts)))
    pieces = dict(cursor.pieces)
    for artifact in task.artifacts:
        name = digest(artifact.artifact_id)
        text, pieces[name] = _rest(artifact, pieces.get(name), is_over=is_over)
        told.append(text)
    return "".join(told), Cursor(tuple(said)[-MOST_MESSAGES:], pieces, cursor.offset)


def ended(text: str) -> str:
    """A text whose last line is whole."""
    return text if not text or text.endswith("\n") else text + "\n"


def plain(value: object) -> object:
    """JSON with whole numbers as such: the protocol's data knows none."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if (fields := as_object(value)) is not None:
        return {name: plain(each) for name, each in fields.items()}
    several = as_list(value)
    return value if several is None else [plain(each) for each in several]


def _rest(artifact: Artifact, heard: Piece | None, *, is_over: bool) -> tuple[str, Piece]:
    """What an artifact says beyond what was heard of it; all of it, if it was replaced."""
    text = text_of(artifact.parts)
    text = ended(text) if is_over else text[: text.rfind("\n") + 1]
    start = heard.length if heard is not None and digest(text[: heard.length]) == heard.digest else 0
    return text[start:], Piece(len(text), digest(text))


def _messages(task: Task) -> list[Message]:
    """What the agent said, oldest first: what it says with its state is not part of the history yet."""
    everything = [*task.history, task.status.message] if task.status.HasField("message") else task.history
    return [message for message in everything if message.role == Role.ROLE_AGENT]


def _mark(message: Message) -> str:
    return digest(message.message_id or MessageToJson(message, sort_keys=True))


def _value(part: Part) -> object:
    """A part that is no text, as JSON."""
    if part.HasField("data"):
        return plain(MessageToDict(part.data))
    told: dict[str, object] = {"type": "file", "name": part.filename, "media_type": part.media_type}
    if part.HasField("url"):
        told["url"] = part.url
    if part.HasField("raw"):
        told["bytes"] = len(part.raw)
    return {name: value for name, value in told.items() if value != ""}
