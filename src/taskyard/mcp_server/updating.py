"""TaskUpdate: fields, status and dependencies in one step of the list, and what to say of it."""

from __future__ import annotations

from typing import Any

from taskyard.errors import BadValue
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.arguments import TaskUpdate
from taskyard.mcp_server.bounds import LONGEST_ECHO, task_data
from taskyard.tasklist.service import TaskList
from taskyard.view import model_text

#: What an answer names, in the order models know.
_FIELDS = {
    "subject": "subject",
    "description": "description",
    "active_form": "activeForm",
    "owner": "owner",
    "status": "status",
    "blocks": "blocks",
    "blocked_by": "blockedBy",
    "metadata": "metadata",
}


def update(tasks: TaskList, given: TaskUpdate, extras: dict[str, Any]) -> Answer:
    """Change a task, and say what changed."""
    before = tasks.get(given.task_id)
    task = tasks.update(
        given.task_id,
        subject=given.subject,
        description=given.description,
        active_form=given.active_form,
        owner=given.owner,
        status=given.status,
        metadata=given.metadata,
        clear=given.clear or (),
        add_blocks=given.add_blocks or (),
        add_blocked_by=given.add_blocked_by or (),
        remove_blocks=given.remove_blocks or (),
        remove_blocked_by=given.remove_blocked_by or (),
        **extras,
    )
    changed = [name for field, name in _FIELDS.items() if getattr(before, field) != getattr(task, field)]
    text = model_text.updated(task.id, changed) if changed else f"Nothing to change: task #{task.id} is as asked for."
    ready = f"Ready now: {', '.join(f'#{other}' for other in task.ready)}." if task.ready else ""
    data = {"task": task_data(task, longest=LONGEST_ECHO), "changed": changed, "ready": list(task.ready)}
    return Answer(text, data, tuple(filter(None, (ready, *task.notes))))


def delete(tasks: TaskList, given: TaskUpdate) -> Answer:
    """Take a task off the list."""
    if others := given.model_fields_set - {"task_id", "status"}:
        names = ", ".join(sorted(type(given).model_fields[name].alias or name for name in others))
        raise BadValue("status", "deleted", f"no other field with that, and there is {names}", found="is deleted")
    gone = tasks.delete(given.task_id)
    data = {"task": task_data(gone, longest=LONGEST_ECHO), "changed": ["deleted"], "ready": []}
    return Answer(model_text.updated(gone.id, ["deleted"]), data)
