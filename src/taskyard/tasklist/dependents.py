"""Who waits for whom, the other way round: kept in step with the list one task at a time."""

from __future__ import annotations

from taskyard.tasklist.model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Dependents:
    """By task, the ids of those that name it in `blocked_by`."""

    def __init__(self, items: Iterable[object]) -> None:
        """`items`: everything on a list; what is no task waits for nothing."""
        self._waiting: dict[str, set[str]] = {}
        for item in items:
            self.replace(None, item)

    def replace(self, before: object, after: object) -> None:
        """Take in that one task is different now; None = it is not there."""
        if isinstance(before, Task):
            for blocker in before.blocked_by:
                self._waiting[blocker].discard(before.id)
        if isinstance(after, Task):
            for blocker in after.blocked_by:
                self._waiting.setdefault(blocker, set()).add(after.id)

    def of(self, task_id: str) -> set[str]:
        """Who waits for the task; not to be changed."""
        return self._waiting.get(task_id, set())
