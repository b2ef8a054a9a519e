"""Taking dependencies away and adding others, decided without touching the disk: both sides of each, all or none."""

from __future__ import annotations

from collections.abc import Mapping

from taskyard.errors import Cycle
from taskyard.tasklist.graph import closing_path
from taskyard.tasklist.model import Links, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Look = Callable[[str], Task | None]


class Graph(Mapping[str, Task]):
    """The list's tasks, read as a walk through them asks for them, so that no list is too long."""

    def __init__(self, look: Look, everything: Callable[[], Sequence[Task]], changed: Mapping[str, Task]) -> None:
        """`changed`: tasks that shall be different from what `look` finds."""
        self._look = look
        self._everything = everything
        self._changed = changed

    def __getitem__(self, task_id: str) -> Task:
        found = self._changed.get(task_id) or self._look(task_id)
        if found is None:
            raise KeyError(task_id)
        return found

    def __contains__(self, task_id: object) -> bool:
        return isinstance(task_id, str) and (task_id in self._changed or self._look(task_id) is not None)

    def __iter__(self) -> Iterator[str]:
        return (task.id for task in self._everything())

    def __len__(self) -> int:
        return len(self._everything())


def relinked(held: Mapping[str, Task], links: Links, tasks: Callable[[Mapping[str, Task]], Graph]) -> dict[str, Task]:
    """The tasks `held` after `links`, what goes first: an edge can be turned around in one step.

    `tasks` is the whole list with some tasks as they shall be.

    Raises:
        Cycle: some would wait for each other.
    """
    after = dict(held)
    for blocker, blocked in links.gone:
        after[blocked] = without(after[blocked], blocked_by=blocker)
        if blocker in after:  # one that is gone itself may still be waited for
            after[blocker] = without(after[blocker], blocks=blocked)
    for blocker, blocked in links.new:
        if trail := closing_path(tasks(after), (blocker, blocked)):
            raise Cycle(trail)
        after[blocked] = with_(after[blocked], blocked_by=blocker)
        after[blocker] = with_(after[blocker], blocks=blocked)
    return after


def own_side(task: Task, links: Links) -> Task:
    """A task as it looks with `links`; the other tasks' sides are not its own."""
    for blocker, blocked in links.gone:
        task = without(task, blocks=blocked) if blocker == task.id else without(task, blocked_by=blocker)
    for blocker, blocked in links.new:
        task = with_(task, blocks=blocked) if blocker == task.id else with_(task, blocked_by=blocker)
    return task


def others(task_id: str, links: Links) -> list[str]:
    """Whom `links` ties to a task or unties from it."""
    ends = {end for edge in (*links.gone, *links.new) for end in edge}
    return sorted(ends - {task_id}, key=int)


def may_be_missing(task: Task, other: str, links: Links) -> bool:
    """Whether `links` only says that the task no longer waits for `other`: it may be gone and still waited for."""
    edge = (other, task.id)
    ties = [tie for tie in (*links.gone, *links.new) if other in tie]
    return other in task.blocked_by and edge not in links.new and all(tie == edge for tie in ties)


def with_(task: Task, *, blocks: str | None = None, blocked_by: str | None = None) -> Task:
    """The task with one more that waits for it, or that it waits for."""
    if blocks is not None and blocks not in task.blocks:
        task = task._replace(blocks=(*task.blocks, blocks))
    if blocked_by is not None and blocked_by not in task.blocked_by:
        task = task._replace(blocked_by=(*task.blocked_by, blocked_by))
    return task


def without(task: Task, *, blocks: str | None = None, blocked_by: str | None = None) -> Task:
    """The task with one less that waits for it, or that it waits for."""
    if blocks in task.blocks:
        task = task._replace(blocks=tuple(other for other in task.blocks if other != blocks))
    if blocked_by in task.blocked_by:
        task = task._replace(blocked_by=tuple(other for other in task.blocked_by if other != blocked_by))
    return task
