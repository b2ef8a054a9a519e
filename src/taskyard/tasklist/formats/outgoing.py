"""What leaves a list: tasks without trackers, and only references that can be followed."""

from __future__ import annotations

from taskyard.tasklist.extras import parent_of
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.model import Task


class Outgoing(NamedTuple):
    """One task on its way out."""

    task: Task
    blocked_by: tuple[str, ...]  #: those of its blockers that leave too
    parent: str | None  #: its parent, if that leaves too


def outgoing(tasks: Iterable[Task]) -> list[Outgoing]:
    """`tasks` as every format writes them: what it says about others can be followed within the export."""
    leaving = {task.id: task for task in tasks if not task.is_internal}
    found: list[Outgoing] = []
    for task in leaving.values():
        blockers = tuple(blocker for blocker in task.blocked_by if blocker in leaving and blocker != task.id)
        parent = parent_of(task)
        found.append(Outgoing(task, blockers, parent if parent in leaving else None))
    return found
