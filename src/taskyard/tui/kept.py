"""
The lines of an output that are in hand: at most 5,000 of them, from anywhere in it. Pure.

    begin        the end of the output, or any window of it
    add          what came since; while nobody follows, what is in hand stays and what comes is counted
    put_before   what stands before
"""

from __future__ import annotations

import re

from taskyard.live.output import MOST_LINES, Line
from taskyard.view.ansi import Pen, Run
from taskyard.view.text import size, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.live.output import Window

#: Columns from one tab stop to the next.
_TAB = 8

#: How a gap is drawn: bright black.
_QUIET = Pen(fg=8)


class Kept:
    """What is in hand of one output."""

    def __init__(self, most: int = MOST_LINES) -> None:
        self.lines: list[Line] = []
        self.times: dict[int, int] = {}  #: when a line came, by its offset; of those that came while we looked
        self.start = 0  #: the offset of the first byte in hand
        self.end = 0  #: where to go on
        self.size = 0  #: bytes printed in all
        self.unseen = 0  #: lines that came while nobody followed
        self.is_more = False  #: and perhaps more than that
        self.is_cut = False  #: what came last is not in hand
        self._most = most

    def begin(self, window: Window, *, from_start: bool = False) -> None:
        """Have this window and nothing else; of too many lines the last, or the first with `from_start`."""
        self.lines = _shown(window)
        self.times.clear()
        self.start, self.end, self.size = window.start, window.end, window.size
        self.unseen, self.is_more, self.is_cut = 0, False, window.end < window.size and not window.is_open
        if from_start:
            self._shorten_back()
        else:
            self._shorten_front()

    def add(self, window: Window, *, at: int, follows: bool, skipped: bool = False) -> int:
        """What came since; how many lines of it are new. `skipped`: not all that came is in it."""
        if window.restarted or (skipped and follows):
            self.begin(window)
            return len(window.lines)
        self.size = window.size
        self.is_cut = self.is_cut or window.start > self.end  # something between was not read here
        if self.is_cut or skipped:  # nobody follows, and there is no room for it
            self.is_cut, self.is_more = True, self.is_more or skipped
            self.unseen += len(window.lines)
            return len(window.lines)
        again = 0
        while self.lines and self.lines[-1].offset >= window.start:
            self.lines.pop()
            again += 1
        new = max(len(window.lines) - again, 0)
        self.end = window.end
        self.lines += _shown(window)
        self.times.update((line.offset, at) for line in window.lines)
        if follows:
            self._shorten_front()
        else:
            self.unseen += new
            self._shorten_back()
        return new

    def put_before(self, window: Window) -> int:
        """What stands before `start`; by how many lines everything moved down."""
        first = _shown(window)
        while self.lines and self.lines[0].offset < self.start:
            self.lines.pop(0)  # the line about a gap that was here
        self.lines[:0] = first
        self.start, self.size = window.start, max(self.size, window.size)
        self._shorten_back()
        return len(first)

    def place_of(self, offset: int) -> int:
        """The line that begins at an offset, or the first after it."""
        return next((at for at, line in enumerate(self.lines) if line.offset >= offset), max(len(self.lines) - 1, 0))

    def _shorten_front(self) -> None:
        if (more := len(self.lines) - self._most) > 0:
            for line in self.lines[:more]:
                self.times.pop(line.offset, None)
            del self.lines[:more]
            self.start = self.lines[0].offset

    def _shorten_back(self) -> None:
        if len(self.lines) > self._most:
            for line in self.lines[self._most :]:
                self.times.pop(line.offset, None)
            self.end = self.lines[self._most].offset
            del self.lines[self._most :]
            self.is_cut = True


def _shown(window: Window) -> list[Line]:
    """The lines of a window, after what tells of a gap."""
    return [*_gap(window), *(_without_tabs(line) for line in window.lines)]


def _without_tabs(line: Line) -> Line:
    """A terminal would count a tab from its own edge, and past that of the pane: spaces stand where they should."""
    if not any("\t" in run.text for run in line.runs):
        return line
    column, runs = 0, list[Run]()
    for run in line.runs:
        text = ""
        for part in re.split("(\t)", run.text):
            more = " " * (_TAB - column % _TAB) if part == "\t" else part
            text, column = text + more, column + width(more)
        runs.append(run._replace(text=text))
    return line._replace(runs=tuple(runs))


def _gap(window: Window) -> list[Line]:
    """The line that tells what is no longer there."""
    if not window.omitted:
        return []
    return [Line(window.start - 1, (Run(f"… {size(window.omitted)} omitted …", _QUIET),))]
