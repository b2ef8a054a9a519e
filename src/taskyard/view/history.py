"""What happened to one task, in words: `ada claimed it`. Pure."""

from __future__ import annotations

from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.model import Change

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
    return [
        {
            "id": change.id,
            "at": change.at,
            "by": safe(change.act.by) if change.act.by else None,
            "cause": safe(change.act.cause),
            "via": safe(change.act.via),
            "note": safe(change.act.note) if change.act.note else None,
            "words": in_words(change),
        }
        for change in changes
        if task_id in change.tasks and not change.aborted
    ]


def in_words(change: Change) -> str:
    """One change, as a sentence without its full stop."""
    if change.act.cause == "external":
        return _OUTSIDE
    who = safe(change.act.by) if change.act.by else "somebody"
    return f"{who} {_DID.get(change.act.cause) or safe(change.act.cause)}"
