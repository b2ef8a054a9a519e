"""
Answers to a model, word for word as Claude Code gives them: models know these sentences.

Blockers that are completed are left out: what a model reads as blocked is blocked now.
"""

from __future__ import annotations

from taskyard.tasklist.model import TaskStatus
from taskyard.view.ordering import hidden_line, waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from taskyard.tasklist.model import Task

NO_TASKS = "No tasks found"
NOT_FOUND = "Task not found"


def listing(
    tasks: Iterable[Task],
    *,
    among: Mapping[str, Task] | None = None,
    unreadable: Container[str] = (),
    longest: int | None = None,
) -> str:
    """`#1 [in_progress] A (alice)` and so on, trackers left out; `among` are all tasks, where these are some.

    Beyond `longest` characters completed tasks are left out first, then the highest ids, and the last line counts them.
    """
    named = {task.id: task for task in tasks}
    shown = [task for task in named.values() if not task.is_internal]
    if not shown:
        return NO_TASKS
    by_id = named if among is None else among
    lines = {task.id: _line(task, by_id, unreadable) for task in shown}
    if longest is None or sum(map(len, lines.values())) + len(lines) - 1 <= longest:
        return "\n".join(lines.values())
    return _shortened(shown, lines, longest)


def details(task: Task, by_id: Mapping[str, Task], *, unreadable: Container[str] = ()) -> str:
    """`Task #1: A`, its status, description, open blockers, and whom it blocks."""
    parts = [
        f"Task #{task.id}: {_one_line(task.subject)}",
        f"Status: {task.status.value}",
        f"Description: {task.description}",
    ]
    if blockers := waits_for(task, by_id, unreadable):
        parts.append(f"Blocked by: {_ids(blockers)}")
    if task.blocks:
        parts.append(f"Blocks: {_ids(task.blocks)}")
    return "\n".join(parts)


def created(task: Task) -> str:
    """What TaskCreate answers."""
    return f"Task #{task.id} created successfully: {_one_line(task.subject)}"


def updated(task_id: str, fields: Sequence[str]) -> str:
    """What TaskUpdate answers: which fields changed; `deleted` for a deletion."""
    return f"Updated task #{task_id} {', '.join(fields)}".rstrip()


def _line(task: Task, by_id: Mapping[str, Task], unreadable: Container[str]) -> str:
    owner = f" ({_one_line(task.owner)})" if task.owner else ""
    blockers = waits_for(task, by_id, unreadable)
    blocked = f" [blocked by {_ids(blockers)}]" if blockers else ""
    return f"#{task.id} [{task.status.value}] {_one_line(task.subject)}{owner}{blocked}"


def _shortened(tasks: Sequence[Task], lines: Mapping[str, str], longest: int) -> str:
    room = longest - len(hidden_line(tasks))  # what is left out is never more than all
    kept: set[str] = set()
    rank = (TaskStatus.IN_PROGRESS, TaskStatus.PENDING, TaskStatus.COMPLETED)
    for task in sorted(tasks, key=lambda task: rank.index(task.status)):
        room -= len(lines[task.id]) + 1
        if room < 0:
            break
        kept.add(task.id)
    rest = hidden_line(task for task in tasks if task.id not in kept)
    return "\n".join([lines[task.id] for task in tasks if task.id in kept] + [rest])


def _ids(ids: Iterable[str]) -> str:
    return ", ".join(f"#{task_id}" for task_id in ids)


def _one_line(text: str) -> str:
    """No subject of another program may look like a second line of ours."""
    return text if text.isprintable() else " ".join(text.split())
