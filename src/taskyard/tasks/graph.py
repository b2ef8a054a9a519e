"""Dependency graph of tasks: cycles, readiness, levels, dependents, parents. Pure functions.

`blocked_by` is authoritative; `blocks` is its mirror and is derived from it wherever many tasks are shown.
Ids that name no task are ignored, and cycles that another program wrote never cause an endless loop. Cycles
are found in time linear in the number of tasks. A parent must exist, and no task may be a part of itself,
even indirectly.
"""

from __future__ import annotations

from taskyard.errors import Cycle, StillOpen
from taskyard.tasks.model import Task, metadata_parent, parent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from typing import Any

    from taskyard.tasks.model import Facts


if TYPE_CHECKING:
    Edge = tuple[str, str]  #: (blocker, blocked)


def refuse_open(tasks: Iterable[Task]) -> None:
    """Refuse to archive tasks that are not completed."""
    if unfinished := [task.id for task in tasks if not task.is_done]:
        raise StillOpen(unfinished)


def wait_path(tasks: Mapping[str, Task], start: str, goal: str) -> tuple[str, ...] | None:
    """Return the path start, …, goal by `blocked_by`; None if `start` does not wait for `goal`."""
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


def cycle_path(tasks: Mapping[str, Task], edge: Edge) -> tuple[str, ...] | None:
    """Return the cycle that making `blocker` block `blocked` would close; None if none."""
    blocker, blocked = edge
    trail = wait_path(tasks, blocker, blocked)
    return None if trail is None else (blocked, *trail)


def find_cycles(tasks: Mapping[str, Task]) -> list[tuple[str, ...]]:
    """Return every cycle on the list, for the doctor."""
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
    """Return edges that only one of their two tasks records."""
    forward = {(task.id, blocked) for task in tasks.values() for blocked in task.blocks if blocked in tasks}
    backward = {(blocker, task.id) for task in tasks.values() for blocker in task.blocked_by if blocker in tasks}
    return sorted(forward ^ backward, key=lambda edge: (int(edge[0]), int(edge[1])))


def levels(tasks: Mapping[str, Task]) -> dict[str, int]:
    """Return the number of waiting steps before each task; members of a cycle get the last level."""
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


def refuse_cycles(waits: Mapping[str, Sequence[str]], *, through: Container[str] | None = None) -> None:
    """Refuse a cycle of waiting tasks; with `through`, only one with a member of it.

    Raises:
        Cycle: there is one; its path begins and ends with the same task.
    """
    core = _cyclic_core(waits)
    if through is None:
        if core:
            raise Cycle(_any_cycle(core))
        return
    for node in core:
        if node in through and (path := _shortest_cycle(node, core)):
            raise Cycle(path)


def break_cycles(parents: Mapping[str, str]) -> dict[str, str]:
    """Return, of each cycle of parents, the first task given and its parent: without those there is none."""
    place = {node: number for number, node in enumerate(parents)}
    cut: dict[str, str] = {}
    walked: dict[str, str] = {}  # by node: the start of the walk that visited it
    for start in parents:
        node = start
        while node in parents and node not in walked:
            walked[node] = start
            node = parents[node]
        if node in parents and walked[node] == start:
            circle = [node]
            while (after := parents[circle[-1]]) != node:
                circle.append(after)
            first = min(circle, key=place.__getitem__)
            cut[first] = parents[first]
    return cut


def _cyclic_core(waits: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the rest after repeatedly removing every node that waits for no remaining node.

    Every remaining node waits for another one: it is in a cycle, or leads to one.
    """
    left = {node: [after for after in afters if after in waits] for node, afters in waits.items()}
    waiting: dict[str, list[str]] = {}
    for node, afters in left.items():
        for after in afters:
            waiting.setdefault(after, []).append(node)
    count = {node: len(afters) for node, afters in left.items()}
    free = [node for node, number in count.items() if not number]
    while free:
        gone = free.pop()
        del left[gone]
        for node in waiting.get(gone, ()):
            count[node] -= 1
            if not count[node]:
                free.append(node)
    return {node: [after for after in afters if after in left] for node, afters in left.items()}


def _any_cycle(core: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a cycle found by walking until a node repeats."""
    node = next(iter(core))
    place: dict[str, int] = {}
    path: list[str] = []
    while node not in place:
        place[node] = len(path)
        path.append(node)
        node = core[node][0]
    return [*path[place[node] :], node]


def _shortest_cycle(start: str, core: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return the shortest path from `start` to itself."""
    came_from: dict[str, str] = {}
    here = [start]
    while here:
        following: list[str] = []
        for node in here:
            for after in core[node]:
                if after == start:
                    return _cycle_from(start, node, came_from)
                if after not in came_from:
                    came_from[after] = node
                    following.append(after)
        here = following
    return None


def _cycle_from(start: str, last: str, came_from: Mapping[str, str]) -> list[str]:
    path = [start, last] if last != start else [start]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    if len(path) == 1:
        path.append(start)
    return path[::-1]


class Dependents:
    """By task, the ids of those that name it in `blocked_by`; updated one task at a time."""

    def __init__(self, items: Iterable[object]) -> None:
        """Index `items`, everything on a list; items that are no tasks wait for nothing."""
        self._waiting: dict[str, set[str]] = {}
        for item in items:
            self.replace(None, item)

    def replace(self, before: object, after: object) -> None:
        """Replace one task in the index; None = absent."""
        if isinstance(before, Task):
            for blocker in before.blocked_by:
                self._waiting[blocker].discard(before.id)
        if isinstance(after, Task):
            for blocker in after.blocked_by:
                self._waiting.setdefault(blocker, set()).add(after.id)

    def of(self, task_id: str) -> set[str]:
        """Return the ids that wait for the task; the set must not be changed."""
        return self._waiting.get(task_id, set())


if TYPE_CHECKING:
    TaskLookup = Callable[[str], Task | None]


class MissingParent(Exception):
    """The named parent does not exist; the caller reports it after releasing its locks."""

    def __init__(self, parent: str) -> None:
        super().__init__(parent)
        self.parent = parent


def check_parent(task_id: str, parent: str, look: TaskLookup) -> None:
    """Refuse a parent that does not exist, or is a part of the task. The caller holds the list lock.

    Raises:
        MissingParent: there is no such task.
        Cycle: names the path.
    """
    if trail := _parent_cycle(task_id, parent, look):
        raise Cycle(trail)
    if look(parent) is None:
        raise MissingParent(parent)


def refuse_bad_parent(facts: Facts, wanted: Task) -> None:
    """Refuse an update that names an invalid new parent; an existing one is left as it is."""
    parent = metadata_parent(wanted.metadata) if wanted.metadata is not facts.task.metadata else None
    if parent is not None and parent != metadata_parent(facts.task.metadata):
        check_parent(wanted.id, parent, facts.look)


def drop_cyclic_parent(task: Task, look: TaskLookup) -> Task:
    """Return `task`, without its parent if that became a part of it while the task was removed."""
    parent = metadata_parent(task.metadata)
    if parent is None or not _parent_cycle(task.id, parent, look):
        return task
    return task._replace(
        metadata={**task.metadata, "taskyard": {key: value for key, value in task.extra.items() if key != "parent"}}
    )


def _parent_cycle(task_id: str, parent: str, look: TaskLookup) -> tuple[str, ...] | None:
    """Return the cycle that this parent would close; an existing cycle above it does not count."""
    trail = {task_id: None, parent: None}
    here = parent
    while here != task_id:
        above = look(here)
        upper = parent_of(above) if above is not None else None
        if upper == task_id:
            break
        if upper is None or upper in trail:
            return None
        trail[upper] = None
        here = upper
    return (*trail, task_id)
