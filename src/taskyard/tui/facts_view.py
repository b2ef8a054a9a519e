"""The Details tab: facts below each other; a line that leads somewhere can be gone along."""

from __future__ import annotations

import textwrap

from taskyard.tui.paint import Piece, folded
from taskyard.tui.row_list import RowList
from taskyard.view.details import Fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from taskyard.view.glyphs import Style

#: Columns of a fact's name.
_NAME = 11


class FactRows(RowList[tuple[int, Fact]]):
    """Facts; the one that is selected may lead to a task or a job."""

    def __init__(self, *, id: str, style: Style) -> None:
        super().__init__(id=id, ascii=style.ascii, empty="Nothing is selected. Choose a task or a job.")
        self._style = style

    def tell(self, facts: Sequence[Fact]) -> None:
        """Show these."""
        self.show(list(enumerate(facts)))

    @property
    def leads_to(self) -> str:
        """Where the selected line leads; empty if nowhere."""
        return self.current[1].leads_to if self.current is not None else ""

    def key_of(self, item: tuple[int, Fact]) -> str:
        """Its place."""
        return str(item[0])

    def height_of(self, item: tuple[int, Fact]) -> int:
        """As many lines as its words need."""
        return len(self._lines(item[1], self._columns()))

    def _lines(self, fact: Fact, columns: int) -> list[str]:
        value = fact.value.replace("─▶", "->").replace(" · ", ", ") if self._style.ascii else fact.value
        lead = 0 if not fact.name and not fact.leads_to else _NAME
        room = max(columns - lead - (2 if fact.glyph else 0), 8)
        lines = textwrap.wrap(value, room, drop_whitespace=False, replace_whitespace=False) or [""]
        return [part for line in lines for part in folded(line, room)]  # words are counted in letters, not in cells

    def draw(self, item: tuple[int, Fact], columns: int) -> list[list[Piece]]:
        """A name, a sign, words."""
        fact = item[1]
        lead = "" if not fact.name and not fact.leads_to else f"{fact.name:<{_NAME}}"
        sign = f"{fact.ascii if self._style.ascii else fact.glyph} " if fact.glyph else ""
        drawn: list[list[Piece]] = []
        for number, line in enumerate(self._lines(fact, columns)):
            first = number == 0
            drawn.append(
                [
                    Piece(lead if first else " " * len(lead), "muted"),
                    Piece(sign if first else " " * len(sign), fact.token),
                    Piece(line, f"{fact.token} underline" if fact.leads_to else fact.token),
                ]
            )
        return drawn

    def on_resize(self, event: events.Resize) -> None:
        """Words wrap elsewhere."""
        items, self.items = self.items, ()
        self._ids, self._tops = [], [0]
        super().on_resize(event)
        self.show(items)
