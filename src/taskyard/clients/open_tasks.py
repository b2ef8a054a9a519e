"""The open tasks of a list, for a model that has forgotten them: bounded, in the words it knows from TaskList. Pure."""

from __future__ import annotations

from taskyard.context import MOST_CHARACTERS, MOST_TASKS
from taskyard.tasklist.model import TaskStatus
from taskyard.view.model_text import listing
from taskyard.view.ordering import hidden_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from taskyard.tasklist.model import Task

_RANK = (TaskStatus.IN_PROGRESS, TaskStatus.PENDING)
_HEAD = "[Automatic note from Taskyard: the open tasks of the list {name}, as they are now.]"


def open_tasks(name: str, tasks: Sequence[Task], *, unreadable: Container[str] = ()) -> str:
    """The open tasks in the words of TaskList, within bounds, those in progress first; "" if there are none."""
    visible = [task for task in tasks if not task.is_internal]
    still_open = [task for task in visible if task.status in _RANK]
    if not still_open:
        return ""
    told = dict(zip((task.id for task in visible), listing(visible, unreadable=unreadable).split("\n")))
    head = _HEAD.format(name=name)
    room = MOST_CHARACTERS - len(head) - len(hidden_line(still_open)) - 1
    chosen: set[str] = set()
    for task in sorted(still_open, key=lambda task: _RANK.index(task.status)):
        line = _harmless(told[task.id])
        room -= len(line) + 1
        if room < 0 or len(chosen) == MOST_TASKS:
            break
        chosen.add(task.id)
        told[task.id] = line
    rest = hidden_line(task for task in still_open if task.id not in chosen)
    return "\n".join([head, *(told[task.id] for task in still_open if task.id in chosen), *([rest] if rest else [])])


def _harmless(line: str) -> str:
    """A line that can neither end a tag of the client nor begin one."""
    plain = "".join(char if char.isprintable() else " " for char in line)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
