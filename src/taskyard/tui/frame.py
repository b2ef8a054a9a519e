"""The lines around the panes: the header, frames with titles, the footer with the pill and the keys that work now."""

from __future__ import annotations

import time

from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from taskyard.tui.keys import hints, said
from taskyard.tui.paint import Piece, strip_of
from taskyard.view.text import cut, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual import events

    from taskyard.view.glyphs import Style
    from taskyard.view.pill import Pill
    from taskyard.view.snapshot import Snapshot

#: With fewer keys than this in words, all of them without words say more.
_ENOUGH = 2

_CORNERS = {"top": ("┌", "─", "┐"), "middle": ("├", "─", "┤"), "bottom": ("└", "─", "┘")}


class OneLine(Widget):
    """A line of pieces; drawn again only where they differ."""

    DEFAULT_CSS = "OneLine { height: 1; }"

    class Clicked(Message):
        """Somebody clicked on it."""

        def __init__(self, line: OneLine, x: int) -> None:
            super().__init__()
            self.line, self.x = line, x

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._pieces: list[Piece] = []

    def on_click(self, event: events.Click) -> None:
        """Whoever knows what it says knows what a click there means."""
        self.post_message(self.Clicked(self, event.x))

    def say(self, pieces: Sequence[Piece]) -> None:
        """Show these."""
        if list(pieces) != self._pieces:
            self._pieces = list(pieces)
            self.refresh()

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(piece.text for piece in self._pieces)

    def render_line(self, y: int) -> Strip:
        """The line."""
        return strip_of(self._pieces, self.size.width)


def header(snapshot: Snapshot, columns: int, now: int, style: Style) -> list[Piece]:
    """` taskyard  release-2        3 agents · 3 doing · 4 ready   14:02`."""
    clock = time.strftime("%H:%M", time.localtime(now / 1000))
    problems = f"! {len(snapshot.problems)} unreadable   " if snapshot.problems else ""
    problems = "! disconnected   " if snapshot.is_disconnected else problems
    headline = snapshot.headline.replace(" · ", ", ") if style.ascii else snapshot.headline
    right = f"{headline}   {clock} " if headline else f"{clock} "
    room = columns - len(" taskyard  ") - width(problems) - width(right) - 1
    name = cut(snapshot.list, max(room, 8), style)
    gap = " " * max(1, columns - len(" taskyard  ") - width(name) - width(problems) - width(right))
    return [
        Piece(" taskyard  ", "accent bold"),
        Piece(name, "bold"),
        Piece(gap),
        Piece(problems, "warn"),
        Piece(right, "muted"),
    ]


class Frame(OneLine):
    """A line of a frame, with a title, and tabs at its right."""

    class Turned(Message):
        """A tab was clicked."""

        def __init__(self, tab: int) -> None:
            super().__init__()
            self.tab = tab

    def __init__(self, kind: str, *, style: Style, id: str | None = None) -> None:
        super().__init__(id=id)
        self._kind = kind
        self._style, self._ascii = style, style.ascii
        self._title, self._lit = "", False
        self._tab = 0
        self._tabs: tuple[str, ...] = ()

    def name_it(self, title: str, *, lit: bool = False, tabs: tuple[str, ...] = (), tab: int = 0) -> None:
        """Show a title; `lit`: what is below has the focus."""
        new = (title, lit, tabs, tab)
        if new != (self._title, self._lit, self._tabs, self._tab):
            self._title, self._lit, self._tabs, self._tab = title, lit, tabs, tab
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A click on a tab turns to it."""
        left = self.size.width - 2 - len(" │ ".join(self._tabs))
        for number, tab in enumerate(self._tabs):
            if left <= event.x < left + len(tab):
                self.post_message(self.Turned(number))
            left += len(tab) + 3

    def render_line(self, y: int) -> Strip:
        """`┌ 3 b7k2 npm test ── Output │ Details │ Graph ┐`."""
        left, line, right = ("+", "-", "+") if self._ascii else _CORNERS[self._kind]
        columns = self.size.width
        tabs: list[Piece] = []
        for number, tab in enumerate(self._tabs):
            bar = "|" if self._ascii else "│"
            tabs += [Piece(f" {bar} ", "muted")] if number else [Piece(" ")]
            tabs.append(Piece(tab, "accent bold underline" if number == self._tab else "muted"))
        taken = sum(width(piece.text) for piece in tabs) + 1 if tabs else 0
        title = f" {cut(self._title, max(columns - taken - 7, 1), self._style)} " if self._title else ""
        fill = max(columns - 2 - width(title) - taken, 0)
        pieces = [
            Piece(left, "muted"),
            Piece(title, "accent bold" if self._lit else "bold"),
            Piece(line * fill, "muted"),
        ]
        return strip_of([*pieces, *tabs, Piece(" " if tabs else ""), Piece(right, "muted")], columns)


def footer(
    pill: Pill, place: str, keymap: Mapping[str, str], columns: int, *, kind: str = "", extra: str = ""
) -> list[Piece]:
    """` 2 shells   ! 1 waits     enter open  c claim  d done  ? keys`, as long as there is room."""
    key = said(keymap.get("background", "2").split(",")[0])
    opens = pill.hint_with(key) or (f" ({key})" if pill.text else "")
    pieces = [Piece(f" {pill.text}{opens}" if pill.text else "")]
    pieces += [Piece(f"   {pill.waits}", "warn bold")] if pill.waits else []
    pieces += [Piece(f"   {pill.flash}", pill.flash_token)] if pill.flash else []
    pieces += [Piece(f"   {extra}", "accent")] if extra else []
    taken = sum(width(piece.text) for piece in pieces)
    words = _hints(place, kind, keymap, columns - taken - (5 if taken else 1) - 1)
    room = columns - taken - width("".join(piece.text for piece in words)) - 1
    return [*pieces, Piece(" " * max(room, 1)), *words] if taken else [Piece(" "), *words]


def _hints(place: str, kind: str, keymap: Mapping[str, str], room: int) -> list[Piece]:
    """In full words if they fit, else in short ones, else as keys alone; what does not fit then is left out."""
    if place == "typing":
        return _spaced([("enter", "send"), ("esc", "back")])
    rows = [(said(keymap.get(row.id, row.keys).split(",")[0]), row) for row in hints(place, kind)]
    for words in ([row.full for _, row in rows], [row.short for _, row in rows]):
        if sum(len(key) + len(word) + 3 for (key, _), word in zip(rows, words)) - 2 <= room:
            return _spaced(list(zip([key for key, _ in rows], words)))
    kept: list[tuple[str, str]] = []
    last = [(key, row.short) for key, row in rows if row.id == "keys"]
    used = sum(len(key) + len(word) + 1 for key, word in last)
    for key, row in rows:
        if row.id != "keys" and used + len(key) + len(row.short) + 3 <= room:
            kept.append((key, row.short))
            used += len(key) + len(row.short) + 3
    if len(kept) >= _ENOUGH:
        return _spaced([*kept, *last])
    bare = [(key, "") for key, _ in rows if len(key) == 1]
    return _spaced(bare[: max((room + 2) // 3, 0)])


def _spaced(pairs: Sequence[tuple[str, str]]) -> list[Piece]:
    pieces: list[Piece] = []
    for number, (key, word) in enumerate(pairs):
        pieces += [Piece("  " if number else ""), Piece(key, "accent"), Piece(f" {word}" if word else "")]
    return pieces
