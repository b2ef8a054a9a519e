"""Looking at a list again and again, also while the database it lives in is away: that is said, and looking goes on."""

from __future__ import annotations

from taskyard.cli.output import say
from taskyard.errors import StoreAway

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from taskyard.cli.command import Args
    from taskyard.lists.protocol import Lists

    T = TypeVar("T")


class Steady:
    """What a command that stays does with a place that comes and goes."""

    def __init__(self, args: Args, lists: Lists) -> None:
        self._args = args
        self._lists = lists
        self.trouble = ""  #: why nothing is seen just now

    def look(self, act: Callable[[], T]) -> T | None:
        """What `act` finds; None, if the place is away."""
        try:
            with self._lists.hurried():
                found = act()
        except StoreAway as error:
            was, self.trouble = self.trouble, str(self._lists.away or error)
            if not was:
                say(self._args, self.trouble)
            return None
        if self.trouble:
            self.trouble = ""
            say(self._args, "Connected again.")
        return found
