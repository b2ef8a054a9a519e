"""
What each verb of a list would write, worked out on a view of it, without writing.

A store that can hold everything still (`memory_store`), or can tell afterwards that nothing it looked at has changed
(`shared_store`), shows the list as a `View`, lets one of these functions plan on it, and carries the plan out.
"""

from __future__ import annotations

from taskyard.errors import Cycle, NothingToRestore, TaskNotFound
from taskyard.tasklist import graph
from taskyard.tasklist.model import Draft, Facts, Lease, Links, Task, TaskStatus, stored
from taskyard.tasklist.parents import NoParent, check_parent, parent_in, untangled
from taskyard.tasklist.relinking import Graph, may_be_missing, others, relinked, with_, without
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Protocol

    from taskyard.tasklist.graph import Edge
    from taskyard.tasklist.store import Rule

    class View(Protocol):
        """A list as it is at one moment."""

        def look(self, task_id: str) -> Task | None:
            """One task; None if there is none."""
            ...

        def everything(self) -> Sequence[Task]:
            """All tasks, by ascending id."""
            ...

        def lease(self, task_id: str) -> Lease | None:
            """Who holds a task, if that one still lives."""
            ...

        def last_seen(self, task_id: str) -> Task | None:
            """How a task that is gone last was; None if there never was one."""
            ...

        def missing(self, task_id: str) -> TaskNotFound:
            """The error for a task that is not there."""
            ...


class Plan(NamedTuple):
    """What is to be written: tasks that may differ from what is there (None: gone), and who holds them then."""

    after: Mapping[str, Task | None]
    leases: Mapping[str, Lease | None] = {}  #: of those whose holder may be another one
    found: tuple[Task, ...] = ()  #: tasks as they were, for those who want to know
    edges: tuple[Edge, ...] = ()  #: dependencies that were there


def changed(view: View, plan: Plan, now: int) -> dict[str, Task | None]:
    """Those tasks of a plan that differ from what is there, with the time of the change; `now` in epoch ms."""
    found: dict[str, Task | None] = {}
    for task_id, task in plan.after.items():
        was = view.look(task_id)
        if task is None:
            found[task_id] = None
        elif was is None or stored(task) != stored(was):
            found[task_id] = task._replace(created_at=task.created_at or now, updated_at=now, lease=None)
    return found


def current(task: Task | None, lease: Lease | None) -> Lease | None:
    """The lease under which a task is held: of its owner, and not of one that is done."""
    is_held = task is not None and lease is not None and lease.owner == task.owner and not task.is_done
    return lease if is_held else None


def losses_after(losses: int, was: Task | None, task: Task | None) -> int:
    """How many holders a task counts as lost once it is as it shall be: it begins anew when done, or offered again."""
    if task is None or task.is_done or (was is not None and was.is_held and not task.is_held):
        return 0
    return losses


def existing(view: View, task_id: str) -> Task:
    """One task.

    Raises:
        TaskNotFound: there is none.
    """
    found = view.look(task_id)
    if found is None:
        raise view.missing(task_id)
    return found


def created(view: View, task_id: str, draft: Draft, lease: Lease | None) -> Plan:
    """A new task, and its neighbours as they look with it."""
    after = {other: existing(view, other) for other in (*draft.blocks, *draft.blocked_by)}
    for blocked in draft.blocks:
        for blocker in draft.blocked_by:
            if trail := graph.path(_graph(view)({}), blocker, blocked):
                raise Cycle(trail)
    if (parent := parent_in(draft.metadata)) is not None:
        try:
            check_parent(task_id, parent, view.look)
        except NoParent:
            raise view.missing(parent) from None
    for other in draft.blocks:
        after[other] = with_(after[other], blocked_by=task_id)
    for other in draft.blocked_by:
        after[other] = with_(after[other], blocks=task_id)
    return Plan({task_id: Task(task_id, *draft), **after}, {task_id: lease})


def updated(view: View, task_id: str, rule: Rule, links: Links | None) -> Plan:
    """What a rule says of one task, with the dependencies that come and go in the same step."""
    task = existing(view, task_id)
    decided, lease = rule(Facts(task, view.lease(task_id), view.look, view.everything))
    decided = decided._replace(lease=None)
    if links is None:
        return Plan({task_id: decided}, {task_id: lease})
    held = {task_id: decided}
    for other in others(task_id, links):
        if view.look(other) is not None or not may_be_missing(task, other, links):
            held[other] = existing(view, other)
    return Plan(relinked(held, links, _graph(view)), {task_id: lease})


def linked(view: View, edges: Sequence[Edge]) -> Plan:
    """Tasks that wait for each other from now on: all or none."""
    held = {task_id: existing(view, task_id) for edge in edges for task_id in edge}
    return Plan(relinked(held, Links(new=tuple(edges)), _graph(view)))


def unlinked(view: View, edges: Sequence[Edge]) -> Plan:
    """Tasks that no longer wait for each other; which did."""
    there = tuple(edge for edge in edges if edge[0] in existing(view, edge[1]).blocked_by)
    for blocker, _ in set(edges).difference(there):
        existing(view, blocker)  # one that is gone and still waited for is taken away like any other
    after = {task_id: task for edge in edges for task_id in edge if (task := view.look(task_id)) is not None}
    for blocker, blocked in edges:
        after[blocked] = without(after[blocked], blocked_by=blocker)
        if blocker in after:
            after[blocker] = without(after[blocker], blocks=blocked)
    return Plan(after, edges=there)


def removed(
    view: View, task_ids: Sequence[str], *, only_done: bool = False, check: Callable[[Facts], None] | None = None
) -> Plan:
    """Tasks that are gone from now on, and out of everyone's dependencies."""
    gone = {task_id: existing(view, task_id) for task_id in task_ids}
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
                left = without(without(left, blocked_by=task_id), blocks=task_id)
            after[other] = left
    return Plan(after, dict.fromkeys(gone), found=tuple(gone.values()))


def restored(view: View, task_id: str, *, list_name: str) -> Plan:
    """A task that is back: free, unless it was done, with the dependencies that still make sense."""
    if view.look(task_id) is not None:
        raise NothingToRestore(task_id, list_name=list_name)
    was = view.last_seen(task_id)
    if was is None:
        raise view.missing(task_id)
    task = untangled(was._replace(blocks=(), blocked_by=()), view.look)
    if not task.is_done:
        task = task._replace(status=TaskStatus.PENDING, owner=None)
    after = {task_id: task}
    after.update({other: found for other in _neighbours([was]) if (found := view.look(other)) is not None})
    edges = [(other, task_id) for other in was.blocked_by] + [(task_id, other) for other in was.blocks]
    for blocker, blocked in edges:
        is_there = blocker in after and blocked in after
        if is_there and graph.closing_path(_graph(view)(after), (blocker, blocked)) is None:
            after[blocked] = with_(after[blocked], blocked_by=blocker)
            after[blocker] = with_(after[blocker], blocks=blocked)
    return Plan(after, {task_id: None})


def _neighbours(tasks: Iterable[Task]) -> list[str]:
    """Who waits for some tasks, and for whom they wait."""
    return list(dict.fromkeys(other for task in tasks for other in (*task.blocks, *task.blocked_by)))


def _graph(view: View) -> Callable[[Mapping[str, Task]], Graph]:
    return lambda changed: Graph(view.look, view.everything, changed)
