"""All lists there are, counted by a plain look at their files: nothing is made, locked or logged by it."""

from __future__ import annotations

import os

from taskyard.tasklist.list_folder import ListFolder, list_names
from taskyard.tasklist.listing import ListReader
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class ListCount(NamedTuple):
    """One list, counted."""

    name: str
    open: int
    done: int
    damaged: int
    changed_at: int | None  #: epoch ms


def names_of(tasks_dir: str) -> tuple[str, ...]:
    """The names of all lists; none where there is no such folder."""
    return tuple(list_names(tasks_dir))


def every_list(tasks_dir: str) -> Sequence[ListCount]:
    """All lists of a folder."""
    return [counted(tasks_dir, name) for name in list_names(tasks_dir)]


def counted(tasks_dir: str, name: str) -> ListCount:
    """One list of a folder."""
    listing, _ = ListReader(ListFolder(tasks_dir, name), alive=lambda _: None).listing(lambda _ids: None)
    shown = [task for task in listing if not task.is_internal]
    done = sum(task.is_done for task in shown)
    return ListCount(name, len(shown) - done, done, len(listing.damaged), _changed_at(os.path.join(tasks_dir, name)))


def _changed_at(path: str) -> int | None:
    """When a task last changed: every write of ours renames into the folder, others' show in the file."""
    try:
        with os.scandir(path) as entries:
            times = [entry.stat(follow_symlinks=False).st_mtime_ns for entry in entries if entry.name.endswith(".json")]
        return max([*times, os.stat(path).st_mtime_ns]) // 1_000_000
    except OSError:
        return None
