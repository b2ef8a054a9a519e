"""
An output on the screen: its end as it grows, or any part of it.

It asks for what it has not got (`Wanted`) and is given it (`begin`, `add`, `put_before`): it never reads by itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from rich.cells import cell_len
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from taskyard.tui.kept import Kept
from taskyard.tui.paint import Piece, blank, folded, strip_of, strip_of_runs, style_of
from taskyard.view.ansi import plain
from taskyard.view.details import clock
from taskyard.view.text import width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from textual import events

    from taskyard.live.output import Window

#: Columns of a time of day and the space behind it.
_TIME = 9


class OutputView(ScrollView, can_focus=True, inherit_bindings=False):
    """What a job printed."""

    DEFAULT_CSS = """
    OutputView { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; height: 1fr; }
    """

    class Wanted(Message):
        """Something that is not in hand is to be read."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what  #: "before", "after" or "tail"

    class Changed(Message):
        """What is told about it differs: lines, what is new, whether it follows."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.kept = Kept()
        self.note = ""  #: said where there is nothing
        self.follows, self.wraps, self.shows_times = True, False, False
        self.found = ""  #: what was looked for
        self.found_at: int | None = None  #: the offset of the line it was found in
        self._tops: list[int] = [0]
        self._wide = 0
        self._left = 0  # columns that are scrolled past, where lines are cut
        self._asked = ""

    # -- what is in hand ---------------------------------------------------------------------

    def clear(self, note: str = "") -> None:
        """Nothing any more; `note` says why."""
        self.kept, self.note = Kept(), note
        self.follows, self.found, self.found_at, self._asked = True, "", None, ""
        self._left = 0
        self._lay_out()
        self.refresh()
        self.scroll_to(x=0, y=0, animate=False, force=True)
        self.post_message(self.Changed())

    def begin(self, window: Window, *, note: str = "", top: int | None = None) -> None:
        """Show this window: from its end, or with the line at the offset `top` in view."""
        self.note, self._asked = note, ""
        self.kept.begin(window, from_start=top is not None)
        self.follows = top is None
        self._settle()
        if top is not None:
            self.found_at = top
            self._show_line(self.kept.place_of(top))

    def add(self, window: Window, *, at: int, skipped: bool = False) -> None:
        """What came since."""
        before = len(self.kept.lines)
        self.kept.add(window, at=at, follows=self.follows, skipped=skipped)
        if self.follows and self.kept.is_cut:
            self.post_message(self.Wanted("tail"))
        elif self.follows or len(self.kept.lines) != before:
            self._settle()
        else:
            self.post_message(self.Changed())

    def add_after(self, window: Window) -> None:
        """More of the middle, for one who reads on where the lines in hand ended."""
        self._asked = ""
        self.kept.is_cut = False
        seen, top = self.kept.unseen, self.kept.lines[self.first_seen()].offset if self.kept.lines else 0
        self.kept.add(window, at=0, follows=True)
        self.kept.unseen = seen
        self.kept.is_cut = window.end < window.size and not window.is_open
        self._lay_out()
        self.scroll_to(y=self._tops[self.kept.place_of(top)], animate=False, force=True)
        self._settle()

    def put_before(self, window: Window) -> None:
        """What stands before the lines in hand; what is seen stays where it is."""
        self._asked = ""
        more = self.kept.put_before(window)
        self._lay_out()
        self.scroll_to(y=self.scroll_offset.y + self._tops[min(more, len(self._tops) - 1)], animate=False, force=True)
        self._settle()

    def _settle(self) -> None:
        self._lay_out()
        self.refresh()
        if self.follows:
            self.kept.unseen, self.kept.is_more = 0, False
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)
        self.call_after_refresh(self._place_scrollbar)
        self.post_message(self.Changed())

    def _place_scrollbar(self) -> None:
        """A scrollbar that has just appeared knows nothing of what was scrolled before."""
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self.scroll_y

    def _lay_out(self) -> None:
        columns = self._columns()
        texts = [plain(line.runs) for line in self.kept.lines]
        self._wide = max(map(width, texts), default=0) + (_TIME if self.shows_times else 0)
        if self.wraps:
            self._tops = [0, *accumulate(len(folded(text, columns)) for text in texts)]
        else:
            self._tops = list(range(len(texts) + 1))
        self.virtual_size = Size(self.size.width, self._tops[-1])

    def _columns(self) -> int:
        return max(self.scrollable_content_region.width - 1 - (_TIME if self.shows_times else 0), 4)

    # -- moving ------------------------------------------------------------------------------

    def follow(self, wanted: bool) -> None:
        """Stay at the end as it grows, or stop doing so."""
        self.follows = wanted
        if wanted and self.kept.is_cut:
            self.post_message(self.Wanted("tail"))
        self._settle()

    def toggle_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.wraps = not self.wraps
        self._relay()

    def toggle_times(self) -> None:
        """Show when lines came, or not."""
        self.shows_times = not self.shows_times
        self._relay()

    def _relay(self) -> None:
        top = self.first_seen()
        self._lay_out()
        self.scroll_to(x=0, y=self.max_scroll_y if self.follows else self._tops[top], animate=False, force=True)
        self.refresh()
        self.post_message(self.Changed())

    def move(self, by: int) -> None:
        """Some lines on; back from the end, and it follows no longer."""
        if by < 0:
            self.follows = False
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, force=True)
        self._reached()

    def move_page(self, by: int) -> None:
        """A screen on."""
        self.move(by * max(self.size.height - 1, 1))

    def move_to_edge(self, by: int) -> None:
        """To the first line there is, or to the end."""
        if by > 0:
            self.follow(True)
        else:
            self.follows = False
            self.post_message(self.Wanted("head"))

    def forget_find(self) -> None:
        """Mark nothing any more."""
        self.found, self.found_at = "", None
        self.refresh()
        self.post_message(self.Changed())

    def move_sideways(self, by: int) -> None:
        """Some columns on, where lines are cut."""
        if not self.wraps:
            self._left = min(max(self._left + by * 8, 0), max(self._wide - self._columns(), 0))
            self.refresh()

    def _reached(self) -> None:
        """At an end of what is in hand: ask for more."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        if self.scroll_offset.y <= 0 and self.kept.start > 0 and not self.follows:
            self._ask("before")
        elif at_end and self.kept.is_cut:
            self._ask("after")
        elif at_end and not self.follows:
            self.follow(True)
        self.post_message(self.Changed())

    def _ask(self, what: str) -> None:
        if self._asked != what:
            self._asked = what
            self.post_message(self.Wanted(what))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """As a key would."""
        event.stop()
        self.move(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """As a key would."""
        event.stop()
        self.move(3)

    def first_seen(self) -> int:
        """The first line that is seen, by its place among those in hand."""
        return min(max(bisect_right(self._tops, self.scroll_offset.y) - 1, 0), max(len(self.kept.lines) - 1, 0))

    def _show_line(self, at: int) -> None:
        self.scroll_to(y=max(self._tops[at] - self.size.height // 3, 0), animate=False, force=True)
        self.refresh()

    # -- drawing -----------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Lines wrap elsewhere."""
        self._relay()

    def render_line(self, y: int) -> Strip:
        """One line of what is seen."""
        room = self.scrollable_content_region.width
        row = y + self.scroll_offset.y
        if not self.kept.lines and y == 0 and self.note:
            return strip_of([Piece(f" {self.note}", "muted")], room)
        if row >= self._tops[-1]:
            return blank(room)
        at = bisect_right(self._tops, row) - 1
        columns, part = self._columns(), row - self._tops[at]
        start, end = self._cut(at, part, columns)
        body = self._drawn(at).crop(start, end).adjust_cell_length(columns, style_of(""))
        lead = strip_of([Piece(f" {self._time(at, part)}" if self.shows_times else " ", "muted")], room - columns)
        return Strip.join([lead, body])

    def _cut(self, at: int, part: int, columns: int) -> tuple[int, int]:
        """The cells of a line that are seen: one of the parts it is folded to, or what is not scrolled past."""
        if not self.wraps:
            return self._left, self._left + columns
        parts = folded(plain(self.kept.lines[at].runs), columns)[: part + 1]
        end = sum(map(cell_len, parts))
        return end - cell_len(parts[-1]), end

    def _time(self, at: int, part: int) -> str:
        when = self.kept.times.get(self.kept.lines[at].offset) if part == 0 else None
        return f"{clock(when)} " if when else " " * _TIME

    def _drawn(self, at: int) -> Strip:
        line = self.kept.lines[at]
        text = plain(line.runs)
        if not self.found or self.found.lower() not in text.lower():
            return strip_of_runs(line.runs)
        mark = "warn reverse" if line.offset == self.found_at else "reverse"
        pieces: list[Piece] = []
        at_char = 0
        for found in re.finditer(re.escape(self.found), text, re.IGNORECASE):
            pieces += [Piece(text[at_char : found.start()]), Piece(found[0], mark)]
            at_char = found.end()
        pieces.append(Piece(text[at_char:]))
        return strip_of(pieces, width(text))
