"""The terminal view of a yard, from its first drawing until somebody leaves it."""

from __future__ import annotations

import os

from taskyard.live.showing import Live
from taskyard.tui import keymap
from taskyard.tui.app import YardApp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard
    from taskyard.view.glyphs import Style


def show(yard: Yard, style: Style, *, no_colour: bool = False) -> tuple[str, int]:
    """Show it until the person leaves; what is to be said then, and the exit code: not 0 if the view broke.

    Raises:
        BadValue: `[keys]` in config.toml names what is no key.
    """
    keys = keymap.load()
    if no_colour or not style.colour:
        os.environ["NO_COLOR"] = "1"  # how Textual is told
    with Live(yard) as live:
        app = YardApp(live.watch(), settings=yard.settings, style=style, keymap=keys, me=yard.agent)
        said = app.run() or ""
        return said, app.return_code or 0
