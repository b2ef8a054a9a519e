"""A line to type into, in place: what is asked stands before it."""

from __future__ import annotations

from textual.containers import Horizontal
from textual.widgets import Input

from taskyard.tui.focusing import focus
from taskyard.tui.frame import OneLine
from taskyard.tui.paint import Piece
from taskyard.view.text import cut, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

#: Columns of what is asked at most.
_LONGEST = 40


class Prompt(Horizontal):
    """Hidden until something is asked."""

    DEFAULT_CSS = """
    Prompt { height: 1; display: none; }
    Prompt Input { height: 1; border: none; padding: 0; width: 1fr; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._label = OneLine()
        self.line = Input(compact=True)
        self.line.cursor_blink = False  # nothing is drawn while nothing happens
        self._then: Callable[[str], None] | None = None
        self._changed: Callable[[str], None] | None = None
        self._stays = False

    def compose(self) -> ComposeResult:
        """What is asked, and the line."""
        yield self._label
        yield self.line

    @property
    def is_open(self) -> bool:
        """Whether something is asked."""
        return bool(self.display)

    def ask(
        self,
        what: str,
        then: Callable[[str], None],
        *,
        value: str = "",
        changed: Callable[[str], None] | None = None,
        stays: bool = False,
        at_once: bool = True,
    ) -> None:
        """Ask for a line; `then` gets it.

        Args:
            what: What is asked.
            then: Gets what was typed, with Enter.
            value: What stands there at first.
            changed: Gets it at every key.
            stays: It is there again after an answer.
            at_once: Keys go there from now on.
        """
        label = f" {cut(what, _LONGEST)} "
        self._label.styles.width = width(label)
        self._label.say([Piece(label, "warn bold" if stays else "accent bold")])
        self._then, self._changed, self._stays = then, changed, stays
        if not self.is_open or not stays:
            self.line.value = value
            self.line.cursor_position = len(value)
        self.display = True
        if at_once:
            focus(self.line)

    def cancel(self) -> None:
        """Given up: rows that were filtered at every key are all there again."""
        if self._changed is not None:
            self._changed("")
        self.dismiss()

    def dismiss(self) -> None:
        """Ask no longer."""
        self.display = False
        self._then = self._changed = None
        self.line.value = ""

    def on_input_changed(self, event: Input.Changed) -> None:
        """A key."""
        event.stop()
        if self._changed is not None and self.is_open:
            self._changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        then = self._then
        if self._stays:
            self.line.value = ""
        else:
            self.dismiss()
        if then is not None:
            then(event.value)
