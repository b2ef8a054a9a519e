"""What can be asked of a place that has lists. Implementations: `in_folder`, `in_database`, `on_its_own`."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from taskyard.lists import Away, ListCount
    from taskyard.tasklist.model import Listing


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
