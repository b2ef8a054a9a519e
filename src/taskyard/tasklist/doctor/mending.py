"""
What a task file lacks, and what a damaged one still tells; pure.

Claude Code does not see a file that its schema refuses. We read more than it does, so a task can
be on our list and missing from its own: those are named, and made whole by writing them again.
"""

from __future__ import annotations

import json

from taskyard.names import is_id
from taskyard.shapes import as_list, as_object
from taskyard.tasklist.model import Task, TaskStatus
from taskyard.tasklist.task_file import Unreadable, task_from
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPTIONAL_TEXTS = ("activeForm", "owner")
_STATUSES = frozenset(status.value for status in TaskStatus)


def hidden_by(raw: Mapping[str, object]) -> list[str]:
    """Why Claude Code does not see a task that we can read: one phrase for each reason."""
    return list(_reasons(raw))


def _reasons(raw: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(raw.get("id"), str):
        yield "its id is no text" if "id" in raw else "it has no id"
    if not isinstance(raw.get("description"), str):
        yield "its description is null" if "description" in raw else "it has no description"
    if "status" not in raw:
        yield "it has no status"
    for key in (*_OPTIONAL_TEXTS, "metadata"):
        if key in raw and raw[key] is None:
            yield f"its {key} is null"
    for key in ("blocks", "blockedBy"):
        if not isinstance(raw.get(key), list):
            yield f"its {key} is null" if key in raw else f"it has no {key}"
        elif not all(isinstance(item, str) for item in as_list(raw[key]) or ()):
            yield f"its {key} holds what is no text"


class Mended(NamedTuple):
    """What could be saved of a damaged file."""

    task: Task
    lost: tuple[str, ...]  #: the fields that could not


def mended(task_id: str, data: bytes) -> Mended | None:
    """The task that damaged bytes still tell of; None if not even its subject can be read."""
    try:
        raw = as_object(json.loads(data.rstrip(b"\0").decode("utf-8-sig")))
    except (ValueError, RecursionError):
        return None
    if raw is None or not isinstance(raw.get("subject"), str):
        return None
    kept = {key: value for key, value in raw.items() if _is_sound(key, value)}
    try:
        task = task_from(task_id, kept)
    except Unreadable:
        return None
    return Mended(task, tuple(key for key in raw if key not in kept))


def _is_sound(key: str, value: object) -> bool:
    if key == "status":
        return value in _STATUSES
    if key in ("description", *_OPTIONAL_TEXTS):
        return value is None or isinstance(value, str)
    if key == "metadata":
        return value is None or isinstance(value, dict)
    if key in ("blocks", "blockedBy"):
        return value is None or isinstance(value, list)
    return True


def other_id(task_id: str, raw: Mapping[str, object]) -> str | None:
    """The id a file claims to have, if it is another task's than its name says."""
    inside = raw.get("id")
    text = str(inside) if isinstance(inside, (str, int)) else ""
    return None if text == task_id or (not is_id(text) and not isinstance(inside, str)) else text
