"""What leaves a list: tasks without trackers, and only references that can be followed."""

from __future__ import annotations

from taskyard.names import storable
from taskyard.shapes import as_list, as_object
from taskyard.tasklist.extras import parent_of
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.model import Task


class Outgoing(NamedTuple):
    """One task on its way out."""

    task: Task
    blocked_by: tuple[str, ...]  #: those of its blockers that leave too
    parent: str | None  #: its parent, if that leaves too


def outgoing(tasks: Iterable[Task]) -> list[Outgoing]:
    """`tasks` as every format writes them: what it says about others can be followed within the export."""
    leaving = {task.id: task for task in tasks if not task.is_internal}
    found: list[Outgoing] = []
    for task in leaving.values():
        blockers = tuple(blocker for blocker in task.blocked_by if blocker in leaving and blocker != task.id)
        parent = parent_of(task)
        found.append(Outgoing(task, blockers, parent if parent in leaving else None))
    return found


def harmless(item: Outgoing) -> Outgoing:
    """`item` without control characters, which another program may have put into it.

    A checklist or table is printed on terminals, and no import takes what nothing can show.
    """
    task = item.task
    plain = task._replace(
        subject=plain_subject(task.subject),
        description=storable(task.description),
        active_form=None if task.active_form is None else storable(task.active_form),
        owner=None if task.owner is None else storable(task.owner, keep=""),
    )
    if task.extra:
        plain = plain._replace(metadata={**task.metadata, "taskyard": _harmless(task.extra)})
    return item._replace(task=plain)


def plain_subject(subject: str) -> str:
    """A subject as an export shows it: on one line."""
    return storable(subject, keep="\t")


def _harmless(value: object) -> object:
    """The words in a value and in what is in it, each on one line."""
    if isinstance(value, str):
        return storable(value, keep="")
    if (inside := as_object(value)) is not None:
        return {name: _harmless(item) for name, item in inside.items()}
    if (items := as_list(value)) is not None:
        return [_harmless(item) for item in items]
    return value
