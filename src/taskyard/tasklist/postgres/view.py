"""A list to plan on, which remembers what was looked at: the plan holds for as long as none of that has changed."""

from __future__ import annotations

from taskyard.errors import TaskNotFound
from taskyard.names import nearest_ids
from taskyard.tasklist import graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasklist.model import Lease, Task
    from taskyard.tasklist.postgres.mirror import Known
    from taskyard.tasklist.postgres.rows import Row


class ListView:
    """Some tasks of a list or all, as of one moment; what else is asked for is fetched."""

    def __init__(self, name: str, known: Known, *, fresh: bool, load: Callable[[], Known]) -> None:
        """`fresh`: it was read for this very purpose. `load` brings everything, if only some tasks are here."""
        self.is_fresh = fresh
        self.seen: dict[str, int] = {}  #: the ticks of the tasks that were looked at; 0: there was none
        self.whole: int | None = None  #: the tick of the list, if everything was looked at
        self._name = name
        self._known = known
        self._load = load

    def row(self, task_id: str) -> Row | None:
        """What the database has of a task, be it gone."""
        found = self._known.get(task_id)
        if found is None and not self._known.is_whole and task_id not in self.seen:
            self._whole()
            found = self._known.get(task_id)
        # What was seen first is what plans rest on, also if everything was read since.
        self.seen.setdefault(task_id, found.tick if found is not None else 0)
        return found

    def look(self, task_id: str) -> Task | None:
        """One task; None if there is none."""
        found = self.row(task_id)
        return None if found is None or found.is_gone else found.task

    def everything(self) -> Sequence[Task]:
        """All tasks, by ascending id."""
        self._whole()
        self.whole = self._known.tick
        return graph.by_id(row.task for row in self._known.values() if not row.is_gone)

    def lease(self, task_id: str) -> Lease | None:
        """Who holds a task; whether that one lives was asked before (`is_dead`)."""
        found = self.row(task_id)
        return None if found is None or found.is_gone else found.lease

    def is_dead(self, task_id: str) -> bool:
        """Whether the holder of a task was gone by the server's clock."""
        return task_id in self._known.dead

    def last_seen(self, task_id: str) -> Task | None:
        """How a task that is gone last was; None if there never was one."""
        found = self.row(task_id)
        return None if found is None else found.task

    def missing(self, task_id: str) -> TaskNotFound:
        """The error for a task that is not there."""
        was = self.row(task_id) is not None
        self._whole()
        there = [row.task.id for row in self._known.values() if not row.is_gone]
        return TaskNotFound(task_id, list_name=self._name, nearest=nearest_ids(task_id, there), restorable=was)

    def _whole(self) -> None:
        """Have everything here. Ticks that were seen stand: should they differ by now, the plan is refused."""
        if not self._known.is_whole:
            self._known = self._load()
