"""Which rows a filter leaves: `importer`, or `!done` for all others. Pure."""

from __future__ import annotations

from typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.view.job_views import JobView
    from taskyard.view.people import Person
    from taskyard.view.task_views import TaskView


Item = TypeVar("Item")


def passing(items: Sequence[Item], text: Callable[[Item], str], filter_: str) -> Sequence[Item]:
    """Those of `items` that pass a filter."""
    return [item for item in items if matches(text(item), filter_)] if filter_ else items


def matches(text: str, filter_: str) -> bool:
    """Whether a text passes a filter; capital letters do not matter, `!` turns it round.

    >>> matches("12 Migrate @ada", "ADA"), matches("12 Migrate @ada", "!ada"), matches("x", "")
    (True, False, True)
    """
    wanted = filter_.strip().lower()
    if wanted.startswith("!"):
        return not wanted[1:] or wanted[1:] not in text.lower()
    return wanted in text.lower()


def task_text(task: TaskView) -> str:
    """What a filter looks at in a task."""
    return f"{task.id} {task.subject} {task.word} {task.note} {' '.join(task.labels)} @{task.owner or ''}"


def job_text(job: JobView) -> str:
    """What a filter looks at in a job."""
    return f"{job.id} {job.description} {job.kind} {job.word} {job.command} {job.last_line} @{job.agent or ''}"


def person_text(person: Person) -> str:
    """What a filter looks at in somebody."""
    return f"{person.name} {person.state} {person.doing}"
