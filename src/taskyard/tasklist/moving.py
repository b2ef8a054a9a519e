"""
A whole list from somewhere else, brought in as it was: ids, owners, states, dependencies, times. Pure.

Unlike an import, which adds tasks to a list that lives on, nothing here is made anew. So what another program wrote
into a task, odd or not, comes along: what can be read as a task file can be moved.
"""

from __future__ import annotations

from taskyard.errors import BadName, BadValue
from taskyard.names import LARGEST_ID, check_id, check_name
from taskyard.shapes import as_object
from taskyard.tasklist.circles import refuse_circles
from taskyard.tasklist.formats.json_format import document, unwrapped
from taskyard.tasklist.model import Task
from taskyard.tasklist.parents import parent_in
from taskyard.tasklist.task_file import DeletedMark, Unreadable, is_too_deep, task_from
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Whole(NamedTuple):
    """A list as its export tells of it."""

    tasks: tuple[Task, ...]
    last: int  #: the highest id that was ever given out there


def whole(text: str) -> Whole:
    """The list that a JSON export holds.

    Raises:
        BadValue: it holds none, or a task that cannot be; says where.
        Cycle: its tasks wait for each other.
    """
    found = document(text)
    raw, _ = unwrapped(found)
    tasks = [_task(as_object(one), f"tasks[{place}]") for place, one in enumerate(raw)]
    by_id = {task.id: task for task in tasks}
    if len(by_id) != len(tasks):
        raise BadValue("The file", "an id twice", "one task for each id")
    _check_references(by_id)
    refuse_circles({task.id: task.blocked_by for task in tasks})
    last = (as_object(found) or {}).get("last_id", 0)
    if type(last) is not int or not 0 <= last <= LARGEST_ID:
        raise BadValue("last_id", last, "the highest id that was given out")
    return Whole(tuple(_mirrored(tasks)), max([last, *map(int, by_id)]))


def is_there(tasks: Iterable[Task], existing: Iterable[Task]) -> bool:
    """Whether a list has every one of those tasks already: the same id, made at the same time."""
    known = {task.id: task.created_at for task in existing}
    return all(task.id in known and task.created_at in (None, known[task.id]) for task in tasks)


def _task(raw: Mapping[str, object] | None, where: str) -> Task:
    if raw is None:
        raise BadValue(where, "something else", "an object")
    if "id" not in raw:
        raise BadValue(f"id in {where}", "none", "the id to keep")
    task_id = check_id(raw["id"])
    if is_too_deep(raw):
        raise BadValue(where, "what is nested so deeply", "what a task file can hold")
    try:
        task = task_from(task_id, raw)
    except (Unreadable, DeletedMark) as error:
        raise BadValue(where, "this object", f"a task ({str(error) or 'it is deleted'})") from None
    if task.owner is not None:
        try:
            check_name("an owner", task.owner)
        except BadName as error:
            raise BadValue(f"owner in {where}", task.owner, f"a name ({error.why})") from None
    return _with_parent(task, raw.get("parent"))


def _with_parent(task: Task, parent: object) -> Task:
    """A task as its file has it: the parent is in a field of its own only outside."""
    if not parent:
        return task
    return task._replace(metadata={**task.metadata, "taskyard": {**task.extra, "parent": check_id(parent)}})


def _check_references(tasks: Mapping[str, Task]) -> None:
    for task in tasks.values():
        for other in task.blocked_by:
            if other not in tasks:
                raise BadValue(f"blockedBy of #{task.id}", other, "the id of a task in the same file")
        parent = parent_in(task.metadata)
        if parent is not None and parent not in tasks:
            raise BadValue(f"parent of #{task.id}", parent, "the id of a task in the same file")


def _mirrored(tasks: Sequence[Task]) -> Iterable[Task]:
    """Tasks whose `blocks` say what the others wait for."""
    blocks: dict[str, list[str]] = {}
    for task in tasks:
        for blocker in task.blocked_by:
            blocks.setdefault(blocker, []).append(task.id)
    return (task._replace(blocks=tuple(blocks.get(task.id, ()))) for task in tasks)
