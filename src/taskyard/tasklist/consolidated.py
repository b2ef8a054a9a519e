"""
The older `tasks.json`: one file with a whole list. Read where no `N.json` wins over it, never written.

    {"tasks": [{"id": 1, "title": "…", "status": "in_progress", "owner": "teammate-1", "dependencies": [2]}]}

`teammate-N` means the Nth tracker on the list, whose subject is the teammate's name.
"""

from __future__ import annotations

import os

from taskyard.disk import files
from taskyard.errors import Damaged, StorageError
from taskyard.names import is_id
from taskyard.shapes import as_list, as_object
from taskyard.tasklist.model import DamagedFile, Task
from taskyard.tasklist.task_file import DeletedMark, Unreadable, document, task_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ALIASES = {"title": "subject", "dependencies": "blockedBy"}


class Consolidated:
    """The `tasks.json` of one list, read again only when it changes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._look: tuple[int, int, int] | None = None
        self._tasks: dict[str, Task] = {}
        self.damage: DamagedFile | None = None

    def tasks(self) -> Mapping[str, Task]:
        """What it holds, by id; nothing if there is no such file."""
        if not os.access(self._path, os.F_OK):  # asked at every create: a refusal is cheaper than an exception
            self._look, self._tasks, self.damage = None, {}, None
            return self._tasks
        found = os.lstat(self._path)
        look = (found.st_mtime_ns, found.st_size, found.st_ino)
        if look != self._look:
            self._look, self._tasks, self.damage = look, {}, None
            self._read()
        return self._tasks

    def _read(self) -> None:
        try:
            data = files.read(self._path)
            rows = document(data if data is not None else b"{}").get("tasks", [])
        except (Unreadable, Damaged, StorageError) as why:
            self.damage = DamagedFile("tasks.json", getattr(why, "why", str(why)))
            return
        for row in as_list(rows) or []:
            task = _task(row)
            if task is not None:
                self._tasks[task.id] = task
            else:
                self.damage = DamagedFile("tasks.json", f"one of its tasks cannot be read: {str(row)[:60]}")


def named_owner(task: Task, trackers: Sequence[Task]) -> Task:
    """`task` with `teammate-N` replaced by the name on the Nth tracker, where there is one."""
    kind, _, number = (task.owner or "").partition("-")
    if (
        kind != "teammate"
        or not (number.isascii() and number.isdigit() and len(number) < 10)
        or not 0 < int(number) <= len(trackers)
    ):
        return task
    return task._replace(owner=trackers[int(number) - 1].subject)


def _task(row: object) -> Task | None:
    found = as_object(row)
    if found is None:
        return None
    raw = {_ALIASES.get(key, key): value for key, value in found.items()}
    task_id = str(raw.get("id"))
    if not is_id(task_id):
        return None
    try:
        return task_from(task_id, raw)
    except (Unreadable, DeletedMark):
        return None
