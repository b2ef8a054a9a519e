"""
Rows by id, of which one is selected: only what changed is drawn again, and the selection stays with its row.

What a row looks like is its subclass's; nothing here knows tasks or jobs.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Generic, TypeVar

from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from taskyard.tui.paint import Piece, blank, strip_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

Item = TypeVar("Item")

#: Beside the selected row.
_MARK, _ASCII_MARK = "›", ">"


class RowList(ScrollView, Generic[Item], can_focus=True, inherit_bindings=False):
    """A list that can be long."""

    DEFAULT_CSS = """
    RowList { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; height: 1fr; }
    """

    class Moved(Message):
        """Another row is selected."""

        def __init__(self, rows: RowList[Item]) -> None:
            super().__init__()
            self.rows = rows

    class Opened(Message):
        """The selected row was clicked."""

        def __init__(self, rows: RowList[Item]) -> None:
            super().__init__()
            self.rows = rows

    def __init__(self, *, id: str, ascii: bool = False, empty: str = "") -> None:
        super().__init__(id=id)
        self.items: Sequence[Item] = ()
        self.empty = empty  #: what is said where there are no rows
        self.selected: str | None = None
        self.is_active = False  #: what is selected here is shown elsewhere
        self.redrawn = 0  #: rows that were drawn again since the beginning
        self._mark = _ASCII_MARK if ascii else _MARK
        self._ids: list[str] = []
        self._tops: list[int] = [0]
        self._drawn: dict[str, list[list[Piece]]] = {}

    # -- what subclasses say -----------------------------------------------------------------

    def key_of(self, item: Item) -> str:
        """The id of a row."""
        raise NotImplementedError

    def height_of(self, item: Item) -> int:
        """How many lines a row takes."""
        return 1

    def draw(self, item: Item, columns: int) -> list[list[Piece]]:
        """A row's lines."""
        raise NotImplementedError

    # -- rows --------------------------------------------------------------------------------

    @property
    def lines(self) -> int:
        """How many lines all rows take."""
        return self._tops[-1]

    @property
    def current(self) -> Item | None:
        """The selected item."""
        at = self._at()
        return self.items[at] if at is not None else None

    def show(self, items: Sequence[Item]) -> None:
        """Show these rows: those that differ are drawn again, the others are left alone."""
        before, self.items = self.items, items
        ids = [self.key_of(item) for item in items]
        tops = [0, *accumulate(self.height_of(item) for item in items)]
        if ids == self._ids and tops == self._tops:
            for at, (old, new) in enumerate(zip(before, items)):
                if old is not new and old != new:
                    self._redraw(at)
            return
        self._rearrange(before, ids, tops)

    def _rearrange(self, before: Sequence[Item], ids: list[str], tops: list[int]) -> None:
        """Rows came, went or moved: draw from the first that differs on; the selected one keeps its place on screen."""
        old_at = self._at()
        on_screen = self._tops[old_at] - self.scroll_offset.y if old_at is not None else 0
        old_ids, old_tops = self._ids, self._tops
        self._ids, self._tops = ids, tops
        if self.selected not in self._places():
            near = min(old_at or 0, len(ids) - 1)
            self._select(ids[near] if ids else None)
        self.virtual_size = Size(self.size.width, tops[-1])
        if (at := self._at()) is not None and self.is_attached and old_at is not None:
            wanted = self.scroll_offset.y if on_screen < 0 else tops[at] - on_screen
            if wanted != self.scroll_offset.y:
                self.scroll_to(y=max(0, wanted), animate=False, force=True)
        first = next((n for n, pair in enumerate(zip(old_ids, ids)) if pair[0] != pair[1]), min(len(ids), len(old_ids)))
        same = [n for n in range(first) if before[n] is not self.items[n] and before[n] != self.items[n]]
        for n in same:
            self._redraw(n)
        start = min(old_tops[first], tops[first], next((t for t, u in zip(old_tops, tops) if t != u), tops[first]))
        self.redrawn += max(len(ids), len(old_ids)) - first
        self.refresh_lines(start, max(old_tops[-1], tops[-1], self.size.height) - start + 1)

    def _redraw(self, at: int) -> None:
        self.redrawn += 1
        self.refresh_lines(self._tops[at], self._tops[at + 1] - self._tops[at])

    def tick(self) -> None:
        """Time has passed: draw those visible rows again that now read differently."""
        for at in self._visible():
            item = self.items[at]
            if self.draw(item, self._columns()) != self._drawn.get(self._ids[at]):
                self._redraw(at)

    def redraw_selected(self) -> None:
        """Draw the selected row again."""
        if (at := self._at()) is not None:
            self._redraw(at)

    def hidden(self) -> list[Item]:
        """The rows that do not fit, above and below what is seen."""
        seen = self._visible()
        return [*self.items[: seen.start], *self.items[seen.stop :]]

    def _visible(self) -> range:
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        first = max(bisect_right(self._tops, top) - 1, 0)
        return range(first, min(bisect_right(self._tops, max(bottom - 1, 0)), len(self.items)))

    # -- selection ---------------------------------------------------------------------------

    def _places(self) -> frozenset[str]:
        return frozenset(self._ids)

    def _at(self) -> int | None:
        try:
            return self._ids.index(self.selected) if self.selected is not None else None
        except ValueError:
            return None

    def _select(self, id: str | None) -> None:
        if id != self.selected:
            self.redraw_selected()
            self.selected = id
            self.redraw_selected()
            self.post_message(self.Moved(self))

    def select(self, id: str) -> bool:
        """Select a row by its id; False if there is none."""
        if id not in self._ids:
            return False
        self._select(id)
        self._into_view()
        return True

    def move(self, by: int) -> bool:
        """Select the row `by` rows on; False at the end."""
        at = self._at()
        if not self._ids or at is None:
            return False
        to = min(max(at + by, 0), len(self._ids) - 1)
        self._select(self._ids[to])
        self._into_view()
        return to != at

    def move_page(self, by: int) -> None:
        """One screen on."""
        self.move(by * max(len(self._visible()) - 1, 1))

    def move_to_edge(self, by: int) -> None:
        """To the first or the last."""
        self.move(by * len(self._ids))

    def _into_view(self) -> None:
        at = self._at()
        if at is None:
            return
        top, bottom = self._tops[at], self._tops[at + 1]
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True)
        elif bottom > self.scroll_offset.y + self.size.height:
            self.scroll_to(y=bottom - self.size.height, animate=False, force=True)

    # -- drawing -----------------------------------------------------------------------------

    def _columns(self) -> int:
        return max(self.scrollable_content_region.width - 2, 4)  # the mark on the left, a space on the right

    def render_line(self, y: int) -> Strip:
        """One line of what is seen."""
        width = self.scrollable_content_region.width
        line = y + self.scroll_offset.y
        if not self.items:
            words = _wrapped(self.empty, max(width - 2, 4))
            return strip_of([Piece(f" {words[line]}" if line < len(words) else "", "muted")], width)
        if line >= self.lines:
            return blank(width)
        at = bisect_right(self._tops, line) - 1
        item, id = self.items[at], self._ids[at]
        pieces = self._drawn[id] = self.draw(item, self._columns())
        within = line - self._tops[at]
        is_selected = id == self.selected
        is_marked = is_selected and within == 0 and (self.has_focus or self.is_active)
        mark = Piece(self._mark if is_marked else " ", "accent bold")
        shown = pieces[within] if within < len(pieces) else []
        return strip_of([mark, *shown], width, "reverse" if is_selected and self.has_focus else "")

    def empty_lines(self, width: int) -> int:
        """How many lines it takes to say that there is nothing."""
        return len(_wrapped(self.empty, max(width - 2, 4)))

    def on_resize(self, event: events.Resize) -> None:
        """Every row has another width."""
        self.virtual_size = Size(event.size.width, self.lines)
        self._drawn.clear()
        self._into_view()

    def on_click(self, event: events.Click) -> None:
        """A click selects; on what is selected, it opens."""
        line = event.y + self.scroll_offset.y
        if 0 <= line < self.lines:
            id = self._ids[bisect_right(self._tops, line) - 1]
            if id == self.selected:
                self.post_message(self.Opened(self))
            self._select(id)


def _wrapped(text: str, columns: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, columns) or [""]
