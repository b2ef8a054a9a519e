"""
The older `tasks.json`: one file with a whole list. Read where no `N.json` wins over it, never written.

    {"tasks": [{"id": 1, "title": "…", "status": "in_progress", "owner": "teammate-1", "dependencies": [2]}]}

`teammate-N` means the Nth tracker on the list, whose subject is the teammate's name. An entry that has an id and
cannot be read is a task nobody can read yet: its id is spent, and whoever waits for it waits.
"""

from __future__ import annotations

import os

from taskyard.disk import files
from taskyard.errors import Damaged, StorageError
from taskyard.names import LAST_WITH_ROOM, is_id
from taskyard.shapes import as_list, as_object
from taskyard.tasklist.model import DamagedFile, Task
from taskyard.tasklist.task_file import DeletedMark, Unreadable, document, task_from
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ALIASES = {"title": "subject", "dependencies": "blockedBy"}


class _Content(NamedTuple):
    """What the file said when it was last read."""

    tasks: Mapping[str, Task] = {}
    broken: Mapping[str, DamagedFile] = {}
    highest: int = 0
    damage: DamagedFile | None = None


class Consolidated:
    """The `tasks.json` of one list, read again only when it changes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._look: tuple[int, int, int] | None = None
        self._content = _Content()

    def tasks(self) -> Mapping[str, Task]:
        """What it holds, by id; nothing if there is no such file."""
        return self._now().tasks

    def broken(self) -> Mapping[str, DamagedFile]:
        """Its tasks that have an id and cannot be read, by id."""
        return self._now().broken

    def highest(self) -> int:
        """The highest id in it, readable or not, deleted or not."""
        return self._now().highest

    def damage(self) -> DamagedFile | None:
        """Why it cannot be read as a whole, or what in it has not even an id."""
        return self._now().damage

    def _now(self) -> _Content:
        if not os.access(self._path, os.F_OK):  # asked at every create: a refusal is cheaper than an exception
            self._look, self._content = None, _NOTHING
            return _NOTHING
        found = os.lstat(self._path)
        look = (found.st_mtime_ns, found.st_size, found.st_ino)
        if look != self._look:
            self._look, self._content = look, _read(self._path)
        return self._content


_NOTHING = _Content()


def _read(path: str) -> _Content:
    try:
        data = files.read(path)
        rows = as_list(document(data if data is not None else b"{}").get("tasks", []))
    except (Unreadable, Damaged, StorageError) as why:
        return _Content(damage=DamagedFile("tasks.json", getattr(why, "why", str(why))))
    if rows is None:
        return _Content(damage=DamagedFile("tasks.json", "its tasks are no list"))
    tasks: dict[str, Task] = {}
    broken: dict[str, DamagedFile] = {}
    highest, damage = 0, None
    for row in rows:
        raw = {_ALIASES.get(key, key): value for key, value in (as_object(row) or {}).items()}
        task_id = str(raw.get("id"))
        if not is_id(task_id):
            damage = DamagedFile("tasks.json", f"one of its tasks cannot be read: {str(row)[:60]}")
            continue
        highest = max(highest, int(task_id) if int(task_id) <= LAST_WITH_ROOM else 0)
        try:
            tasks[task_id] = task_from(task_id, raw)
        except DeletedMark:
            pass  # gone, as an older writer says it; only its id is spent
        except Unreadable as why:
            broken[task_id] = DamagedFile("tasks.json", f"its task #{task_id} cannot be read: {why}")
    return _Content(tasks, {key: found for key, found in broken.items() if key not in tasks}, highest, damage)


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
