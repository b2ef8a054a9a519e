"""
What an agent said and did, as parts: speech is text, the rest is data.

Unless its skill says otherwise, callers see that a tool was used and not what it was given: that may be anything of
this machine's. The prompt is left out; it is theirs, and hooks may have added to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from a2a.types.a2a_pb2 import Part
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.struct_pb2 import Value

from taskyard.kinds.agent_lines import spoken
from taskyard.runtime.output import Output
from taskyard.shapes import as_list, as_object, as_text

#: Bytes of a transcript that are told at once.
PAGE = 1_000_000

#: Kinds of lines whose text callers see; speech is passed on as it is.
_TEXTS = ("question", "answer", "user")


class Told(NamedTuple):
    """A stretch of a transcript."""

    parts: list[Part]
    offset: int
    next: int  #: where to go on
    more: bool = False  #: more is there already


def told(output: Output, offset: int, *, whole: bool) -> Told:
    """What was said from `offset` on, as far as its lines are complete; `whole`: with all that is known of it."""
    part = output.read(offset, PAGE)
    text, is_full = part.text, len(part.text) >= PAGE
    end = text.rfind(b"\n") + 1
    if not end and is_full:  # a line that nobody reads; what is left of it is no JSON, and is passed over
        return Told([_data({"type": "omitted", "bytes": len(text)})], offset, part.next_offset, more=True)
    parts = [each for line in text[:end].splitlines() for each in shown(line, whole=whole)]
    return Told(parts, offset, part.offset + end, more=is_full)


def latest(output: Output, *, whole: bool) -> Told:
    """The end of a transcript, from its beginning where it is short."""
    return told(output, max(output.end() - PAGE + 1, 0), whole=whole)


def shown(line: bytes, *, whole: bool) -> list[Part]:
    """What callers see of a line."""
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        found = None
    if found is None or found.get("type") == "prompt":
        return []
    text = spoken(found)
    parts = [Part(text=text if text.endswith("\n") else f"{text}\n")] if text else []
    is_plain_speech = found.keys() <= {"type", "text", "at"} and found.get("type") == "assistant"
    if whole:
        return parts if is_plain_speech else [_data(found)]
    return [*parts, *(_data(each) for each in _outlines(found))]


def _outlines(line: Mapping[str, object]) -> list[dict[str, object]]:
    """What a line tells beside speech, without what tools were given or gave."""
    kind = line.get("type")
    if kind == "tool_use":
        return [{"type": "tool_use", "name": as_text(line.get("name"))}]
    if kind in _TEXTS:
        return [{"type": kind, "text": as_text(line.get("text"))}]
    content = as_list((as_object(line.get("message")) or {}).get("content")) or []
    blocks = [as_object(raw) or {} for raw in content] if kind == "assistant" else []
    return [
        {"type": "tool_use", "name": as_text(each.get("name"))} for each in blocks if each.get("type") == "tool_use"
    ]


def _data(value: Mapping[str, object]) -> Part:
    try:
        return Part(data=ParseDict(dict(value), Value()))
    except (ParseError, ValueError):
        return Part(data=ParseDict({"type": "omitted", "bytes": 0}, Value()))  # a number or a depth that has no name
