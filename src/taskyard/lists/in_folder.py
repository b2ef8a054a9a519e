"""All lists in a folder, by a plain look at their files."""

from __future__ import annotations

import os

from taskyard.lists import counted
from taskyard.tasklist.list_folder import ListFolder, list_names
from taskyard.tasklist.listing import ListReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from taskyard.disk.watch import Followed
    from taskyard.lists import ListCount
    from taskyard.lists.protocol import Lists
    from taskyard.tasklist.model import Listing


class ListsInFolder:
    """The lists in one folder."""

    away = None  #: files are always here

    def __init__(self, folder: str) -> None:
        self.folder: str | None = folder
        self._folder = folder
        self._followed: Followed | None = None

    def names(self) -> list[str]:
        """The names of all lists; none where there is no such folder."""
        return list_names(self._folder)

    def count(self, name: str) -> ListCount:
        """One list, counted."""
        return counted(name, self.look(name), _changed_at(os.path.join(self._folder, name)))

    def look(self, name: str) -> Listing:
        """The tasks of one list."""
        reader = ListReader(ListFolder(self._folder, name), alive=lambda _: None)
        return reader.listing(lambda _ids: None)[0]

    def wait(self, timeout: float) -> bool:
        """Sleep until there may be other lists than before."""
        from taskyard.disk.watch import watcher

        if self._followed is None:
            self._followed = watcher().follow(self._folder)
        is_told = self._followed.wait(timeout)
        self._followed.changed()
        return is_told

    def follow(self, *, debounce: float) -> Following:
        """Hear of every change."""
        return Following(self._folder, debounce)

    def hurried(self) -> AbstractContextManager[object]:
        """Files are always here."""
        from contextlib import nullcontext

        return nullcontext()

    def environ(self) -> Mapping[str, str]:
        """What another program must know."""
        return {"TASKYARD_TASKS_DIR": os.path.abspath(self._folder), "TASKYARD_STORE": "files"}


class Following:
    """Hears of every file event in the folder of lists and in each of them."""

    def __init__(self, folder: str, debounce: float) -> None:
        self._folder = folder
        self._debounce = debounce
        self._followed: dict[str, Followed] = {}  #: by list; "" is the folder of lists itself

    def wait(self, timeout: float) -> None:
        """Sleep until something may have happened in any list, or a list is made."""
        from taskyard.disk.watch import watcher

        root = self._followed.get("")
        fresh = [name for name in ["", *list_names(self._folder)] if name not in self._followed]
        for name in fresh:
            followed = watcher().follow(os.path.join(self._folder, name), wake=root)
            root = self._followed[""] if name else followed
            self._followed[name] = followed
        if fresh or root is None:
            return  # nobody listened there until now: look again before sleeping
        root.wait(timeout, debounce=self._debounce)
        for followed in self._followed.values():
            followed.changed()

    def close(self) -> None:
        """Hear no more."""
        for followed in self._followed.values():
            followed.close()


def _changed_at(path: str) -> int | None:
    """When a task last changed: every write of ours renames into the folder, others' show in the file."""
    try:
        with os.scandir(path) as entries:
            times = [entry.stat(follow_symlinks=False).st_mtime_ns for entry in entries if entry.name.endswith(".json")]
        return max([*times, os.stat(path).st_mtime_ns]) // 1_000_000
    except OSError:
        return None


if TYPE_CHECKING:
    _conforms: type[Lists] = ListsInFolder
