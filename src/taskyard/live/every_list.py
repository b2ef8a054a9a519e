"""All lists there are, counted by a plain look at their files: nothing is made, locked or logged by it."""

from __future__ import annotations

import os

from taskyard.tasklist.list_folder import ListFolder, list_names
from taskyard.tasklist.listing import ListReader
from taskyard.typed import NamedTuple
from taskyard.view.ordering import arranged


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


def names_of(tasks_dir: str) -> tuple[str, ...]:
    """The names of all lists; none where there is no such folder."""
    return tuple(list_names(tasks_dir))


def counted(tasks_dir: str, name: str) -> ListCount:
    """One list of a folder."""
    listing, _ = ListReader(ListFolder(tasks_dir, name), alive=lambda _: None).listing(lambda _ids: None)
    unreadable = {found.file.removesuffix(".json") for found in listing.damaged}
    states = [row.state for row in arranged(listing, now=0, unreadable=unreadable)]
    done = states.count("done")
    changed_at = _changed_at(os.path.join(tasks_dir, name))
    open_states = (states.count(state) for state in ("ready", "blocked", "doing"))
    return ListCount(name, len(states) - done, done, len(listing.damaged), changed_at, *open_states)


def _changed_at(path: str) -> int | None:
    """When a task last changed: every write of ours renames into the folder, others' show in the file."""
    try:
        with os.scandir(path) as entries:
            times = [entry.stat(follow_symlinks=False).st_mtime_ns for entry in entries if entry.name.endswith(".json")]
        return max([*times, os.stat(path).st_mtime_ns]) // 1_000_000
    except OSError:
        return None
