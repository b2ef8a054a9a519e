"""
How far an agent was heard, as text that another process goes on with. Pure.

    said       digests of the messages that were passed on, the latest ones
    pieces     for each artifact: how many characters of it were passed on, and the digest of those
    offset     where our own server goes on (`since`)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from taskyard.shapes import as_list, as_object

#: Messages that are remembered, and asked for: an agent that says more between two polls is not heard out.
MOST_MESSAGES = 1_000

#: Hexadecimal digits of a digest: among a thousand, two are the same once in 10^9 sessions.
_DIGITS = 12


class Piece(NamedTuple):
    """As much of an artifact as was passed on."""

    length: int
    digest: str


class Cursor(NamedTuple):
    """How far it was heard."""

    said: tuple[str, ...] = ()
    pieces: Mapping[str, Piece] = {}
    offset: int = 0

    def __str__(self) -> str:
        pieces = {name: [piece.length, piece.digest] for name, piece in self.pieces.items()}
        fields = {"said": list(self.said), "pieces": pieces, "offset": self.offset}
        return json.dumps({name: value for name, value in fields.items() if value}, separators=(",", ":"))


def parsed(text: str) -> Cursor:
    """The cursor in a text; one that cannot be read is the beginning."""
    try:
        found = as_object(json.loads(text or "{}")) or {}
    except ValueError:
        found = {}
    said = tuple(each for each in as_list(found.get("said")) or () if isinstance(each, str))
    pieces: dict[str, Piece] = {}
    for name, raw in (as_object(found.get("pieces")) or {}).items():
        match as_list(raw):
            case [int(length), str(digest)]:
                pieces[name] = Piece(length, digest)
            case _:
                pass
    offset = found.get("offset")
    return Cursor(said, pieces, offset if isinstance(offset, int) else 0)


def digest(text: str) -> str:
    """What stands for a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
