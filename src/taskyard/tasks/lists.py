"""All lists of one place: a folder of files, a database (`postgres.lists`), or a program's own store.

Read-only: nothing here creates, locks or logs anything. `Lists` is the interface.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

from taskyard.core.values import NamedTuple
from taskyard.tasks.list_folder import ListFolder, list_names
from taskyard.tasks.model import Listing
from taskyard.tasks.reader import ListReader
from taskyard.tasks.text import sort_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from taskyard.storage.inotify import Subscription
    from taskyard.tasks.store import TaskStore


class ListCount(NamedTuple):
    """Task counts of one list."""

    name: str
    open: int
    done: int
    damaged: int
    changed_at: int | None  #: epoch ms
    ready: int = 0  #: of those that are open
    blocked: int = 0
    doing: int = 0


class Outage(NamedTuple):
    """A place that cannot be reached now."""

    where: str
    since: int  #: epoch ms
    why: str

    def __str__(self) -> str:
        """Return the message that every user interface shows."""
        from time import localtime, strftime

        clock = strftime("%H:%M:%S", localtime(self.since / 1000))
        return f"Disconnected from the database {self.where} since {clock}, trying again: {self.why}."


def count_tasks(name: str, listing: Listing, changed_at: int | None) -> ListCount:
    """Count the tasks of a list by state."""
    unreadable = {found.file.removesuffix(".json") for found in listing.damaged}
    states = [row.state for row in sort_tasks(listing, now=0, unreadable=unreadable)]
    done = states.count("done")
    open_states = (states.count(state) for state in ("ready", "blocked", "doing"))
    return ListCount(name, len(states) - done, done, len(listing.damaged), changed_at, *open_states)


class ListsSubscription(Protocol):
    """Subscription to every change on any list, and to new lists."""

    def wait(self, timeout: float) -> None:
        """Wait at most `timeout` seconds until something may have changed since the last wait."""
        ...

    def close(self) -> None:
        """End the subscription."""
        ...


class Lists(Protocol):
    """All lists of one place."""

    @property
    def folder(self) -> str | None:
        """The folder they are in; None: they are not in a folder."""
        ...

    @property
    def away(self) -> Outage | None:
        """Since when the place is unreachable, as far as this process tried; None: it is reachable."""
        ...

    def names(self) -> list[str]:
        """Return the names of all lists, sorted.

        Raises:
            StorageError, StoreAway: they cannot be read.
        """
        ...

    def count(self, name: str) -> ListCount:
        """Return the task counts of one list; a missing list counts as empty."""
        ...

    def look(self, name: str) -> Listing:
        """Return the tasks of one list, trackers included, with their leases as stored, even of dead holders."""
        ...

    def wait(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for a change in the set of lists; return whether there may be one."""
        ...

    def follow(self, *, debounce: float) -> ListsSubscription:
        """Subscribe to every change; where many occur, a burst is collected for `debounce` seconds."""
        ...

    def hurried(self) -> AbstractContextManager[object]:
        """Return a block within which calls fail at once if the place is unreachable, instead of retrying."""
        ...

    def environ(self) -> Mapping[str, str]:
        """Return the environment variables with which another program finds the same place."""
        ...


class ListsInFolder:
    """The lists in one folder."""

    away = None  #: files are always reachable

    def __init__(self, folder: str) -> None:
        self.folder: str | None = folder
        self._folder = folder
        self._followed: Subscription | None = None

    def names(self) -> list[str]:
        """Return the names of all lists; none if the folder is missing."""
        return list_names(self._folder)

    def count(self, name: str) -> ListCount:
        """Return the task counts of one list."""
        return count_tasks(name, self.look(name), _changed_at(os.path.join(self._folder, name)))

    def look(self, name: str) -> Listing:
        """Return the tasks of one list."""
        reader = ListReader(ListFolder(self._folder, name), alive=lambda _: None)
        return reader.listing(lambda _ids: None)[0]

    def wait(self, timeout: float) -> bool:
        """Wait for a change in the set of lists."""
        from taskyard.storage.inotify import watcher

        if self._followed is None:
            self._followed = watcher().follow(self._folder)
        is_told = self._followed.wait(timeout)
        self._followed.changed()
        return is_told

    def follow(self, *, debounce: float) -> FolderSubscription:
        """Subscribe to every change."""
        return FolderSubscription(self._folder, debounce)

    def hurried(self) -> AbstractContextManager[object]:
        """Return a null context: files are always reachable."""
        from contextlib import nullcontext

        return nullcontext()

    def environ(self) -> Mapping[str, str]:
        """Return the environment variables for another program."""
        return {"TASKYARD_TASKS_DIR": os.path.abspath(self._folder), "TASKYARD_STORE": "files"}


class FolderSubscription:
    """Subscription to file events in the folder of lists and in each list."""

    def __init__(self, folder: str, debounce: float) -> None:
        self._folder = folder
        self._debounce = debounce
        self._followed: dict[str, Subscription] = {}  #: by list; "" is the folder of lists itself

    def wait(self, timeout: float) -> None:
        """Wait until something may have changed in any list, or a list is created."""
        from taskyard.storage.inotify import watcher

        root = self._followed.get("")
        fresh = [name for name in ["", *list_names(self._folder)] if name not in self._followed]
        for name in fresh:
            followed = watcher().follow(os.path.join(self._folder, name), wake=root)
            root = self._followed[""] if name else followed
            self._followed[name] = followed
        if fresh or root is None:
            return  # new subscriptions have missed earlier changes: the caller reads again first
        root.wait(timeout, debounce=self._debounce)
        for followed in self._followed.values():
            followed.changed()

    def close(self) -> None:
        """End the subscriptions."""
        for followed in self._followed.values():
            followed.close()


def _changed_at(path: str) -> int | None:
    """Return the time of the last change: our writes change the folder's mtime, other programs' the file's."""
    try:
        with os.scandir(path) as entries:
            times = [entry.stat(follow_symlinks=False).st_mtime_ns for entry in entries if entry.name.endswith(".json")]
        return max([*times, os.stat(path).st_mtime_ns]) // 1_000_000
    except OSError:
        return None


if TYPE_CHECKING:
    _in_folder_conforms: type[Lists] = ListsInFolder


class SingleList:
    """The only list of a store that a program provides."""

    folder = None  #: it is not in a folder
    away = None  #: always reachable

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    def names(self) -> list[str]:
        """Return its name."""
        return [self._store.name]

    def count(self, name: str) -> ListCount:
        """Return the task counts."""
        found = self.look(name)
        return count_tasks(name, found, max((task.updated_at or 0 for task in found), default=0) or None)

    def look(self, name: str) -> Listing:
        """Return its tasks."""
        return self._store.list() if name == self._store.name else Listing()

    def wait(self, timeout: float) -> bool:
        """Wait for the timeout: there will be no other lists."""
        time.sleep(timeout)
        return False

    def follow(self, *, debounce: float) -> StoreSubscription:
        """Subscribe to every change."""
        return StoreSubscription(self._store)

    def hurried(self) -> AbstractContextManager[object]:
        """Return a null context: the store is always reachable."""
        from contextlib import nullcontext

        return nullcontext()

    def environ(self) -> Mapping[str, str]:
        """Return {}: no other program can find it."""
        return {}


class StoreSubscription:
    """Subscription to every change of one store."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    def wait(self, timeout: float) -> None:
        """Wait until something may have changed."""
        self._store.wait(timeout)

    def close(self) -> None:
        """Do nothing."""


if TYPE_CHECKING:
    _single_list_conforms: type[Lists] = SingleList
