"""
Where tasks stand in the graph of what waits for what: pure.

A level is a column: how many steps of waiting lie before a task. A rank is its row there, near those it waits for,
so that few lines cross. The critical path is the longest way through what is still open: what it takes at least.
"""

from __future__ import annotations

from taskyard.tasklist.graph import levels
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.tasklist.model import Task


class Place(NamedTuple):
    """Where one task stands."""

    level: int = 0
    rank: int = 0
    is_critical: bool = False


NOWHERE = Place()


def places(tasks: Mapping[str, Task]) -> dict[str, Place]:
    """Where each task stands; trackers have no place."""
    shown = {task_id: task for task_id, task in tasks.items() if not task.is_internal}
    columns: dict[int, list[str]] = {}
    level_of = levels(shown)
    for task_id in sorted(shown, key=int):
        columns.setdefault(level_of[task_id], []).append(task_id)
    rank_of: dict[str, int] = {}
    for level in sorted(columns):
        ordered = sorted(columns[level], key=lambda task_id: _middle(shown[task_id], rank_of))
        rank_of.update({task_id: rank for rank, task_id in enumerate(ordered)})
    critical = set(critical_path(shown, level_of))
    return {task_id: Place(level_of[task_id], rank_of[task_id], task_id in critical) for task_id in shown}


def critical_path(tasks: Mapping[str, Task], level_of: Mapping[str, int]) -> Sequence[str]:
    """The longest chain of open tasks, each waiting for the one before; none if nothing open waits."""
    before: dict[str, str | None] = {}
    length: dict[str, int] = {}
    for task_id in sorted(tasks, key=lambda task_id: (level_of[task_id], int(task_id))):
        task = tasks[task_id]
        if task.is_done:
            continue
        # in a circle, which somebody wrote by hand, a blocker may not have been counted yet
        best = max((b for b in task.blocked_by if b in length), key=lambda b: length[b], default=None)
        before[task_id], length[task_id] = best, 1 + (length[best] if best is not None else 0)
    last = max(length, key=lambda task_id: length[task_id], default=None)
    if last is None or length[last] < 2:
        return ()
    path: list[str] = []
    step: str | None = last
    while step is not None:
        path.append(step)
        step = before[step]
    return path[::-1]


def _middle(task: Task, rank_of: Mapping[str, int]) -> tuple[float, int]:
    """Between those it waits for; who waits for nobody stays in the order of ids, after those who do."""
    ranks = [rank_of[blocker] for blocker in task.blocked_by if blocker in rank_of]
    return (sum(ranks) / len(ranks) if ranks else float("inf"), int(task.id))
