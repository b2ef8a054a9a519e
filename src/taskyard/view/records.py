"""Records as plain JSON values in snake_case: what `--json` prints and pages receive."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasklist.model import Change, Lease, Task


def task_json(task: Task, *, open_blockers: Sequence[str] | None = None, with_token: bool = False) -> dict[str, object]:
    """`task` with every field, absent ones as null.

    Args:
        task: The task.
        open_blockers: Those of its blockers that are still open, where the caller knows.
        with_token: Show the lease's token: only to the one who has just claimed the task.
    """
    record: dict[str, object] = {
        "id": task.id,
        "subject": task.subject,
        "description": task.description,
        "active_form": task.active_form,
        "owner": task.owner,
        "status": task.status.value,
        "blocks": list(task.blocks),
        "blocked_by": list(task.blocked_by),
    }
    if open_blockers is not None:
        record["open_blockers"] = list(open_blockers)
    return record | {
        "metadata": dict(task.metadata),
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "lease": lease_json(task.lease, with_token=with_token) if task.lease else None,
        "ready": list(task.ready),
        "notes": list(task.notes),
    }


def lease_json(lease: Lease, *, with_token: bool = False) -> dict[str, object]:
    """Who holds a claim; the token only on request, since it is what proves the claim."""
    record: dict[str, object] = {
        "owner": lease.owner,
        "instance": lease.instance,
        "kind": lease.kind,
        "since": lease.since,
        "expires": lease.expires,
        "host": lease.host or None,
    }
    return record | {"token": lease.token} if with_token else record


def change_json(change: Change) -> dict[str, object]:
    """One entry of the log; a task that is gone is null."""
    return {
        "id": change.id,
        "at": change.at,
        "by": change.act.by,
        "cause": change.act.cause,
        "via": change.act.via,
        "note": change.act.note or None,
        "tasks": {task_id: task_json(task) if task else None for task_id, task in change.tasks.items()},
        "aborted": change.aborted,
    }
