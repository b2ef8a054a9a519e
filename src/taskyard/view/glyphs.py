"""
How a state looks: a glyph, the same in ASCII, a word, and a colour by meaning.

Colour is never the only sign: glyph and word always stand beside it. Colours are tokens here; terminals map them to
ANSI below, a web page to its variables.
"""

from __future__ import annotations

import os

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Look(NamedTuple):
    """One state, for eyes of every kind."""

    glyph: str
    ascii: str
    word: str
    token: str  #: "default", "muted", "accent", "pass", "warn" or "fail"


class Style(NamedTuple):
    """What the place we write to can show."""

    colour: bool = False
    ascii: bool = False


TASK_LOOKS: Mapping[str, Look] = {
    "ready": Look("○", "o", "ready", "default"),
    "blocked": Look("◌", ".", "blocked", "muted"),
    "doing": Look("◐", "*", "doing", "accent"),
    "done": Look("✓", "+", "done", "pass"),
}
JOB_LOOKS: Mapping[str, Look] = {
    "pending": Look("○", "o", "pending", "warn"),
    "running": Look("◐", "*", "running", "accent"),
    "completed": Look("✓", "+", "done", "pass"),
    "failed": Look("✗", "x", "failed", "fail"),
    "killed": Look("■", "#", "stopped", "muted"),
    "waits": Look("!", "!", "waits", "warn"),
}

#: Blue, green, yellow, red and bright black: the sixteen colours people's themes define.
ANSI: Mapping[str, str] = {"accent": "34", "pass": "32", "warn": "33", "fail": "31", "muted": "90", "default": ""}

_RESET = "\x1b[0m"


def style_for(*, terminal: bool, encoding: str = "utf-8", env: Mapping[str, str] | None = None) -> Style:
    """What to use on a stream, by what it is and what the person asked for.

    NO_COLOR wins over FORCE_COLOR; without either, colour needs a terminal that is not dumb. TASKYARD_ASCII=1,
    or an encoding that has no glyphs, gives the ASCII set.
    """
    env = os.environ if env is None else env
    asked = env.get("FORCE_COLOR", "")
    if env.get("NO_COLOR"):
        colour = False
    elif asked:
        colour = asked not in ("0", "false")
    else:
        colour = terminal and env.get("TERM") != "dumb"
    plain = env.get("TASKYARD_ASCII", "") not in ("", "0") or not encoding.lower().startswith("utf")
    return Style(colour, plain)


def glyph(look: Look, style: Style) -> str:
    """The sign for `look`, coloured where that is possible."""
    return painted(look.ascii if style.ascii else look.glyph, look.token, style)


def painted(text: str, token: str, style: Style) -> str:
    """`text` in the colour of `token`."""
    code = ANSI[token] if style.colour else ""
    return f"\x1b[{code}m{text}{_RESET}" if code and text else text
