"""What is sent to the server when a list changes: one statement, and what the decision rests on beside it."""

from __future__ import annotations

import uuid

from taskyard.clock import now_ms
from taskyard.tasklist.extras import priority_of
from taskyard.tasklist.model import Act, Lease, Task
from taskyard.tasklist.picking import is_offered
from taskyard.tasklist.planning import current, losses_after
from taskyard.tasklist.postgres.rows import body_of, lease_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import LiteralString

    from taskyard.tasklist.picking import Claim
    from taskyard.tasklist.postgres.view import ListView


class Write(NamedTuple):
    """One row as it shall be."""

    task_id: str | None  #: None: a new one
    is_gone: bool
    is_told: bool  #: whether the log tells of it; a task that is only held differently is the same task
    task: Task
    lease: Lease | None
    losses: int


#: For the rest of a transaction nobody else writes to a list; see the migration.
HAVE_LIST: LiteralString = "SELECT pg_advisory_xact_lock(7265834, %s)"

COMMIT: LiteralString = (
    "SELECT tick, new_id, at FROM commit_change(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
    " %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)

ADD: LiteralString = "SELECT new_id, at FROM add_task(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

CLAIM: LiteralString = (
    "SELECT id, created_at, at, body FROM claim_first(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)

#: What came of a request of one task that was sent before.
CAME_OF: LiteralString = "SELECT c.tasks[1], c.created[1], c.at, c.bodies[1] FROM change c WHERE c.op = %s"


def new_op() -> uuid.UUID:
    """The name of a request: one that is sent again is known by it."""
    return uuid.uuid4()


def writes(view: ListView, changed: Mapping[str, Task | None], leases: Mapping[str, Lease | None]) -> list[Write]:
    """The rows that a plan writes: what became another task, and what is held differently."""
    found: list[Write] = []
    for task_id, task in changed.items():
        before = view.row(task_id)
        after = task or (before.task if before is not None else None)
        assert after is not None, "what is removed was there"
        held = leases.get(task_id, before.lease if before is not None else None)
        losses = losses_after(before.losses if before is not None else 0, before and before.task, task)
        found.append(Write(task_id, task is None, True, after, current(task, held), losses))
    for task_id, lease in leases.items():
        before = view.row(task_id)
        if task_id not in changed and before is not None and lease != before.lease:
            found.append(Write(task_id, before.is_gone, False, before.task, current(before.task, lease), before.losses))
    return found


def commit_values(
    list_id: int,
    writes: Sequence[Write],
    act: Act,
    op: uuid.UUID,
    *,
    seen: Mapping[str, int],
    whole: int | None = None,
    dead: str | None = None,
    host: str = "",
    silence: float = 0.0,
) -> list[object]:
    """The values of `COMMIT`."""
    return [
        list_id,
        [int(task_id) for task_id in seen],
        list(seen.values()),
        whole,
        None if dead is None else int(dead),
        [None if write.task_id is None else int(write.task_id) for write in writes],
        [write.is_gone for write in writes],
        [write.is_told for write in writes],
        [write.task.status.value for write in writes],
        [write.task.owner for write in writes],
        [body_of(write.task) for write in writes],
        ["{" + ",".join(write.task.blocked_by) + "}" for write in writes],
        [priority_of(write.task) for write in writes],
        [not write.is_gone and is_offered(write.task) for write in writes],
        [lease_text(write.lease) for write in writes],
        [write.losses for write in writes],
        [instance_of(write.lease) for write in writes],
        [span_of(write.lease) for write in writes],
        host,
        round(silence * 1000),
        *act,
        op,
    ]


def add_values(
    list_id: int, task: Task, lease: Lease | None, act: Act, op: uuid.UUID, *, host: str, silence: float
) -> list[object]:
    """The values of `ADD`."""
    return [
        list_id,
        task.status.value,
        task.owner,
        body_of(task),
        priority_of(task),
        is_offered(task),
        lease_text(lease),
        instance_of(lease),
        span_of(lease),
        host,
        round(silence * 1000),
        *act,
        op,
    ]


def instance_of(lease: Lease | None) -> str | None:
    """The holder that lives as long as a process does."""
    return lease.instance if lease is not None and lease.kind == "process" else None


def span_of(lease: Lease | None) -> int | None:
    """Milliseconds from now until a lease ends, if a clock ends it; the server counts them from its own now."""
    return lease.expires - now_ms() if lease is not None and lease.expires is not None else None


def claim_values(list_id: int, claim: Claim, act: Act, op: uuid.UUID, *, host: str, silence: float) -> list[object]:
    """The values of `CLAIM`."""
    return [
        list_id,
        claim.status.value,
        claim.owner,
        lease_text(claim.lease),
        instance_of(claim.lease),
        span_of(claim.lease),
        host,
        round(silence * 1000),
        *act,
        op,
    ]
