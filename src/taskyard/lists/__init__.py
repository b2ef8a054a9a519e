"""
All lists of one place, wherever that is: a folder of files, a database, a program's own memory.

    protocol      what can be asked of a place
    in_folder     by a plain look at the files
    in_database   by a plain look at the tables
    on_its_own    one list in a store that a program brought

Nothing here makes, locks or logs anything.
"""

from __future__ import annotations

from taskyard.typed import NamedTuple
from taskyard.view.ordering import arranged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.model import Listing


class ListCount(NamedTuple):
    """One list, counted."""

    name: str
    open: int
    done: int
    damaged: int
    changed_at: int | None  #: epoch ms
    ready: int = 0  #: of those that are open
    blocked: int = 0
    doing: int = 0


class Away(NamedTuple):
    """A place that cannot be reached just now."""

    where: str
    since: int  #: epoch ms
    why: str

    def __str__(self) -> str:
        """As every surface says it."""
        from time import localtime, strftime

        clock = strftime("%H:%M:%S", localtime(self.since / 1000))
        return f"Disconnected from the database {self.where} since {clock}, trying again: {self.why}."


def counted(name: str, listing: Listing, changed_at: int | None) -> ListCount:
    """What is on a list, in numbers."""
    unreadable = {found.file.removesuffix(".json") for found in listing.damaged}
    states = [row.state for row in arranged(listing, now=0, unreadable=unreadable)]
    done = states.count("done")
    open_states = (states.count(state) for state in ("ready", "blocked", "doing"))
    return ListCount(name, len(states) - done, done, len(listing.damaged), changed_at, *open_states)
