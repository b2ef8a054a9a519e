"""Text for people: escaping of untrusted text, glyphs and colours of states, durations, sizes.

Names, subjects and output from outside may contain escape codes, control characters and bidirectional
marks; they pass `escape_control` before they reach a terminal, so that a subject can neither move the
cursor nor colour the screen nor reverse what is read.

A state has a glyph, an ASCII glyph, a word and a colour token; colour is never the only sign. Terminals map
tokens to ANSI codes (`ANSI`), a web page to its variables.
"""

from __future__ import annotations

import os

from taskyard.core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


_JOINERS = "\u200c\u200d"  # zero-width, and needed by scripts and composed emoji


def escape_control(text: str, *, lines: bool = False) -> str:
    r"""Escape what a terminal would interpret, as `\x1b` or `\u202e`; newlines become spaces unless `lines`.

    >>> escape_control("red \x1b[31m\nnext")
    'red \\x1b[31m next'
    """
    if text.isprintable():  # decided in C, and nearly always true
        return text
    return "".join(char if char.isprintable() or char in _JOINERS else _escape_char(char, lines) for char in text)


def _escape_char(char: str, lines: bool) -> str:
    if char == "\n" and lines:
        return char
    if char in "\n\t" or (char >= "\xa0" and char.isspace()):  # spaces of other widths, and line separators
        return " "
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class StateGlyph(NamedTuple):
    """How one state is shown."""

    glyph: str
    ascii: str
    word: str
    token: str  #: "default", "muted", "accent", "pass", "warn" or "fail"


class Style(NamedTuple):
    """What the output stream can show."""

    colour: bool = False
    ascii: bool = False


TASK_GLYPHS: Mapping[str, StateGlyph] = {
    "ready": StateGlyph("○", "o", "ready", "default"),
    "blocked": StateGlyph("◌", ".", "blocked", "muted"),
    "doing": StateGlyph("◐", "*", "doing", "accent"),
    "done": StateGlyph("✓", "+", "done", "pass"),
}
JOB_GLYPHS: Mapping[str, StateGlyph] = {
    "pending": StateGlyph("○", "o", "pending", "warn"),
    "running": StateGlyph("◐", "*", "running", "accent"),
    "completed": StateGlyph("✓", "+", "done", "pass"),
    "failed": StateGlyph("✗", "x", "failed", "fail"),
    "killed": StateGlyph("■", "#", "stopped", "muted"),
    "waits": StateGlyph("!", "!", "waits", "warn"),
}

#: Blue, green, yellow, red and bright black: of the sixteen colours that terminal themes define.
ANSI: Mapping[str, str] = {"accent": "34", "pass": "32", "warn": "33", "fail": "31", "muted": "90", "default": ""}

_RESET = "\x1b[0m"


def style_for(*, terminal: bool, encoding: str = "utf-8", env: Mapping[str, str] | None = None) -> Style:
    """Return the style for a stream, by its type and the user's environment.

    NO_COLOR wins over FORCE_COLOR; without either, colour needs a terminal that is not dumb. TASKYARD_ASCII=1,
    or an encoding without the glyphs, selects the ASCII set.
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


def glyph(look: StateGlyph, style: Style) -> str:
    """Return the glyph of `look`, coloured if possible."""
    return colorize(look.ascii if style.ascii else look.glyph, look.token, style)


def colorize(text: str, token: str, style: Style) -> str:
    """Return `text` in the colour of `token`."""
    code = ANSI[token] if style.colour else ""
    return f"\x1b[{code}m{text}{_RESET}" if code and text else text


#: Columns; a narrower subject is useless, so the row then exceeds the line instead.
MIN_SUBJECT_WIDTH = 12


def duration(seconds: float) -> str:
    """Format as `8s`, `3m`, `1h 04m`, `2d`.

    >>> [duration(n) for n in (0.4, 59.9, 200, 3_840, 200_000)]
    ['0s', '59s', '3m', '1h 04m', '2d']
    """
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3_600:
        return f"{whole // 60}m"
    if whole < 86_400:
        return f"{whole // 3_600}h {whole // 60 % 60:02d}m"
    return f"{whole // 86_400}d"


def size(count: int) -> str:
    """Format as `812 B`, `4.1 kB`, `32 MB`, `1.5 GB`.

    >>> [size(n) for n in (812, 4_096, 32_000_000, 1_500_000_000, 10_000_000_000)]
    ['812 B', '4.1 kB', '32 MB', '1.5 GB', '10 GB']
    """
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"


def width(text: str) -> int:
    """Return how many columns `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    columns = 0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            columns += 2
        elif unicodedata.category(char) not in ("Mn", "Me", "Cf"):
            columns += 1
    return columns


def cut(text: str, columns: int, style: Style = Style()) -> str:  # noqa: B008  (immutable)
    """Return `text`, shortened to `columns` with `…` at its end if necessary."""
    if width(text) <= columns:
        return text
    mark = "..." if style.ascii else "…"
    room = columns - len(mark)
    if room <= 0:
        return mark[: max(0, columns)]
    end, used = 0, 0
    for char in text:
        used += width(char)
        if used > room:
            break
        end += 1
    return text[:end].rstrip() + mark


def padded(text: str, columns: int) -> str:
    """Return `text` padded with spaces to `columns`."""
    return text + " " * (columns - width(text))
