"""
Text with colours by meaning, as strips that Textual draws.

A colour is one of the sixteen that the person's terminal defines, so the view looks right on dark and on light ones;
`NO_COLOR` is Textual's to respect: it takes all of them away and leaves bold, reverse and underline.
"""

from __future__ import annotations

from functools import lru_cache

from rich.cells import chop_cells
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.strip import Strip

from taskyard.typed import NamedTuple
from taskyard.view.ansi import PLAIN, Pen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.view.ansi import Run

#: Before the name of a team colour in a look: `team-purple`.
TEAM_COLOUR = "team-"

#: The colours by which a team tells its members apart, as the sixteen of a terminal.
_TEAM = {
    "red": "red",
    "blue": "blue",
    "green": "green",
    "yellow": "yellow",
    "purple": "magenta",
    "orange": "bright_red",
    "pink": "bright_magenta",
    "cyan": "cyan",
}

#: The five tokens, and the colours of a team; what is default keeps the terminal's own colour.
COLOURS = {
    "accent": "blue",
    "pass": "green",
    "warn": "yellow",
    "fail": "red",
    "muted": "bright_black",
    **{f"{TEAM_COLOUR}{name}": colour for name, colour in _TEAM.items()},
}

_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


class Piece(NamedTuple):
    """Some text in one look: a token, and marks such as `bold`, parted by spaces."""

    text: str
    look: str = ""


@lru_cache(maxsize=512)
def style_of(look: str) -> RichStyle:
    """`accent bold` as a style."""
    words = look.split()
    colour = next((COLOURS[word] for word in words if word in COLOURS), None)
    marks = {mark: True for mark in ("bold", "reverse", "underline", "italic") if mark in words}
    return RichStyle(color=colour, **marks)  # type: ignore[arg-type]  # the names of its own marks


@lru_cache(maxsize=512)
def style_of_pen(pen: Pen) -> RichStyle:
    """What a command's own colours look like."""
    marks = {mark: True for mark in pen.marks if mark != "strike"}
    return RichStyle(
        color=None if pen.fg is None else _named(pen.fg),
        bgcolor=None if pen.bg is None else _named(pen.bg),
        strike="strike" in pen.marks or None,
        **marks,  # type: ignore[arg-type]  # the same
    )


def _named(colour: int) -> str:
    return f"bright_{_NAMES[colour - 8]}" if colour > 7 else _NAMES[colour]


def strip_of(pieces: Iterable[Piece], width: int, look: str = "") -> Strip:
    """Pieces on one line of `width` cells; `look` is laid over all of it."""
    over = style_of(look) if look else RichStyle.null()
    if over.reverse:  # one bar, whatever colours its pieces have
        pieces = [Piece(piece.text, "bold" if "bold" in piece.look else "") for piece in pieces]
    segments = [Segment(piece.text, style_of(piece.look) + over) for piece in pieces if piece.text]
    return Strip(segments).adjust_cell_length(width, over)


@lru_cache(maxsize=8_192)
def folded(text: str, columns: int) -> tuple[str, ...]:
    """A text as lines of at most so many cells; no sign is parted, however wide.

    >>> folded("a\u65e5\u672c", 4) == ("a\u65e5", "\u672c")
    True
    """
    return tuple(chop_cells(text, columns)) or (text,)


def blank(width: int) -> Strip:
    """An empty line."""
    return Strip.blank(width, RichStyle.null())


def strip_of_runs(runs: Sequence[Run]) -> Strip:
    """A line of an output."""
    return Strip([Segment(run.text, style_of_pen(run.pen) if run.pen != PLAIN else RichStyle.null()) for run in runs])
