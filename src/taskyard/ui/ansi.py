r"""Parse text with ANSI colours into runs that a screen can draw. Pure.

Only colours and emphasis (SGR) survive; no other control sequence takes effect. Colours are reduced to the sixteen that
themes define: those of larger palettes become the nearest of them.
"""

from __future__ import annotations

import re

from taskyard.core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")

#: Emphasis that codes turn on, and the codes that turn it off.
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}

#: The sixteen colours as most terminals show them, to find the nearest.
_PALETTE = (
    (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
    (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255),
    (255, 255, 255),
)  # fmt: skip

#: Most characters of one line: a screen shows no more, and one line may be a whole file.
LONGEST_LINE = 20_000


class Pen(NamedTuple):
    """How the following text is drawn."""

    fg: int | None = None  #: 0 to 15; None: the default of the screen
    bg: int | None = None
    marks: frozenset[str] = frozenset()  #: bold, dim, italic, underline, reverse, strike

    @property
    def words(self) -> str:
        """The pen as CSS class names: `fg1 bg4 bold`; empty for plain text."""
        colours = [f"{name}{value}" for name, value in (("fg", self.fg), ("bg", self.bg)) if value is not None]
        return " ".join([*colours, *sorted(self.marks)])


class Run(NamedTuple):
    """A piece of a line drawn with one pen."""

    text: str
    pen: Pen = Pen()


PLAIN = Pen()


def parse_ansi(text: str, pen: Pen = PLAIN) -> tuple[list[list[Run]], Pen]:
    """Parse text already made safe (`TerminalText`, colours kept) into lines; also return the pen after the last one.

    A text that ends with a line break has no empty line after it.
    """
    lines: list[list[Run]] = []
    for line in text.removesuffix("\n").split("\n") if text else ():
        runs, pen = _parse_line(line, pen)
        lines.append(runs)
    return lines, pen


def plain_text(line: Sequence[Run]) -> str:
    """Return a line without its colours."""
    return "".join(run.text for run in line)


def _parse_line(line: str, pen: Pen) -> tuple[list[Run], Pen]:
    if "\x1b" not in line:
        return ([Run(line[:LONGEST_LINE], pen)] if line else []), pen
    runs: list[Run] = []
    room, at = LONGEST_LINE, 0
    for found in _SGR.finditer(line):
        room = _append_run(runs, line[at : found.start()], pen, room)
        pen, at = apply_sgr(pen, found[1]), found.end()
    _append_run(runs, line[at:], pen, room)
    return runs, pen


def _append_run(runs: list[Run], text: str, pen: Pen, room: int) -> int:
    text = text.replace("\x1b", "")[:room]
    if text:
        runs.append(Run(text, pen))
    return room - len(text)


def apply_sgr(pen: Pen, codes: str) -> Pen:
    """Return the pen after the codes of one SGR sequence; unknown codes change nothing."""
    numbers = [int(part) if part and len(part) < 5 else 0 for part in re.split("[;:]", codes)]
    while numbers:
        code = numbers.pop(0)
        if code in (38, 48):
            colour = _extended_colour(numbers)
            pen = pen if colour is None else pen._replace(fg=colour) if code == 38 else pen._replace(bg=colour)
        else:
            pen = _apply_code(pen, code)
    return pen


def _apply_code(pen: Pen, code: int) -> Pen:
    if code == 0:
        return PLAIN
    if code in _ON:
        return pen._replace(marks=pen.marks | {_ON[code]})
    if code in _OFF:
        return pen._replace(marks=pen.marks.difference(_OFF[code]))
    if 30 <= code <= 37 or 90 <= code <= 97:
        return pen._replace(fg=code - 30 if code < 90 else code - 82)
    if 40 <= code <= 47 or 100 <= code <= 107:
        return pen._replace(bg=code - 40 if code < 100 else code - 92)
    return pen._replace(fg=None) if code == 39 else pen._replace(bg=None) if code == 49 else pen


def _extended_colour(numbers: list[int]) -> int | None:
    """Remove the numbers after 38 or 48 and return their colour; None if they are invalid."""
    if numbers[:1] == [5] and len(numbers) >= 2:
        index = numbers[1]
        del numbers[:2]
        return nearest_colour(*_rgb_of_256(index)) if index > 15 else index
    if numbers[:1] == [2] and len(numbers) >= 4:
        red, green, blue = numbers[1:4]
        del numbers[:4]
        return nearest_colour(red, green, blue)
    numbers.clear()
    return None


def _rgb_of_256(index: int) -> tuple[int, int, int]:
    if index >= 232:
        grey = 8 + 10 * (min(index, 255) - 232)
        return grey, grey, grey
    index -= 16
    red, green, blue = (0 if part == 0 else 55 + 40 * part for part in (index // 36, index // 6 % 6, index % 6))
    return red, green, blue


def nearest_colour(red: int, green: int, blue: int) -> int:
    """Return the index of the closest of the sixteen colours."""
    return min(
        range(16), key=lambda one: sum((a - b) ** 2 for a, b in zip(_PALETTE[one], (red, green, blue), strict=True))
    )
