"""
The optional fields of a task, kept under `metadata.taskyard`.

Writing is strict: `check_extras` refuses what is malformed. Reading is lenient: other programs may
write the same metadata, and a value of the wrong type is then as good as absent.
"""

from __future__ import annotations

from collections.abc import Iterable

from taskyard.errors import BadText, BadValue, shown
from taskyard.names import check_id, check_text, is_id
from taskyard.shapes import as_list, as_object
from taskyard.tasklist.path_overlap import paths_overlap as paths_overlap  # part of the same vocabulary
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.tasklist.model import Task

#: 1 comes first; a task without a priority stands in the middle.
FIRST_PRIORITY, UNSET_PRIORITY, LAST_PRIORITY = 1, 5, 9

#: Fields in the order people read them.
EXTRAS = ("priority", "labels", "due", "parent", "external", "requires", "paths", "acceptance")

LONGEST_WORD = 100  #: characters of a label, capability or system name
LONGEST_PATH = 500
LONGEST_COMMAND = 10_000
MOST_WORDS = 50  #: labels, capabilities or paths of one task; comparing paths costs their product
LONGEST_ACCEPTANCE = 86_400.0  #: seconds; a check that takes a day is a job of its own


class External(NamedTuple):
    """The same task in another system."""

    system: str
    id: str
    url: str | None = None


class Acceptance(NamedTuple):
    """The command that proves a task done."""

    command: str
    cwd: str | None = None
    timeout: float | None = None  #: seconds


def check_extras(
    *,
    priority: object = None,
    labels: object = None,
    due: object = None,
    parent: object = None,
    external: object = None,
    requires: object = None,
    paths: object = None,
    acceptance: object = None,
) -> dict[str, object]:
    """The given fields as `metadata.taskyard` stores them; None means not given.

    Raises:
        BadValue: a value has the wrong type or range.
        BadText: a text is empty, too long or holds control characters.
        BadId: `parent` is no task id.
    """
    checked: dict[str, object] = {}
    if priority is not None:
        checked["priority"] = _priority(priority)
    if labels is not None:
        checked["labels"] = _words("labels", labels)
    if due is not None:
        checked["due"] = _due(due)
    if parent is not None:
        checked["parent"] = check_id(parent)
    if external is not None:
        checked["external"] = _external(external)
    if requires is not None:
        checked["requires"] = _words("requires", requires)
    if paths is not None:
        checked["paths"] = [_line("paths", path, LONGEST_PATH) for path in _list("paths", paths)]
    if acceptance is not None:
        checked["acceptance"] = _acceptance(acceptance)
    return checked


def check_named(given: Mapping[str, object]) -> dict[str, object]:
    """`check_extras` for fields whose names come from outside too.

    Raises:
        BadValue: there is no such field; names those there are.
    """
    for name in given:
        if name not in EXTRAS:
            known = f"{', '.join(EXTRAS)}, or a key of metadata"
            raise BadValue(shown(name), None, known, found="is no field of a task")
    return check_extras(**given)


def check_ours(value: object, *, is_new: bool) -> dict[str, object]:
    """What `metadata.taskyard` may hold if given whole: fields we know are checked, others kept as they are.

    Raises:
        BadValue, BadText, BadId: it is no object, a field is malformed, or a new task is to be `held`.
    """
    given = as_object(value)
    if given is None:
        raise BadValue("metadata.taskyard", value, "an object")
    held = given.get("held", False)
    if type(held) is not bool or (is_new and held):
        raise BadValue("held", held, "no such field: losing its holders sets a task aside", found="is not set by hand")
    checked = check_extras(**{name: given[name] for name in EXTRAS if name in given})
    return {name: checked.get(name, item) for name, item in given.items() if name in checked or name not in EXTRAS}


def check_clear(fields: str | Iterable[str]) -> tuple[str, ...]:
    """The names of optional fields to take away.

    Raises:
        BadValue: one is no such name.
    """
    known = (*EXTRAS, "held", "awaiting")
    if not isinstance(fields, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without a type checker
        raise BadValue("clear", fields, f"one or more of {', '.join(known)}")
    names = (fields,) if isinstance(fields, str) else tuple(fields)
    for name in names:
        if name not in known:
            raise BadValue("clear", name, f"one of {', '.join(known)}")
    return names


def priority_of(task: Task) -> int:
    """1 to 9, 1 first; 5 where none is set."""
    found = set_priority_of(task)
    return UNSET_PRIORITY if found is None else found


def set_priority_of(task: Task) -> int | None:
    """1 to 9, 1 first; None where nobody set one."""
    found = task.extra.get("priority")
    return found if type(found) is int and FIRST_PRIORITY <= found <= LAST_PRIORITY else None


def labels_of(task: Task) -> tuple[str, ...]:
    """Its labels, in the order given."""
    return _read_words(task, "labels")


def requires_of(task: Task) -> tuple[str, ...]:
    """The capabilities an agent needs to be offered this task."""
    return _read_words(task, "requires")


def paths_of(task: Task) -> tuple[str, ...]:
    """The files, folders and globs this task works on."""
    return _read_words(task, "paths", longest=LONGEST_PATH)


def due_of(task: Task) -> str | None:
    """When it should be done, in ISO 8601."""
    found = task.extra.get("due")
    return found if isinstance(found, str) and _is_iso(found) else None


def parent_of(task: Task) -> str | None:
    """The id of the task this one is a part of; never its own."""
    found = task.extra.get("parent")
    return found if isinstance(found, str) and is_id(found) and found != task.id else None


def external_of(task: Task) -> External | None:
    """The task's twin in another system."""
    found = as_object(task.extra.get("external"))
    if found is None:
        return None
    system, its_id, url = found.get("system"), found.get("id"), found.get("url")
    if not (isinstance(system, str) and system and isinstance(its_id, str) and its_id):
        return None
    return External(system, its_id, url if isinstance(url, str) and _is_web(url) else None)


def acceptance_of(task: Task) -> Acceptance | None:
    """The command that must succeed before the task counts as done."""
    found = as_object(task.extra.get("acceptance"))
    if found is None:
        return None
    command, cwd, timeout = found.get("command"), found.get("cwd"), found.get("timeout")
    if not isinstance(command, str) or not command.strip():
        return None
    return Acceptance(command, cwd if isinstance(cwd, str) and cwd else None, _seconds(timeout))


def _priority(value: object) -> int:
    if type(value) is not int or not FIRST_PRIORITY <= value <= LAST_PRIORITY:
        raise BadValue("priority", value, f"a whole number from {FIRST_PRIORITY} (first) to {LAST_PRIORITY}")
    return value


def _due(value: object) -> str:
    if not isinstance(value, str) or not _is_iso(value):
        raise BadValue("due", value, "a date or time in ISO 8601, such as 2026-05-01 or 2026-05-01T17:00Z")
    return value


def _external(value: object) -> dict[str, object]:
    given = _object("external", value, ("system", "id", "url"))
    checked: dict[str, object] = {"system": _line("external.system", given.get("system"), LONGEST_WORD)}
    its_id = given.get("id")
    checked["id"] = _line("external.id", str(its_id) if type(its_id) is int else its_id, LONGEST_PATH)
    if (url := given.get("url")) is not None:
        # Clients make links of it: no `javascript:`, no `file:`.
        if not isinstance(url, str) or not _is_web(url):
            raise BadValue("external.url", url, "an address that starts with http:// or https://")
        checked["url"] = _line("external.url", url, 2_000)
    return checked


def _acceptance(value: object) -> dict[str, object]:
    given = _object("acceptance", value, ("command", "cwd", "timeout"))
    command = check_text("acceptance.command", given.get("command"), longest=LONGEST_COMMAND, allow_empty=False)
    checked: dict[str, object] = {"command": command}
    if (cwd := given.get("cwd")) is not None:
        checked["cwd"] = _line("acceptance.cwd", cwd, 4_000)
    if (timeout := given.get("timeout")) is not None:
        if _seconds(timeout) is None:
            raise BadValue("acceptance.timeout", timeout, f"seconds, above 0 and at most {LONGEST_ACCEPTANCE:,.0f}")
        checked["timeout"] = timeout
    return checked


def _object(field: str, value: object, known: Sequence[str]) -> Mapping[str, object]:
    given = as_object(value)
    if given is None:
        raise BadValue(field, value, f"an object with {', '.join(known)}")
    for key in given:
        if key not in known:
            raise BadValue(field, key, f"only the keys {', '.join(known)}")
    return given


def _words(field: str, value: object) -> list[str]:
    words = [_line(field, word, LONGEST_WORD).strip() for word in _list(field, value)]
    for word in words:
        if "," in word:  # the command line and CSV separate them with commas
            raise BadValue(field, word, "words without a comma")
    return list(dict.fromkeys(words))


def _list(field: str, value: object) -> Sequence[object]:
    given = as_list(value)
    if given is None:
        raise BadValue(field, value, "a list of texts")
    if len(given) > MOST_WORDS:
        raise BadValue(field, f"a list of {len(given):,}", f"at most {MOST_WORDS} entries")
    return given


def _line(field: str, value: object, longest: int) -> str:
    text = check_text(field, value, longest=longest, allow_empty=False)
    if any(space in text for space in "\t\n\r"):
        raise BadText(field, "has a tab or more than one line")
    return text


def _read_words(task: Task, field: str, *, longest: int = LONGEST_WORD) -> tuple[str, ...]:
    found = as_list(task.extra.get(field))
    if found is None:
        return ()
    words = [word for word in found[:MOST_WORDS] if isinstance(word, str) and 0 < len(word) <= longest]
    return tuple(dict.fromkeys(words))


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value <= LONGEST_ACCEPTANCE else None


def _is_iso(text: str) -> bool:
    from datetime import datetime

    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_web(url: str) -> bool:
    return url.startswith(("https://", "http://")) and url.isprintable()
