"""Two open claims on the same paths: warned of or refused, by setting."""

from __future__ import annotations

from taskyard.errors import PathsOverlap
from taskyard.tasklist.extras import paths_of, paths_overlap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasklist.model import Task
    from taskyard.tasklist.store import TaskStore


def overlaps(task: Task, others: Sequence[Task], agent: str | None) -> list[PathsOverlap]:
    """Who else works on paths of `task` right now."""
    mine = paths_of(task)
    if not mine:
        return []
    found: list[PathsOverlap] = []
    for other in others:
        if other.id == task.id or other.owner in (None, agent) or other.is_done:
            continue
        if shared := paths_overlap(mine, paths_of(other)):
            found.append(PathsOverlap(task.id, other.id, other.owner or "", shared))
    return found


def check_paths(store: TaskStore, task_id: str, agent: str | None, policy: str) -> tuple[str, ...]:
    """Warnings about overlapping paths; only tasks that name paths cost a look at the list.

    Raises:
        PathsOverlap: somebody else works there, and the policy is to refuse.
    """
    if policy == "off":
        return ()
    task = store.get(task_id)
    if not paths_of(task):
        return ()
    found = overlaps(task, store.list(), agent)
    if found and policy == "refuse":
        raise found[0]
    return tuple(str(overlap) for overlap in found)
