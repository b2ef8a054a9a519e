"""Which task is a part of which: a parent must be there, and no task is a part of itself, not even by way of others."""

from __future__ import annotations

from taskyard.errors import Cycle
from taskyard.names import is_id
from taskyard.shapes import as_object
from taskyard.tasklist.extras import parent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.tasklist.model import Facts, Task

    Look = Callable[[str], Task | None]


class NoParent(Exception):
    """The parent that was named is not there; whoever holds no lock any more says so in words."""

    def __init__(self, parent: str) -> None:
        super().__init__(parent)
        self.parent = parent


def parent_in(metadata: Mapping[str, object]) -> str | None:
    """The parent that a task's metadata names, be it that task itself."""
    found = (as_object(metadata.get("taskyard")) or {}).get("parent")
    return found if isinstance(found, str) and is_id(found) else None


def check_parent(task_id: str, parent: str, look: Look) -> None:
    """Refuse a parent that is not there, or is a part of the task. The caller holds the list.

    Raises:
        NoParent: there is no such task.
        Cycle: names the path.
    """
    if trail := _circle(task_id, parent, look):
        raise Cycle(trail)
    if look(parent) is None:
        raise NoParent(parent)


def refuse_bad_parent(facts: Facts, wanted: Task) -> None:
    """Refuse an update that names a new parent which cannot be one; an old one is left as it is."""
    parent = parent_in(wanted.metadata) if wanted.metadata is not facts.task.metadata else None
    if parent is not None and parent != parent_in(facts.task.metadata):
        check_parent(wanted.id, parent, facts.look)


def untangled(task: Task, look: Look) -> Task:
    """`task`, without its parent if that has become a part of it while it was away."""
    parent = parent_in(task.metadata)
    if parent is None or not _circle(task.id, parent, look):
        return task
    return task._replace(
        metadata={**task.metadata, "taskyard": {key: value for key, value in task.extra.items() if key != "parent"}}
    )


def _circle(task_id: str, parent: str, look: Look) -> tuple[str, ...] | None:
    """The circle that this parent would close, once around; one that stands above it already is not ours."""
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
