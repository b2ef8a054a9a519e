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


def refuse_overlap(store: TaskStore, task_id: str, agent: str | None) -> None:
    """Refuse a claim on paths somebody else works on.

    Raises:
        PathsOverlap: somebody does.
    """
    task = store.get(task_id)
    if paths_of(task) and (found := overlaps(task, store.list(), agent)):
        raise found[0]


def warnings(store: TaskStore, task: Task, policy: str) -> tuple[str, ...]:
    """What the new owner of `task` should know; only tasks that name paths cost a look at the list."""
    if policy == "off" or not paths_of(task):
        return ()
    return tuple(str(overlap) for overlap in overlaps(task, store.list(), task.owner))
