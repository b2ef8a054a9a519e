"""Whether the end of an output reads like a prompt: by the words of a question, or as a line that is not ended."""

from __future__ import annotations

import re

_ANYWHERE = re.compile(r"\(y/n\)|\[y/n\]|\(yes/no\)|press (?:any key|enter)|continue\?|overwrite\?", re.IGNORECASE)
_AT_THE_END = re.compile(r"\b(?:do you|would you|shall i|are you sure)\b[^\n]*\?\s*$", re.IGNORECASE)

#: What a terminal is told between the characters of a prompt: colours, cursor moves, its title. Compiled when needed:
#: most supervisors never are.
_CONTROL = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*|\x1b.|[\x00-\x09\x0b-\x1f]"

#: How much of the end is looked at.
TAIL = 1024


def looks_like_a_question(tail: str) -> bool:
    """Whether a job that printed this last, and then nothing for long, seems to wait for an answer."""
    tail = tail[-TAIL:]
    return _ANYWHERE.search(tail) is not None or _AT_THE_END.search(tail) is not None


def ends_without_newline(tail: str) -> bool:
    """Whether the last line holds text and no newline, as a prompt does: `Password: `, `package name: (a) `."""
    return bool(re.sub(_CONTROL, "", tail[-TAIL:]).rpartition("\n")[2].strip())
