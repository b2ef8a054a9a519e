"""Whether the end of an output reads like a question that waits for an answer."""

from __future__ import annotations

import re

_ANYWHERE = re.compile(r"\(y/n\)|\[y/n\]|\(yes/no\)|press (?:any key|enter)|continue\?|overwrite\?", re.IGNORECASE)
_AT_THE_END = re.compile(r"\b(?:do you|would you|shall i|are you sure)\b[^\n]*\?\s*$", re.IGNORECASE)

#: How much of the end is looked at.
TAIL = 1024


def looks_like_a_question(tail: str) -> bool:
    """Whether a job that printed this last, and then nothing for long, seems to wait for an answer."""
    tail = tail[-TAIL:]
    return _ANYWHERE.search(tail) is not None or _AT_THE_END.search(tail) is not None
