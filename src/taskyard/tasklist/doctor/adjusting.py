"""What repairs of dependencies and of tasks that were set aside do to one task; pure."""

from __future__ import annotations

from taskyard.tasklist.graph import half_edges
from taskyard.tasklist.rules import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasklist.model import Task


def mirrored(task: Task, others: Sequence[Task]) -> Task:
    """A task whose `blocks` say what the others wait for."""
    known = {other.id: other for other in (task, *others)}
    for blocker, blocked in half_edges(known):
        if blocker != task.id:
            continue
        if blocker in known[blocked].blocked_by:
            task = task._replace(blocks=(*task.blocks, blocked))
        else:
            task = task._replace(blocks=tuple(other for other in task.blocks if other != blocked))
    return task


def tied_to_what_is_there(task: Task, exists: Callable[[str], object]) -> Task:
    """A task without dependencies on what is not there."""
    return task._replace(
        blocks=tuple(other for other in task.blocks if exists(other)),
        blocked_by=tuple(other for other in task.blocked_by if exists(other)),
    )


def offered(task: Task) -> Task:
    """A task that was set aside, as it was before."""
    extra = {key: value for key, value in task.extra.items() if key != "held"}
    return task._replace(metadata=merged(task.metadata, {"taskyard": extra or None}))


def past(fix: str) -> str:
    """`adds #2 to …` as it is told afterwards."""
    verb, _, rest = fix.partition(" ")
    return f"{ {'adds': 'added', 'takes': 'took', 'offers': 'offered'}.get(verb, verb) } {rest}"
