"""`?`: the keys that work where the person is, over everything else, until a key is pressed."""

from __future__ import annotations

from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget

from taskyard.tui.keys import PLACES, at, said
from taskyard.tui.paint import Piece, strip_of
from taskyard.view.text import width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual import events
    from textual.app import ComposeResult
    from textual.strip import Strip

_MOVES = ("up", "down", "pageup", "pagedown", "home", "end", "j", "k")


class _Lines(Widget):
    DEFAULT_CSS = "_Lines { width: 100%; }"

    def __init__(self, lines: list[list[Piece]]) -> None:
        super().__init__()
        self._lines = lines
        self.styles.height = len(lines)

    def render_line(self, y: int) -> Strip:
        return strip_of(self._lines[y] if y < len(self._lines) else [], self.size.width)


class HelpScreen(ModalScreen[None]):
    """The keys of a place."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: transparent; }
    HelpScreen > VerticalScroll {
        width: 76; max-width: 100%; max-height: 90%; height: auto;
        border: solid ansi_blue; background: ansi_default; padding: 0 1; scrollbar-size-vertical: 1;
    }
    """

    def __init__(self, place: str, keymap: Mapping[str, str], kind: str = "") -> None:
        super().__init__()
        self._place, self._keymap, self._kind = place, keymap, kind

    def compose(self) -> ComposeResult:
        """A table of two columns."""
        with VerticalScroll() as table:
            table.border_title = f" Keys: {PLACES[self._place].lower()} "
            table.border_subtitle = " any key closes "
            yield _Lines(help_lines(self._place, self._keymap, self._kind))

    def on_key(self, event: events.Key) -> None:
        """Any key but those that scroll."""
        if event.key not in _MOVES:
            event.stop()
            event.prevent_default()
            self.dismiss()


def help_lines(place: str, keymap: Mapping[str, str], kind: str = "") -> list[list[Piece]]:
    """Keys and what they do, those of the place first."""
    lines: list[list[Piece]] = []
    was_own = True
    for row in at(place, kind):
        is_own = "" not in row.places
        if was_own and not is_own and lines:
            lines.append([])
        was_own = is_own
        if keys := said(keymap.get(row.id, row.keys)):
            lines.append([Piece(f" {keys}{' ' * max(13 - width(keys), 1)}", "accent"), Piece(row.about)])
    return lines
