"""Reading a whole list: task files, the older `tasks.json`, leases, and what differs from what we knew."""

from __future__ import annotations

from taskyard.errors import Damaged
from taskyard.tasklist.consolidated import Consolidated, named_owner
from taskyard.tasklist.graph import by_id, mirrored
from taskyard.tasklist.leases import LeaseFiles
from taskyard.tasklist.ledger import Row
from taskyard.tasklist.model import DamagedFile, Listing, Task
from taskyard.tasklist.reader import TaskReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.tasklist.list_folder import ListFolder
    from taskyard.tasklist.writer import Writer


class ListReader:
    """Everything on one list, as its files and lease records say."""

    def __init__(self, folder: ListFolder, *, alive: Callable[[str, str], bool | None]) -> None:
        self._folder = folder
        self.reader = TaskReader(folder)
        self.leases = LeaseFiles(folder, alive=alive)
        self.consolidated = Consolidated(folder.consolidated)

    def get(self, task_id: str) -> Task | None:
        """One task with its lease, and with the `blocks` that the others agree to.

        Raises:
            Damaged: its file cannot be read.
        """
        item = self.reader.get(task_id)
        if isinstance(item, DamagedFile):
            raise Damaged(self._folder.task(task_id), item.why)
        if item is None:
            item = self._older().get(task_id)
        if item is None:
            return None
        agreed = tuple(other for other in item.blocks if self._agrees(other, task_id))
        if agreed != item.blocks:
            item = item._replace(blocks=agreed)
        lease = self.leases.current(item) if item.owner is not None else None
        return item if lease is None else item._replace(lease=lease)

    def _agrees(self, blocked: str, blocker: str) -> bool:
        other = self.look(blocked)
        return other is not None and blocker in other.blocked_by

    def look(self, task_id: str) -> Task | None:
        """Another task, for a rule; one that cannot be read counts as open."""
        item = self.reader.get(task_id)
        if isinstance(item, DamagedFile):
            return Task(task_id, "")
        return item if item is not None else self._older().get(task_id)

    def everything(self) -> list[Task]:
        """All readable tasks by id, straight from their files."""
        found = {**self._older(), **self.reader.scan()}
        return by_id(item for item in found.values() if isinstance(item, Task))

    def listing(self, writer: Callable[[], Writer | None]) -> tuple[Listing, list[str]]:
        """The whole list, and the ids whose files are not as the ledger knows them."""
        items = self.reader.scan()
        changed = self._changed(items, writer)
        found: dict[str, Task | DamagedFile] = {**self._older(), **items}
        tasks = mirrored(by_id(item for item in found.values() if isinstance(item, Task)))
        damaged = [item for item in found.values() if isinstance(item, DamagedFile)]
        if self.consolidated.damage is not None:
            damaged.append(self.consolidated.damage)
        return Listing(self._with_leases(tasks), damaged), changed

    def _with_leases(self, tasks: list[Task]) -> list[Task]:
        held = set(self.leases.ids())
        if not held:
            return tasks
        return [
            task._replace(lease=self.leases.current(task)) if task.id in held and task.owner is not None else task
            for task in tasks
        ]

    def _changed(self, items: Mapping[str, object], writer: Callable[[], Writer | None]) -> list[str]:
        """Files that another program made, changed or removed since any Taskyard process last looked."""
        fresh, gone = self.reader.news(items)
        if not fresh and not gone and gone is not None:
            return []
        known = writer()
        if known is None:
            return []
        if gone is None:  # the first look of this process: what vanished before it, only the ledger tells
            rows = dict(known.ledger.rows())
            changed = [task_id for task_id, found in fresh.items() if not rows.get(task_id, Row()).looks_like(found)]
            return changed + [task_id for task_id, row in rows.items() if row.is_present and task_id not in items]
        changed = [task_id for task_id, found in fresh.items() if not known.ledger.row(task_id).looks_like(found)]
        return changed + [task_id for task_id in gone if known.ledger.row(task_id).is_present]

    def _older(self) -> Mapping[str, Task]:
        """Tasks that only the consolidated file has, owners by name."""
        tasks = self.consolidated.tasks()
        if not tasks or not any((task.owner or "").startswith("teammate-") for task in tasks.values()):
            return tasks
        trackers = by_id(item for item in self.reader.scan().values() if isinstance(item, Task) and item.is_internal)
        return {task_id: named_owner(task, trackers) for task_id, task in tasks.items()}

    def highest_consolidated(self) -> int:
        """The highest id in the older file, which `create` must not give out again."""
        return max(map(int, self.consolidated.tasks()), default=0)
