"""
A task as bytes: exactly the JSON Claude Code writes and accepts.

2-space JSON, raw UTF-8, no newline at the end, absent optionals absent. Keys that neither program
knows are carried over, so that an older version never erases what a newer one wrote.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring

from taskyard.errors import BadValue
from taskyard.names import is_id
from taskyard.shapes import as_list, as_object
from taskyard.tasklist.model import Task, TaskStatus
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Deeper metadata is a trap for recursive readers, not data.
DEEPEST_METADATA = 50
#: What another program wrote is read up to here: the deepest that is certain to be written back.
DEEPEST_FILE = 200
LARGEST_METADATA = 1_000_000

_KNOWN = frozenset(
    {"id", "subject", "description", "activeForm", "owner", "status"}
    | {"blocks", "blockedBy", "metadata", "createdAt", "updatedAt"}
)
_STATUS = {status.value: status for status in TaskStatus}


class Unreadable(Exception):
    """Bytes that are no task; the text says why."""


class DeletedMark(Exception):
    """A file with status `deleted`, as older writers left instead of removing it."""


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:  # 1e999: no program could write it back as JSON
        raise ValueError(f"{text[:20]} is too large a number")
    return number


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _decoded(text: str) -> object:
    if text.startswith("{"):  # nearly always, and then without a search for white space before and after
        found, end = _decoder.raw_decode(text)
        if end == len(text):
            return found
    return _decoder.decode(text)


def document(data: bytes) -> dict[str, object]:
    """The JSON object in `data`.

    Raises:
        Unreadable: there is none.
    """
    try:
        found = _decoded(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Unreadable("it is empty" if not data.strip(b"\0 \n") else f"it is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise Unreadable("it is JSON, but no object")
    raw = cast("dict[str, object]", found)
    if data.count(b"[") + data.count(b"{") > DEEPEST_FILE and is_too_deep(raw):
        raise Unreadable(f"it nests deeper than {DEEPEST_FILE} levels")
    return raw


def is_too_deep(raw: Mapping[str, object]) -> bool:
    """Whether a task nests deeper than anybody reads."""
    return _depth(raw, DEEPEST_FILE) > DEEPEST_FILE


def task_from(task_id: str, raw: Mapping[str, object]) -> Task:
    """The task in a file named after `task_id`; older writers' omissions are filled in.

    Raises:
        Unreadable: a field has the wrong type.
        DeletedMark: the file only says that there is no such task any more.
    """
    get = raw.get
    status = get("status", "pending")
    if status == "deleted":
        raise DeletedMark
    if not isinstance(status, str) or status not in _STATUS:
        raise Unreadable(f"its status is {str(status)[:40]!r}")
    subject = get("subject")
    if not isinstance(subject, str):
        raise Unreadable("it has no subject")
    metadata: object = get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Unreadable("its metadata is no object")
    return Task(
        task_id,
        subject,
        _text(raw, "description") or "",
        _text(raw, "activeForm"),
        _text(raw, "owner") or None,
        _STATUS[status],
        _ids(raw, "blocks"),
        _ids(raw, "blockedBy"),
        cast("dict[str, object]", metadata),
        _moment(get("createdAt")),
        _moment(get("updatedAt")),
    )


def _text(raw: Mapping[str, object], key: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise Unreadable(f"its {key} is no text")
    return value


def _ids(raw: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = raw.get(key)
    if not value:
        if value is None or isinstance(value, list):
            return ()
        raise Unreadable(f"its {key} is no list")
    if not isinstance(value, list):
        raise Unreadable(f"its {key} is no list")
    ids = [str(item) for item in cast("list[object]", value) if isinstance(item, (str, int))]
    return tuple(dict.fromkeys(item for item in ids if is_id(item)))  # what no task can be called blocks nothing


def _moment(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) and 0 < value < 1e15 else None


def encoded(task: Task, keep: Mapping[str, object] | None = None) -> bytes:
    """`task` as its file's bytes; unknown keys of `keep` follow at the end."""
    text = encode_basestring
    parts = [
        f'{{\n  "id": {text(task.id)},\n  "subject": {text(task.subject)},\n  "description": {text(task.description)}'
    ]
    if task.active_form is not None:
        parts.append(f'  "activeForm": {text(task.active_form)}')
    if task.owner is not None:
        parts.append(f'  "owner": {text(task.owner)}')
    parts.append(
        f'  "status": "{task.status.value}",\n  "blocks": {_array(task.blocks)},\n'
        f'  "blockedBy": {_array(task.blocked_by)}'
    )
    if task.metadata:
        parts.append(f'  "metadata": {_nested(task.metadata)}')
    if task.created_at is not None:
        parts.append(f'  "createdAt": {task.created_at}')
    if task.updated_at is not None:
        parts.append(f'  "updatedAt": {task.updated_at}')
    for key, value in (keep or {}).items():
        if key not in _KNOWN:
            parts.append(f"  {text(key)}: {_nested(value)}")
    # A lone surrogate (from another program's escape) goes back to disk as the escape it was.
    return (",\n".join(parts) + "\n}").encode("utf-8", "backslashreplace")


def _array(ids: tuple[str, ...]) -> str:
    return "[\n    " + ",\n    ".join(f'"{task_id}"' for task_id in ids) + "\n  ]" if ids else "[]"


def _nested(value: object) -> str:
    # Newlines inside strings are escaped, so every real one is the layout's.
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).replace("\n", "\n  ")


def check_metadata(metadata: object) -> dict[str, object]:
    """`metadata`, if it can be stored as JSON and read back by everyone.

    Raises:
        BadValue: it is no object, too deep, too large, or holds what JSON cannot.
    """
    found = as_object(metadata)
    if found is None:
        raise BadValue("metadata", str(metadata), "an object with text keys")
    if _depth(found, DEEPEST_METADATA) > DEEPEST_METADATA:
        raise BadValue("metadata", "this object", f"at most {DEEPEST_METADATA} levels")
    try:
        size = len(json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8"))
    except (TypeError, ValueError) as error:
        raise BadValue("metadata", "this object", f"plain JSON values ({error})") from None
    if size > LARGEST_METADATA:
        raise BadValue("metadata", f"an object of {size:,} bytes", f"at most {LARGEST_METADATA:,} bytes")
    return found


def _depth(value: object, most: int) -> int:
    """How deep `value` nests, up to `most` + 1, without recursing into a trap."""
    level, here = 0, [value]
    while here and level <= most:
        level += 1
        here = [inner for item in here for inner in _inside(item)]
    return level


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[object, object]", value).values())
    return as_list(value) or []
