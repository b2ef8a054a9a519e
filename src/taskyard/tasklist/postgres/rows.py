"""Tasks and leases as rows: JSON in plain ASCII where people write, so that whatever a text holds can be stored."""

from __future__ import annotations

import json

from taskyard.errors import Damaged
from taskyard.shapes import as_object
from taskyard.tasklist.lease_json import lease_from, lease_to_json
from taskyard.tasklist.model import Act, Change, Lease, Task, TaskStatus
from taskyard.tasklist.planning import current
from taskyard.tasklist.task_file import Unreadable, task_from
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, LiteralString

#: What is read of a task, in the order that `row` takes it.
COLUMNS: LiteralString = (
    "t.id, t.tick, t.is_gone, t.status, t.owner, t.created_at, t.updated_at, t.body, t.lease, t.losses, t.instance"
)

#: What is read of a change, in the order that `change` takes it.
CHANGE: LiteralString = (
    "c.id, c.at, c.actor, c.cause, c.via, c.note, c.tasks, c.statuses, c.owners, c.created, c.bodies"
)

_STATUS = {status.value: status for status in TaskStatus}


class Row(NamedTuple):
    """One task as the database has it."""

    tick: int
    is_gone: bool
    task: Task  #: as it is, or last was
    body: str
    lease_text: str | None
    losses: int
    instance: str | None  #: who holds it, if that one lives as long as a process does

    @property
    def lease(self) -> Lease | None:
        """Who holds it, dead or alive; read when somebody asks, as most are never asked about."""
        return None if self.lease_text is None else current(self.task, lease_of(self.lease_text))


def row(columns: Sequence[Any], before: Row | None = None) -> tuple[str, Row]:
    """The id and the task in `COLUMNS`; `before`: as it was known, of which most stays as it is."""
    number, tick, is_gone, status, owner, created, updated, body, lease, losses, instance = columns
    task_id = str(number)
    if before is not None and before.body == body:
        same = before.task
        task = same._replace(owner=owner, status=_STATUS[status], created_at=created, updated_at=updated)
    else:
        task = task_of(task_id, body, status, owner, created, updated)
    return task_id, Row(tick, is_gone, task, body, lease, losses, instance)


def task_of(task_id: str, body: str, status: str, owner: str | None, created: int, updated: int) -> Task:
    """The task that some columns tell of.

    Raises:
        Damaged: somebody else wrote them.
    """
    try:
        found = task_from(task_id, as_object(json.loads(body)) or {})
        return found._replace(owner=owner, status=_STATUS[status], created_at=created, updated_at=updated)
    except (ValueError, Unreadable, KeyError) as error:
        raise Damaged(f"task {task_id} in the database", str(error)) from error


def change(columns: Sequence[Any]) -> Change:
    """The change in the columns `CHANGE`."""
    number, at, actor, cause, via, note, ids, statuses, owners, created, bodies = columns
    tasks = {
        str(task_id): None if status is None else task_of(str(task_id), body, status, owner, began, at)
        for task_id, status, owner, began, body in zip(ids, statuses, owners, created, bodies)
    }
    return Change(number, at, Act(actor, cause, via, note), tasks)


def body_of(task: Task) -> str:
    """What of a task is in no column of its own, as JSON; what is not there is left out."""
    fields: dict[str, object] = {
        "subject": task.subject,
        "description": task.description,
        "activeForm": task.active_form,
        "blocks": task.blocks or None,
        "blockedBy": task.blocked_by or None,
        "metadata": task.metadata or None,
    }
    return _encode({name: value for name, value in fields.items() if value is not None})


def lease_of(text: str) -> Lease | None:
    """The lease in a text."""
    return lease_from(as_object(json.loads(text)) or {})


def lease_text(lease: Lease | None) -> str | None:
    """A lease as JSON."""
    return None if lease is None else _encode(lease_to_json(lease))


_encode = json.JSONEncoder(separators=(",", ":")).encode
