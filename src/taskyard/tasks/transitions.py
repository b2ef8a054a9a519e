"""Plans: what an operation on a list would write, computed on a view of it. Pure functions.

A store that can lock everything (`memory_store`), or can detect afterwards that nothing it read has changed
(`postgres.task_store`), provides a `ListView`, lets one of these functions plan on it, and carries the plan
out. Dependencies are removed and added on both sides, all or none.
"""

from __future__ import annotations

from collections.abc import Mapping

from taskyard.core.values import NamedTuple
from taskyard.errors import Cycle, NothingToRestore, TaskNotFound
from taskyard.tasks import graph
from taskyard.tasks.graph import MissingParent, check_parent, cycle_path, drop_cyclic_parent
from taskyard.tasks.model import Draft, Facts, Lease, LinkChange, Task, TaskStatus, metadata_parent, stored_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Protocol

    from taskyard.tasks.graph import Edge
    from taskyard.tasks.store import Rule


if TYPE_CHECKING:
    TaskLookup = Callable[[str], Task | None]


class TaskGraph(Mapping[str, Task]):
    """The list's tasks, read lazily during a walk, so that long lists stay cheap."""

    def __init__(self, look: TaskLookup, everything: Callable[[], Sequence[Task]], changed: Mapping[str, Task]) -> None:
        """Set up; `changed` replaces tasks that `look` finds."""
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


def apply_links(
    held: Mapping[str, Task], links: LinkChange, tasks: Callable[[Mapping[str, Task]], TaskGraph]
) -> dict[str, Task]:
    """Return the tasks `held` after `links`; removals come first, so an edge can be reversed in one step.

    `tasks` returns the graph of the whole list with some tasks replaced.

    Raises:
        Cycle: some would wait for each other.
    """
    after = dict(held)
    for blocker, blocked in links.gone:
        after[blocked] = remove_link(after[blocked], blocked_by=blocker)
        if blocker in after:  # a removed blocker may still be waited for
            after[blocker] = remove_link(after[blocker], blocks=blocked)
    for blocker, blocked in links.new:
        if trail := cycle_path(tasks(after), (blocker, blocked)):
            raise Cycle(trail)
        after[blocked] = add_link(after[blocked], blocked_by=blocker)
        after[blocker] = add_link(after[blocker], blocks=blocked)
    return after


def apply_own_links(task: Task, links: LinkChange) -> Task:
    """Return a task with `links` applied to its own side."""
    for blocker, blocked in links.gone:
        task = remove_link(task, blocks=blocked) if blocker == task.id else remove_link(task, blocked_by=blocker)
    for blocker, blocked in links.new:
        task = add_link(task, blocks=blocked) if blocker == task.id else add_link(task, blocked_by=blocker)
    return task


def linked_ids(task_id: str, links: LinkChange) -> list[str]:
    """Return the other tasks that `links` links to a task or unlinks from it."""
    ends = {end for edge in (*links.gone, *links.new) for end in edge}
    return sorted(ends - {task_id}, key=int)


def may_be_missing(task: Task, other: str, links: LinkChange) -> bool:
    """Return whether `links` only removes the task's dependency on `other`, which may not exist any more."""
    edge = (other, task.id)
    ties = [tie for tie in (*links.gone, *links.new) if other in tie]
    return other in task.blocked_by and edge not in links.new and all(tie == edge for tie in ties)


def add_link(task: Task, *, blocks: str | None = None, blocked_by: str | None = None) -> Task:
    """Return the task with one dependency more."""
    if blocks is not None and blocks not in task.blocks:
        task = task._replace(blocks=(*task.blocks, blocks))
    if blocked_by is not None and blocked_by not in task.blocked_by:
        task = task._replace(blocked_by=(*task.blocked_by, blocked_by))
    return task


def remove_link(task: Task, *, blocks: str | None = None, blocked_by: str | None = None) -> Task:
    """Return the task with one dependency less."""
    if blocks in task.blocks:
        task = task._replace(blocks=tuple(other for other in task.blocks if other != blocks))
    if blocked_by in task.blocked_by:
        task = task._replace(blocked_by=tuple(other for other in task.blocked_by if other != blocked_by))
    return task


if TYPE_CHECKING:

    class ListView(Protocol):
        """A list at one moment."""

        def look(self, task_id: str) -> Task | None:
            """Return a task; None if there is none."""
            ...

        def everything(self) -> Sequence[Task]:
            """Return all tasks, by ascending id."""
            ...

        def lease(self, task_id: str) -> Lease | None:
            """Return the lease of a task, if its holder is alive."""
            ...

        def last_seen(self, task_id: str) -> Task | None:
            """Return the last state of a removed task; None if there never was one."""
            ...

        def missing(self, task_id: str) -> TaskNotFound:
            """Return the error for a missing task."""
            ...


class Plan(NamedTuple):
    """What to write: tasks that may have changed (None: removed), and their leases."""

    after: Mapping[str, Task | None]
    leases: Mapping[str, Lease | None] = {}  #: of tasks whose holder may change
    found: tuple[Task, ...] = ()  #: the tasks as they were, for the caller
    edges: tuple[Edge, ...] = ()  #: dependencies that existed


def changed_tasks(view: ListView, plan: Plan, now: int) -> dict[str, Task | None]:
    """Return the tasks of a plan that really changed, with the time of the change; `now` in epoch ms."""
    found: dict[str, Task | None] = {}
    for task_id, task in plan.after.items():
        was = view.look(task_id)
        if task is None:
            found[task_id] = None
        elif was is None or stored_fields(task) != stored_fields(was):
            found[task_id] = task._replace(created_at=task.created_at or now, updated_at=now, lease=None)
    return found


def current_lease(task: Task | None, lease: Lease | None) -> Lease | None:
    """Return the lease if it is of the task's owner and the task is not completed; else None."""
    is_held = task is not None and lease is not None and lease.owner == task.owner and not task.is_done
    return lease if is_held else None


def losses_after(losses: int, was: Task | None, task: Task | None) -> int:
    """Return a task's count of lost holders after a change: reset when completed, or no longer quarantined."""
    if task is None or task.is_done or (was is not None and was.is_held and not task.is_held):
        return 0
    return losses


def require_task(view: ListView, task_id: str) -> Task:
    """Return a task.

    Raises:
        TaskNotFound: there is none.
    """
    found = view.look(task_id)
    if found is None:
        raise view.missing(task_id)
    return found


def plan_create(view: ListView, task_id: str, draft: Draft, lease: Lease | None) -> Plan:
    """Plan a new task with its dependencies on both sides."""
    after = {other: require_task(view, other) for other in (*draft.blocks, *draft.blocked_by)}
    for blocked in draft.blocks:
        for blocker in draft.blocked_by:
            if trail := graph.wait_path(_graph_factory(view)({}), blocker, blocked):
                raise Cycle(trail)
    if (parent := metadata_parent(draft.metadata)) is not None:
        try:
            check_parent(task_id, parent, view.look)
        except MissingParent:
            raise view.missing(parent) from None
    for other in draft.blocks:
        after[other] = add_link(after[other], blocked_by=task_id)
    for other in draft.blocked_by:
        after[other] = add_link(after[other], blocks=task_id)
    return Plan({task_id: Task(task_id, *draft), **after}, {task_id: lease})


def plan_update(view: ListView, task_id: str, rule: Rule, links: LinkChange | None) -> Plan:
    """Plan the decision of a rule about one task, with dependencies changed in the same step."""
    task = require_task(view, task_id)
    decided, lease = rule(Facts(task, view.lease(task_id), view.look, view.everything))
    decided = decided._replace(lease=None)
    if links is None:
        return Plan({task_id: decided}, {task_id: lease})
    held = {task_id: decided}
    for other in linked_ids(task_id, links):
        if view.look(other) is not None or not may_be_missing(task, other, links):
            held[other] = require_task(view, other)
    return Plan(apply_links(held, links, _graph_factory(view)), {task_id: lease})


def plan_link(view: ListView, edges: Sequence[Edge]) -> Plan:
    """Plan new dependencies: all or none."""
    held = {task_id: require_task(view, task_id) for edge in edges for task_id in edge}
    return Plan(apply_links(held, LinkChange(new=tuple(edges)), _graph_factory(view)))


def plan_unlink(view: ListView, edges: Sequence[Edge]) -> Plan:
    """Plan the removal of dependencies; `edges` are those that existed."""
    there = tuple(edge for edge in edges if edge[0] in require_task(view, edge[1]).blocked_by)
    for blocker, _ in set(edges).difference(there):
        require_task(view, blocker)  # a dependency on a removed task can be removed like any other
    after = {task_id: task for edge in edges for task_id in edge if (task := view.look(task_id)) is not None}
    for blocker, blocked in edges:
        after[blocked] = remove_link(after[blocked], blocked_by=blocker)
        if blocker in after:
            after[blocker] = remove_link(after[blocker], blocks=blocked)
    return Plan(after, edges=there)


def plan_remove(
    view: ListView, task_ids: Sequence[str], *, only_done: bool = False, check: Callable[[Facts], None] | None = None
) -> Plan:
    """Plan the removal of tasks from the list and from all dependencies."""
    gone = {task_id: require_task(view, task_id) for task_id in task_ids}
    if only_done:
        graph.refuse_open(gone.values())
    if check is not None:
        for task_id, task in gone.items():
            check(Facts(task, view.lease(task_id), view.look, view.everything))
    after: dict[str, Task | None] = dict.fromkeys(gone)
    for other in _neighbours(gone.values()):
        left = view.look(other)
        if other not in gone and left is not None:
            for task_id in gone:
                left = remove_link(remove_link(left, blocked_by=task_id), blocks=task_id)
            after[other] = left
    return Plan(after, dict.fromkeys(gone), found=tuple(gone.values()))


def plan_restore(view: ListView, task_id: str, *, list_name: str) -> Plan:
    """Plan restoring a task: unclaimed unless completed, with the dependencies that are still valid."""
    if view.look(task_id) is not None:
        raise NothingToRestore(task_id, list_name=list_name)
    was = view.last_seen(task_id)
    if was is None:
        raise view.missing(task_id)
    task = drop_cyclic_parent(was._replace(blocks=(), blocked_by=()), view.look)
    if not task.is_done:
        task = task._replace(status=TaskStatus.PENDING, owner=None)
    after = {task_id: task}
    after.update({other: found for other in _neighbours([was]) if (found := view.look(other)) is not None})
    edges = [(other, task_id) for other in was.blocked_by] + [(task_id, other) for other in was.blocks]
    for blocker, blocked in edges:
        is_there = blocker in after and blocked in after
        if is_there and graph.cycle_path(_graph_factory(view)(after), (blocker, blocked)) is None:
            after[blocked] = add_link(after[blocked], blocked_by=blocker)
            after[blocker] = add_link(after[blocker], blocks=blocked)
    return Plan(after, {task_id: None})


def _neighbours(tasks: Iterable[Task]) -> list[str]:
    """Return the tasks that wait for some tasks, and those they wait for."""
    return list(dict.fromkeys(other for task in tasks for other in (*task.blocks, *task.blocked_by)))


def _graph_factory(view: ListView) -> Callable[[Mapping[str, Task]], TaskGraph]:
    return lambda changed: TaskGraph(view.look, view.everything, changed)
