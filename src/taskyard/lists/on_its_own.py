"""One list in a store that a program brought: there are no others beside it."""

from __future__ import annotations

import time

from taskyard.lists import counted
from taskyard.tasklist.model import Listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from taskyard.lists import ListCount
    from taskyard.lists.protocol import Lists
    from taskyard.tasklist.store import TaskStore


class ListOnItsOwn:
    """The list of one store."""

    folder = None  #: it is in none
    away = None  #: what a program brought is here

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    def names(self) -> list[str]:
        """Its name."""
        return [self._store.name]

    def count(self, name: str) -> ListCount:
        """The list, counted."""
        found = self.look(name)
        return counted(name, found, max((task.updated_at or 0 for task in found), default=0) or None)

    def look(self, name: str) -> Listing:
        """Its tasks."""
        return self._store.list() if name == self._store.name else Listing()

    def wait(self, timeout: float) -> bool:
        """There will be no others."""
        time.sleep(timeout)
        return False

    def follow(self, *, debounce: float) -> Following:
        """Hear of every change."""
        return Following(self._store)

    def hurried(self) -> AbstractContextManager[object]:
        """It is here."""
        from contextlib import nullcontext

        return nullcontext()

    def environ(self) -> Mapping[str, str]:
        """No other program can find it."""
        return {}


class Following:
    """Hears of every change of one store."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    def wait(self, timeout: float) -> None:
        """Sleep until something may have happened."""
        self._store.wait(timeout)

    def close(self) -> None:
        """Nothing is open."""


if TYPE_CHECKING:
    _conforms: type[Lists] = ListOnItsOwn
