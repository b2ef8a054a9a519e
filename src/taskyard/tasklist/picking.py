"""Which free task comes next: pure."""

from __future__ import annotations

from taskyard.tasklist import rules
from taskyard.tasklist.extras import priority_of
from taskyard.tasklist.graph import open_blockers
from taskyard.tasklist.overlap import overlaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasklist.model import Task


def in_order(
    tasks: Sequence[Task], suits: Callable[[Task], bool], *, agent: str | None, policy: str = "off"
) -> list[str]:
    """The ids of free, ready and suitable tasks: by priority where set, then by id."""
    by_id = {task.id: task for task in tasks}
    ready = [task for task in rules.free(tasks) if not open_blockers(task, by_id) and suits(task)]
    if policy == "refuse":
        ready = [task for task in ready if not overlaps(task, tasks, agent)]
    return [task.id for task in sorted(ready, key=lambda task: (priority_of(task), int(task.id)))]
