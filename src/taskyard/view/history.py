"""What happened to one task, in words: `ada claimed it`. Pure."""

from __future__ import annotations

from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.model import Change, Task

#: What somebody did, by the cause that the log has of it; of others, the cause itself is told.
_DID = {
    "create": "created it",
    "import": "imported it",
    "claim": "claimed it",
    "start": "began to work on it",
    "complete": "completed it",
    "release": "gave it back",
    "assign": "gave it to somebody",
    "update": "changed it",
    "block": "made it wait",
    "unblock": "let it wait for less",
    "delete": "removed it",
    "restore": "brought it back",
    "reopen": "opened it again",
    "archive": "put it away",
    "lease_lost": "lost it",
    "renew": "holds on to it",
}

_OUTSIDE = "another program changed it"


def history(changes: Iterable[Change], task_id: str) -> list[dict[str, object]]:
    """Each change of a task that took effect, oldest first."""
    rows: list[dict[str, object]] = []
    before: Task | None = None
    for change in changes:
        if task_id not in change.tasks or change.aborted:
            continue
        after = change.tasks[task_id]
        rows.append(_row(change, before, after))
        before = after
    return rows


def _row(change: Change, before: Task | None, after: Task | None) -> dict[str, object]:
    return {
        "id": change.id,
        "at": change.at,
        "by": safe(change.act.by) if change.act.by else None,
        "cause": safe(change.act.cause),
        "via": safe(change.act.via),
        "note": safe(change.act.note) if change.act.note else None,
        "words": _who_waits(before, after) or in_words(change),
    }


def _who_waits(before: Task | None, after: Task | None) -> str:
    """What an act on other tasks changed here, if no more than who waits for this one; empty: it did more."""
    if before is None or after is None:
        return ""
    if before._replace(blocks=after.blocks, updated_at=after.updated_at, lease=after.lease) != after:
        return ""
    came = [one for one in after.blocks if one not in before.blocks]
    went = [one for one in before.blocks if one not in after.blocks]
    more = f"{', '.join(came)} {_wait(came)} for it" if came else ""
    less = f"{', '.join(went)} no longer {_wait(went)} for it" if went else ""
    return " and ".join(filter(None, (more, less)))


def _wait(ids: list[str]) -> str:
    return "waits" if len(ids) == 1 else "wait"


def in_words(change: Change) -> str:
    """One change, as a sentence without its full stop."""
    if change.act.cause == "external":
        return _OUTSIDE
    who = safe(change.act.by) if change.act.by else "somebody"
    return f"{who} {_DID.get(change.act.cause) or safe(change.act.cause)}"
