"""Where keys go, from the next one on: Textual's own `focus` waits a while, and who types fast is faster."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from textual.widget import Widget


def focus(widget: Widget) -> None:
    """Let keys go to a widget, at once."""
    if widget.is_attached:
        widget.screen.set_focus(widget)
