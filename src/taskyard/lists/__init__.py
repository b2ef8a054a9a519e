"""
All lists of one place, wherever that is: a folder of files, a database, a program's own memory.

    in_folder     by a plain look at the files
    in_database   by a plain look at the tables
    on_its_own    one list in a store that a program brought

Nothing here makes, locks or logs anything.
"""

from __future__ import annotations

from typing import Protocol

from taskyard.typed import NamedTuple
from taskyard.view.ordering import arranged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

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


class Following(Protocol):
    """Hears of every change on any list, and of new lists."""

    def wait(self, timeout: float) -> None:
        """Sleep until something may have changed since the last wait, at most so many seconds."""
        ...

    def close(self) -> None:
        """Hear no more."""
        ...


class Lists(Protocol):
    """All lists of one place."""

    @property
    def folder(self) -> str | None:
        """The folder they are in; None: they are in no folder."""
        ...

    @property
    def away(self) -> Away | None:
        """Since when the place is out of reach, as far as anybody here tried; None: it answered."""
        ...

    def names(self) -> list[str]:
        """The names of all lists, sorted.

        Raises:
            StorageError, StoreAway: they cannot be read.
        """
        ...

    def count(self, name: str) -> ListCount:
        """One list, counted; one that is not there has nothing in it."""
        ...

    def look(self, name: str) -> Listing:
        """The tasks of one list, trackers included, with their leases as they are written, of the living or not."""
        ...

    def wait(self, timeout: float) -> bool:
        """Sleep until there may be other lists than before, at most so many seconds; whether there may be."""
        ...

    def follow(self, *, debounce: float) -> Following:
        """Hear of every change from now on; a burst gathers for `debounce` seconds where the place is busy."""
        ...

    def hurried(self) -> AbstractContextManager[object]:
        """Within the block nobody waits for a place that is away: it is said at once."""
        ...

    def environ(self) -> Mapping[str, str]:
        """What another program's environment must hold so that it finds the same place."""
        ...


def counted(name: str, listing: Listing, changed_at: int | None) -> ListCount:
    """What is on a list, in numbers."""
    unreadable = {found.file.removesuffix(".json") for found in listing.damaged}
    states = [row.state for row in arranged(listing, now=0, unreadable=unreadable)]
    done = states.count("done")
    open_states = (states.count(state) for state in ("ready", "blocked", "doing"))
    return ListCount(name, len(states) - done, done, len(listing.damaged), changed_at, *open_states)
