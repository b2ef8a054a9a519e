"""The lines around the panes: header, frames with titles, and the footer with status summary and keys."""

from __future__ import annotations

import time

from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from taskyard.core.text import cut, width
from taskyard.ui.tui.keys import Piece, format_keys, hints, strip_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual import events

    from taskyard.core.text import Style
    from taskyard.ui.jobs import StatusSummary
    from taskyard.ui.snapshot import Snapshot

#: If fewer key hints than this fit with words, keys without words are shown instead.
_MIN_HINTS = 2

_CORNERS = {"top": ("┌", "─", "┐"), "middle": ("├", "─", "┤"), "bottom": ("└", "─", "┘")}


class OneLine(Widget):
    """A line of pieces; redrawn only if they differ."""

    DEFAULT_CSS = "OneLine { height: 1; }"

    class Clicked(Message):
        """The line was clicked."""

        def __init__(self, line: OneLine, x: int) -> None:
            super().__init__()
            self.line, self.x = line, x

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._pieces: list[Piece] = []

    def on_click(self, event: events.Click) -> None:
        """Post `Clicked`; the app decides what it means."""
        self.post_message(self.Clicked(self, event.x))

    def say(self, pieces: Sequence[Piece]) -> None:
        """Show these pieces."""
        if list(pieces) != self._pieces:
            self._pieces = list(pieces)
            self.refresh()

    @property
    def text(self) -> str:
        """The displayed text."""
        return "".join(piece.text for piece in self._pieces)

    def render_line(self, y: int) -> Strip:
        """Render the line."""
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
    """A line of a frame, with a title, and tabs on the right."""

    class TabClicked(Message):
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

    def update_title(self, title: str, *, lit: bool = False, tabs: tuple[str, ...] = (), tab: int = 0) -> None:
        """Show a title; `lit`: the pane below has the focus."""
        new = (title, lit, tabs, tab)
        if new != (self._title, self._lit, self._tabs, self._tab):
            self._title, self._lit, self._tabs, self._tab = title, lit, tabs, tab
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Post `TabClicked` for the clicked tab."""
        left = self.size.width - 2 - len(" │ ".join(self._tabs))
        for number, tab in enumerate(self._tabs):
            if left <= event.x < left + len(tab):
                self.post_message(self.TabClicked(number))
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
    pill: StatusSummary, place: str, keymap: Mapping[str, str], columns: int, *, kind: str = "", extra: str = ""
) -> list[Piece]:
    """Build ` 2 shells   ! 1 waits     enter open  c claim  d done  ? keys`, as far as there is room."""
    key = format_keys(keymap.get("background", "2").split(",")[0])
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
    """Return hints with long labels if they fit, else short ones, else keys alone; what does not fit is left out."""
    if place == "typing":
        return _join_hints([("enter", "send"), ("esc", "back")])
    rows = [(format_keys(keymap.get(row.id, row.keys).split(",")[0]), row) for row in hints(place, kind)]
    for words in ([row.full for _, row in rows], [row.short for _, row in rows]):
        if sum(len(key) + len(word) + 3 for (key, _), word in zip(rows, words)) - 2 <= room:
            return _join_hints(list(zip([key for key, _ in rows], words)))
    kept: list[tuple[str, str]] = []
    last = [(key, row.short) for key, row in rows if row.id == "keys"]
    used = sum(len(key) + len(word) + 1 for key, word in last)
    for key, row in rows:
        if row.id != "keys" and used + len(key) + len(row.short) + 3 <= room:
            kept.append((key, row.short))
            used += len(key) + len(row.short) + 3
    if len(kept) >= _MIN_HINTS:
        return _join_hints([*kept, *last])
    bare = [(key, "") for key, _ in rows if len(key) == 1]
    return _join_hints(bare[: max((room + 2) // 3, 0)])


def _join_hints(pairs: Sequence[tuple[str, str]]) -> list[Piece]:
    pieces: list[Piece] = []
    for number, (key, word) in enumerate(pairs):
        pieces += [Piece("  " if number else ""), Piece(key, "accent"), Piece(f" {word}" if word else "")]
    return pieces
