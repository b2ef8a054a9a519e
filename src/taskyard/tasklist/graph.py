"""
Who waits for whom, decided without touching the disk.

`blocked_by` is the truth; `blocks` is its mirror and is derived from it wherever many tasks are
shown. Ids that name no task are ignored, and cycles that another program wrote never loop us.
"""

from __future__ import annotations

from taskyard.errors import StillOpen
from taskyard.tasklist.model import Task, TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Edge = tuple[str, str]  #: (blocker, blocked)


def refuse_open(tasks: Iterable[Task]) -> None:
    """Refuse to put away what is still to be done."""
    if unfinished := [task.id for task in tasks if not task.is_done]:
        raise StillOpen(unfinished)


def by_id(tasks: Iterable[Task]) -> list[Task]:
    """Tasks in the order of their ids, as numbers."""
    return sorted(tasks, key=lambda task: int(task.id))


def open_blockers(task: Task, tasks: Mapping[str, Task]) -> tuple[str, ...]:
    """The ids `task` still waits for; a deleted blocker no longer blocks."""
    known = (tasks[blocker] for blocker in task.blocked_by if blocker in tasks)
    return tuple(blocker.id for blocker in known if blocker.status is not TaskStatus.COMPLETED)


def is_ready(task: Task, tasks: Mapping[str, Task]) -> bool:
    """Whether anyone could start on it now."""
    return task.status is TaskStatus.PENDING and not task.is_internal and not open_blockers(task, tasks)


def made_ready(done: Task, others: Sequence[Task], look: Mapping[str, Task]) -> tuple[Task, ...]:
    """Who waited for `done` and for nothing else any more."""
    return tuple(
        other
        for other in others
        if done.id in other.blocked_by
        and other.status is TaskStatus.PENDING
        and all(look[blocker].is_done for blocker in other.blocked_by if blocker in look and blocker != done.id)
    )


def mirrored(tasks: Sequence[Task]) -> list[Task]:
    """The same tasks, each with the `blocks` that follows from everyone's `blocked_by`."""
    blocks: dict[str, list[str]] = {}
    for task in tasks:
        for blocker in task.blocked_by:
            blocks.setdefault(blocker, []).append(task.id)
    return [with_blocks(task, blocks.get(task.id)) for task in tasks]


def with_blocks(task: Task, found: Sequence[str] | None) -> Task:
    """The task with `found` as those who wait for it; no new record where it says so already."""
    if not found:
        return task if not task.blocks else task._replace(blocks=())
    if len(found) == len(task.blocks) and set(found) == set(task.blocks):
        return task  # keep the order in which they were added
    return task._replace(blocks=tuple(found))


def path(tasks: Mapping[str, Task], start: str, goal: str) -> tuple[str, ...] | None:
    """How `start` comes to wait for `goal`: start, …, goal by `blocked_by`; None if it does not."""
    came_from: dict[str, str | None] = {start: None}
    waiting = [start]
    while waiting:
        here = waiting.pop()
        if here == goal:
            return _trail(came_from, goal)
        for blocker in tasks[here].blocked_by if here in tasks else ():
            if blocker not in came_from:
                came_from[blocker] = here
                waiting.append(blocker)
    return None


def _trail(came_from: Mapping[str, str | None], last: str) -> tuple[str, ...]:
    trail = [last]
    while (before := came_from[trail[-1]]) is not None:
        trail.append(before)
    return tuple(reversed(trail))


def closing_path(tasks: Mapping[str, Task], edge: Edge) -> tuple[str, ...] | None:
    """The cycle that making `blocker` block `blocked` would close, named once around; None if none."""
    blocker, blocked = edge
    trail = path(tasks, blocker, blocked)
    return None if trail is None else (blocked, *trail)


def cycles(tasks: Mapping[str, Task]) -> list[tuple[str, ...]]:
    """Every cycle that stands on the list, each named once around; for the doctor."""
    found: list[tuple[str, ...]] = []
    settled: set[str] = set()
    for start in tasks:
        trail: list[str] = []
        seen_here: dict[str, int] = {}
        stack: list[Any] = [(start, False)]
        while stack:
            here, leaving = stack.pop()
            if leaving:
                settled.add(trail.pop())
                del seen_here[here]
            elif here in seen_here:
                found.append((*trail[seen_here[here] :], here))
            elif here not in settled and here in tasks:
                seen_here[here] = len(trail)
                trail.append(here)
                stack.append((here, True))
                stack.extend((blocker, False) for blocker in tasks[here].blocked_by)
    return found


def half_edges(tasks: Mapping[str, Task]) -> list[Edge]:
    """Edges that only one of their two files knows."""
    forward = {(task.id, blocked) for task in tasks.values() for blocked in task.blocks if blocked in tasks}
    backward = {(blocker, task.id) for task in tasks.values() for blocker in task.blocked_by if blocker in tasks}
    return sorted(forward ^ backward, key=lambda edge: (int(edge[0]), int(edge[1])))


def levels(tasks: Mapping[str, Task]) -> dict[str, int]:
    """How many steps of waiting lie before each task; members of a cycle get the last level."""
    waits: dict[str, int] = {}
    waiting: dict[str, list[str]] = {}
    for task_id, task in tasks.items():
        blockers = {b for b in task.blocked_by if b in tasks} if task.blocked_by else ()
        waits[task_id] = len(blockers)
        for blocker in blockers:
            waiting.setdefault(blocker, []).append(task_id)
    found: dict[str, int] = {}
    level, free = 0, [task_id for task_id, count in waits.items() if not count]
    while free:
        found |= dict.fromkeys(free, level)
        freed: list[str] = []
        for blocker in free:
            for task_id in waiting.get(blocker, ()):
                waits[task_id] -= 1
                if not waits[task_id]:
                    freed.append(task_id)
        level, free = level + 1, freed
    return found | dict.fromkeys((task_id for task_id in tasks if task_id not in found), level)
