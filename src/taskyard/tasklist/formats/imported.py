"""
A task as a file from outside describes it: checked, but not yet placed on a list.

Every format ends here, so every format has the same checks and the same errors, each naming
the line or element it is about.
"""

from __future__ import annotations

from taskyard.errors import BadName, BadText, BadValue
from taskyard.names import LONGEST_SUBJECT, check_name, check_subject, check_text
from taskyard.shapes import as_list, as_object
from taskyard.tasklist.extras import check_extras
from taskyard.tasklist.model import Draft, TaskStatus
from taskyard.tasklist.task_file import check_metadata
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Larger files are no task lists; the bound keeps a hostile one from filling the memory.
LARGEST_TEXT = 64_000_000
MOST_TASKS = 100_000
MOST_BLOCKERS = 1_000
LONGEST_KEY = 200

#: Under `metadata.taskyard`, where a task came from.
ORIGIN = "imported"

#: What no export carries in metadata: the parent has a field of its own, the origin is this list's bookkeeping.
LEFT_BEHIND = ("parent", ORIGIN)

_STATUS_WORDS = {
    "": TaskStatus.PENDING,
    "todo": TaskStatus.PENDING,
    "doing": TaskStatus.IN_PROGRESS,
    "done": TaskStatus.COMPLETED,
} | {status.value: status for status in TaskStatus}


class Imported(NamedTuple):
    """One task of an import, its references still by the names the file uses."""

    key: str  #: what the file calls it: its id there, else its place
    draft: Draft  #: without dependencies and parent, which need ids of the list it goes to
    blocked_by: tuple[str, ...] = ()  #: keys
    parent: str | None = None  #: a key
    source: str = ""  #: the list it was exported from; empty if unknown, or if the key is only a place
    created_at: int | None = None  #: epoch ms, in the list it was exported from
    where: str = ""  #: "line 4", "tasks[3]": for errors


def imported(
    key: object,
    fields: Mapping[str, object],
    *,
    where: str,
    source: str = "",
    extras: Mapping[str, object] | None = None,
) -> Imported:
    """A checked task from the raw `fields` of a file, named as in a task file but in snake_case.

    Raises:
        BadValue, BadText: a field is malformed; the error says which and where.
    """
    try:
        return Imported(
            key=check_key(key),
            draft=_draft(fields, extras or {}),
            blocked_by=_keys(fields.get("blocked_by")),
            parent=check_key(fields["parent"]) if fields.get("parent") else None,
            source=source,
            created_at=_moment(fields.get("created_at")),
            where=where,
        )
    except (BadText, BadValue) as error:
        raise _located(error, where) from None


def status_of(value: object) -> TaskStatus:
    """The status meant by a word in a file; "In progress" and "done" will do."""
    word = value.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(value, str) else None
    found = _STATUS_WORDS.get(word) if word is not None else None
    if found is None:
        raise BadValue("status", value, "pending, in_progress or completed")
    return found


def check_key(value: object) -> str:
    """A name by which tasks of one file refer to each other."""
    text = str(value) if type(value) is int else value
    key = check_text("id", text, longest=LONGEST_KEY, allow_empty=False).strip()
    if "\n" in key or "\r" in key:
        raise BadText("id", "has more than one line")
    return key


def check_whole(tasks: Sequence[Imported]) -> Sequence[Imported]:
    """`tasks`, if no key is used twice and every reference finds its task.

    Raises:
        BadValue: otherwise; it names the place.
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
    """`text` without a byte-order mark, if it is text, and small enough to be a task list."""
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
        status=status_of(fields.get("status") or ""),
        metadata=_metadata(fields.get("metadata"), extras),
    )


def _owner(value: object) -> str:
    try:
        return check_name("an owner", value if isinstance(value, str) else "")
    except BadName as error:
        raise BadValue("owner", value, f"a name ({error.why})") from None


def _metadata(value: object, extras: Mapping[str, object]) -> dict[str, object]:
    """The metadata as given, with `extras` in their place, and without what belongs to the list it left.

    What another program put into it stays as it is, odd or not: reading is lenient, and an export must come back whole.
    """
    metadata = dict(check_metadata(value)) if value is not None else {}
    ours = as_object(metadata.get("taskyard", {}))
    if ours is None:
        return metadata
    kept = {name: item for name, item in ours.items() if name not in LEFT_BEHIND} | check_extras(**dict(extras))
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


def _moment(value: object) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 < value < 10**15:
        raise BadValue("created_at", value, "milliseconds since 1970")
    return value


def _located(error: BadText | BadValue, where: str) -> BadText | BadValue:
    """The same error, naming the place as well as the field."""
    field = f"{error.field} in {where}"
    error.args = (str(error).replace(error.field, field, 1),)
    error.field = field
    return error
