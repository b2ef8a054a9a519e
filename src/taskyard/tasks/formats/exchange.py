"""Tasks in transit: validation of imported tasks and preparation of exported ones, for all formats.

Every format uses these, so every format has the same checks and the same errors, each naming the line or
element. Exports leave out trackers and references to tasks that are not exported.
"""

from __future__ import annotations

from taskyard.core.values import (
    LONGEST_SUBJECT,
    NamedTuple,
    as_list,
    as_object,
    check_name,
    check_subject,
    check_text,
    escape_unstorable,
)
from taskyard.errors import BadName, BadText, BadValue
from taskyard.tasks.model import Draft, TaskStatus, check_extras, parent_of
from taskyard.tasks.reader import check_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskyard.tasks.model import Task


#: Characters; larger files are no task lists, and the bound keeps a hostile one from filling the memory.
LARGEST_TEXT = 64_000_000
MOST_TASKS = 100_000
MOST_BLOCKERS = 1_000
LONGEST_KEY = 200

#: Key in `metadata.taskyard` for the origin of an imported task.
ORIGIN = "imported"

#: Metadata that is not exported: the parent has its own field, the origin concerns only this list.
UNEXPORTED_KEYS = ("parent", ORIGIN)

_STATUS_WORDS = {
    "": TaskStatus.PENDING,
    "todo": TaskStatus.PENDING,
    "doing": TaskStatus.IN_PROGRESS,
    "done": TaskStatus.COMPLETED,
} | {status.value: status for status in TaskStatus}


class ImportedTask(NamedTuple):
    """One task of an import; its references are still keys of the file."""

    key: str  #: its id in the file, else its position
    draft: Draft  #: without dependencies and parent, which need ids of the target list
    blocked_by: tuple[str, ...] = ()  #: keys
    parent: str | None = None  #: a key
    source: str = ""  #: the list it was exported from; empty if unknown, or if the key is only a position
    created_at: int | None = None  #: epoch ms, in the list it was exported from
    where: str = ""  #: "line 4", "tasks[3]": for errors


def check_imported(
    key: object,
    fields: Mapping[str, object],
    *,
    where: str,
    source: str = "",
    extras: Mapping[str, object] | None = None,
) -> ImportedTask:
    """Validate a task from the raw `fields` of a file, named as in a task file but in snake_case.

    Raises:
        BadValue, BadText: a field is malformed; names the field and the position.
    """
    try:
        return ImportedTask(
            key=check_key(key),
            draft=_draft(fields, extras or {}),
            blocked_by=_keys(fields.get("blocked_by")),
            parent=check_key(fields["parent"]) if fields.get("parent") else None,
            source=source,
            created_at=_check_timestamp(fields.get("created_at")),
            where=where,
        )
    except (BadText, BadValue) as error:
        raise _with_location(error, where) from None


def parse_status(value: object) -> TaskStatus:
    """Parse the status in a file; "In progress" and "done" are accepted."""
    word = value.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(value, str) else None
    found = _STATUS_WORDS.get(word) if word is not None else None
    if found is None:
        raise BadValue("status", value, "pending, in_progress or completed")
    return found


def check_key(value: object) -> str:
    """Validate a key by which tasks of one file refer to each other."""
    text = str(value) if type(value) is int else value
    key = check_text("id", text, longest=LONGEST_KEY, allow_empty=False).strip()
    if "\n" in key or "\r" in key:
        raise BadText("id", "has more than one line")
    return key


def check_references(tasks: Sequence[ImportedTask]) -> Sequence[ImportedTask]:
    """Return `tasks`, if keys are unique and every reference names a task.

    Raises:
        BadValue: otherwise; names the position.
    """
    keys: set[str] = set()
    for task in tasks:
        if task.key in keys:
            raise BadValue(f"id in {task.where}", task.key, "an id that no other task of the file has")
        keys.add(task.key)
    for task in tasks:
        for key in task.blocked_by:
            if key not in keys:
                raise BadValue(f"blocked_by in {task.where}", key, "the id of a task in the same file")
        if task.parent is not None and task.parent not in keys:
            raise BadValue(f"parent in {task.where}", task.parent, "the id of a task in the same file")
    return tasks


def check_size(text: str) -> str:
    """Return `text` without a byte-order mark, if it is text and small enough to be a task list."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without a type checker
        raise BadText("import", f"must be text, not {type(text).__name__}")
    if len(text) > LARGEST_TEXT:
        raise BadValue("The file", f"{len(text):,} characters long", f"at most {LARGEST_TEXT:,}")
    return text.removeprefix("\ufeff")


def check_count(count: int) -> None:
    """Refuse more tasks than any list can show."""
    if count > MOST_TASKS:
        raise BadValue("The file", f"a list of {count:,} tasks", f"at most {MOST_TASKS:,}")


def _draft(fields: Mapping[str, object], extras: Mapping[str, object]) -> Draft:
    owner, active_form = fields.get("owner"), fields.get("active_form")
    return Draft(
        subject=check_subject(fields.get("subject")),
        description=check_text("description", fields.get("description") or ""),
        active_form=check_text("active_form", active_form, longest=LONGEST_SUBJECT) if active_form else None,
        owner=_owner(owner) if owner else None,
        status=parse_status(fields.get("status") or ""),
        metadata=_metadata(fields.get("metadata"), extras),
    )


def _owner(value: object) -> str:
    try:
        return check_name("an owner", value if isinstance(value, str) else "")
    except BadName as error:
        raise BadValue("owner", value, f"a name ({error.why})") from None


def _metadata(value: object, extras: Mapping[str, object]) -> dict[str, object]:
    """Return the given metadata merged with `extras`, without what concerns only the list it was exported from.

    Unusual values of other programs are kept: reading is lenient, and an export must be importable completely.
    """
    metadata = dict(check_metadata(value)) if value is not None else {}
    ours = as_object(metadata.get("taskyard", {}))
    if ours is None:
        return metadata
    kept = {name: item for name, item in ours.items() if name not in UNEXPORTED_KEYS} | check_extras(**dict(extras))
    metadata.pop("taskyard", None)
    return metadata | {"taskyard": kept} if kept else metadata


def _keys(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    found = as_list(value)
    if found is None:
        raise BadValue("blocked_by", value, "a list of ids")
    if len(found) > MOST_BLOCKERS:
        raise BadValue("blocked_by", f"a list of {len(found):,}", f"at most {MOST_BLOCKERS:,} ids")
    return tuple(dict.fromkeys(check_key(key) for key in found))


def _check_timestamp(value: object) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 < value < 10**15:
        raise BadValue("created_at", value, "milliseconds since 1970")
    return value


def _with_location(error: BadText | BadValue, where: str) -> BadText | BadValue:
    """Return the same error, naming the position as well as the field."""
    field = f"{error.field} in {where}"
    error.args = (str(error).replace(error.field, field, 1),)
    error.field = field
    return error


class ExportedTask(NamedTuple):
    """One task to be exported."""

    task: Task
    blocked_by: tuple[str, ...]  #: those of its blockers that are exported too
    parent: str | None  #: its parent, if that is exported too


def exportable_tasks(tasks: Iterable[Task]) -> list[ExportedTask]:
    """Return `tasks` for export, with references only to exported tasks."""
    leaving = {task.id: task for task in tasks if not task.is_internal}
    found: list[ExportedTask] = []
    for task in leaving.values():
        blockers = tuple(blocker for blocker in task.blocked_by if blocker in leaving and blocker != task.id)
        parent = parent_of(task)
        found.append(ExportedTask(task, blockers, parent if parent in leaving else None))
    return found


def sanitize(item: ExportedTask) -> ExportedTask:
    """Return `item` without control characters, which another program may have written into it.

    A checklist or table is printed on terminals, and imports refuse control characters.
    """
    task = item.task
    plain = task._replace(
        subject=plain_subject(task.subject),
        description=escape_unstorable(task.description),
        active_form=None if task.active_form is None else escape_unstorable(task.active_form),
        owner=None if task.owner is None else escape_unstorable(task.owner, keep=""),
    )
    if task.extra:
        plain = plain._replace(metadata={**task.metadata, "taskyard": _sanitize_value(task.extra)})
    return item._replace(task=plain)


def plain_subject(subject: str) -> str:
    """Return a subject on one line, as an export shows it."""
    return escape_unstorable(subject, keep="\t")


def _sanitize_value(value: object) -> object:
    """Return a value with all texts in it, nested ones too, on one line."""
    if isinstance(value, str):
        return escape_unstorable(value, keep="")
    if (inside := as_object(value)) is not None:
        return {name: _sanitize_value(item) for name, item in inside.items()}
    if (items := as_list(value)) is not None:
        return [_sanitize_value(item) for item in items]
    return value
