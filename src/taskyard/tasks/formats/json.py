"""JSON format of a list, which loses nothing.

    {"schema_version": 1, "list": "release", "tasks": [{"id": "1", "subject": …}, …]}

`last_id` is present if ids higher than those of the tasks were given out, so that a list that adopts the
tasks does not reuse them. A task has the keys of its file, so a folder of task files is easily turned into
an import, plus `parent`. Also accepted: a bare array of tasks, and the output of `taskyard task list
--json`.
"""

from __future__ import annotations

import json

from taskyard.core.values import as_list, as_object, check_name
from taskyard.errors import BadValue
from taskyard.tasks.formats.exchange import UNEXPORTED_KEYS, ImportedTask, check_count, check_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasks.formats.exchange import ExportedTask

SCHEMA_VERSION = 1

#: Field names by those in task files, in older files and in printed output.
_FIELDS = {
    "id": "id",
    "subject": "subject",
    "title": "subject",
    "description": "description",
    "activeForm": "active_form",
    "active_form": "active_form",
    "owner": "owner",
    "status": "status",
    "blockedBy": "blocked_by",
    "blocked_by": "blocked_by",
    "dependencies": "blocked_by",
    "parent": "parent",
    "metadata": "metadata",
    "createdAt": "created_at",
    "created_at": "created_at",
}
#: Redundant, or valid only in the list the task was exported from.
_DERIVED = frozenset(["blocks", "updatedAt", "updated_at", "lease", "ready", "notes", "open_blockers"])


def to_json(tasks: Sequence[ExportedTask], *, list_name: str = "", last_id: int = 0) -> str:
    """Return all fields of `tasks`; `last_id` is the highest id ever given out.

    Raises:
        BadValue: a task's metadata, written by another program, is not expressible in JSON (NaN).
    """
    made: dict[str, object] = {"schema_version": SCHEMA_VERSION}
    if list_name:
        made["list"] = list_name
    if last_id > max((int(item.task.id) for item in tasks), default=0):
        made["last_id"] = last_id
    made["tasks"] = [_fields(item) for item in tasks]
    try:
        text = json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (ValueError, TypeError, RecursionError) as error:
        raise BadValue("metadata", "what a task of the list holds", f"plain JSON values ({error})") from None
    if _is_encodable(text):
        return text
    return json.dumps(made, indent=2, allow_nan=False) + "\n"  # lone surrogates are written as the escapes they were


def from_json(text: str, *, source: str = "") -> list[ImportedTask]:
    """Parse the tasks in `text`; `source` overrides the list it names.

    Raises:
        BadValue, BadText: it is no JSON, or a field is malformed; names the field.
    """
    raw_tasks, named = unwrap_tasks(parse_json(text))
    check_count(len(raw_tasks))
    return [_parse_task(raw, f"tasks[{place}]", source or named) for place, raw in enumerate(raw_tasks)]


def _fields(item: ExportedTask) -> dict[str, object]:
    task = item.task
    fields: dict[str, object] = {"id": task.id, "subject": task.subject, "description": task.description}
    if task.active_form is not None:
        fields["activeForm"] = task.active_form
    if task.owner is not None:
        fields["owner"] = task.owner
    fields |= {"status": task.status.value, "blockedBy": list(item.blocked_by)}
    if item.parent is not None:
        fields["parent"] = item.parent
    if metadata := _metadata(item):
        fields["metadata"] = metadata
    if task.created_at is not None:
        fields["createdAt"] = task.created_at
    if task.updated_at is not None:
        fields["updatedAt"] = task.updated_at
    return fields


def _metadata(item: ExportedTask) -> dict[str, object]:
    metadata = dict(item.task.metadata)
    if ours := as_object(metadata.get("taskyard")):
        metadata["taskyard"] = {name: value for name, value in ours.items() if name not in UNEXPORTED_KEYS}
        if not metadata["taskyard"]:
            del metadata["taskyard"]
    return metadata


def parse_json(text: str) -> object:
    """Parse the JSON in `text`.

    Raises:
        BadValue: it is no JSON.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise BadValue("The file", "", "JSON with tasks", found="is nested too deeply") from None
    except ValueError as error:
        found = f"is not JSON ({error})" if text.strip() else "is empty"
        raise BadValue("The file", text[:20], "the JSON of an export, or an array of tasks", found=found) from None


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def unwrap_tasks(found: object) -> tuple[list[object], str]:
    """Return the raw tasks, and the list they name as their origin.

    Raises:
        BadValue: there are none.
    """
    if (bare := as_list(found)) is not None:
        return bare, ""
    wrapper = as_object(found) or {}
    version = wrapper.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise BadValue("schema_version", version, f"{SCHEMA_VERSION}; a newer Taskyard wrote this file")
    tasks = as_list(wrapper.get("tasks", wrapper.get("data")))
    if tasks is None:
        raise BadValue("The file", found, 'an array of tasks, or an object with "tasks"')
    named = wrapper.get("list", "")
    if not isinstance(named, str):
        raise BadValue("list", named, "the name of a list")
    return tasks, check_name("the list it came from", named) if named else ""


def _parse_task(raw: object, where: str, source: str) -> ImportedTask:
    given = as_object(raw)
    if given is None:
        raise BadValue(where, raw, "an object")
    fields: dict[str, object] = {}
    for name, value in given.items():
        if name in _DERIVED:
            continue
        if name not in _FIELDS:
            raise BadValue(f"The field of {where}", name, f"one of {', '.join(_FIELDS)}")
        if value is not None:
            fields[_FIELDS[name]] = value
    if "parent" not in fields:  # as in task files
        metadata = as_object(fields.get("metadata")) or {}
        fields["parent"] = (as_object(metadata.get("taskyard")) or {}).get("parent")
    return check_imported(fields.get("id", where), fields, where=where, source=source if "id" in fields else "")


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
