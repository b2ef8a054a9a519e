"""What an update was asked for, checked piece by piece: a patch for the rules."""

from __future__ import annotations

from taskyard.errors import BadValue
from taskyard.tasklist.list_core import checked_ids
from taskyard.tasklist.model import Links, TaskStatus
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.list_core import Extras
    from taskyard.tasklist.rules import Patch

_CAUSES = {TaskStatus.IN_PROGRESS: "start", TaskStatus.COMPLETED: "complete", TaskStatus.PENDING: "reopen"}


def checked_status(status: str | None) -> TaskStatus | None:
    """A status by its name."""
    if status is None:
        return None
    try:
        return TaskStatus(status)
    except ValueError:
        raise BadValue("status", status, "pending, in_progress or completed") from None


def checked_extras(extras: Extras) -> dict[str, object] | None:
    """Optional fields that can be stored; None if there are none."""
    if not extras:
        return None
    from taskyard.tasklist.extras import check_named

    return check_named(cast("dict[str, object]", extras)) or None


def checked_links(
    task_id: str,
    add_blocks: Iterable[str],
    add_blocked_by: Iterable[str],
    remove_blocks: Iterable[str],
    remove_blocked_by: Iterable[str],
) -> Links | None:
    """The dependencies that come and go with an update; None if none do."""
    if not (add_blocks or add_blocked_by or remove_blocks or remove_blocked_by):
        return None
    new = [(task_id, other) for other in checked_ids(add_blocks)]
    new += [(other, task_id) for other in checked_ids(add_blocked_by)]
    gone = [(task_id, other) for other in checked_ids(remove_blocks)]
    gone += [(other, task_id) for other in checked_ids(remove_blocked_by)]
    return Links(tuple(new), tuple(gone)) if new or gone else None


def cause_of(patch: Patch) -> str:
    """The verb an update is logged under: its weightiest part."""
    if patch.status is not None:
        return _CAUSES[patch.status]
    if patch.owner is not None:
        return "assign"
    if patch.links is None or any(part is not None for part in patch[:-1]):
        return "update"
    return "block" if patch.links.new else "unblock"
