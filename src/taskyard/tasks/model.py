"""Records of the task list (task, lease, change, decision), optional fields, and overlap of paths.

Records are named tuples: immutable, cheap to create, and free of expensive imports.

Optional fields are kept under `metadata.taskyard`. Writing is strict: `check_extras` refuses malformed
values. Reading is lenient: other programs may write the same metadata, and a value of the wrong type counts
as absent.

Whether two tasks work on the same files is decided by their `paths` alone. A path names a file, a folder
with all below it, or a glob (`*` and `?` within a name, `**` across folders). Nothing is looked up on disk,
so in doubt they overlap: one warning too many costs less than two agents in one file. A relative and an
absolute path never overlap.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from enum import StrEnum

from taskyard.core.values import NamedTuple, as_list, as_object, cast, check_id, check_text, is_id
from taskyard.errors import BadText, BadValue, quote_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def paths_overlap(ours: Iterable[str], theirs: Iterable[str]) -> tuple[str, ...]:
    """Return what both sides share, each by its narrower name, in the order of `ours`.

    >>> paths_overlap(["src", "docs/a.md"], ["src/api/*.py", "docs/b.md"])
    ('src/api/*.py',)
    """
    others = list(theirs)
    shared: dict[str, None] = {}
    for path in ours:
        for other in others:
            if _overlap(path, other):
                shared[_narrower(path, other)] = None
    return tuple(shared)


def _overlap(path: str, other: str) -> bool:
    mine, its = _segments(path), _segments(other)
    if (mine[:1] == [""]) != (its[:1] == [""]):
        return False  # one absolute, one relative
    if not _is_glob(path) and not _is_glob(other):
        short = min(len(mine), len(its))
        return mine[:short] == its[:short]
    return _globs_overlap(mine, its)


def _segments(path: str) -> list[str]:
    plain = posixpath.normpath(path.strip())
    absolute = [""] if plain.startswith("/") else []
    return absolute + [part for part in plain.split("/") if part and part != "."]


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text or "[" in text


def _globs_overlap(mine: list[str], its: list[str]) -> bool:
    """Visit every reachable pair of positions in both patterns; `**` may stay or step on."""
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        i, j = here
        if i == len(mine) or j == len(its):
            if _contains(mine[i:], its) and _contains(its[j:], mine):
                return True
            continue
        if mine[i] == "**":
            todo += [(i + 1, j), (i, j + 1)]
        elif its[j] == "**":
            todo += [(i, j + 1), (i + 1, j)]
        elif _names_meet(mine[i], its[j]):
            todo.append((i + 1, j + 1))
    return False


def _contains(rest: list[str], used_up: list[str]) -> bool:
    """Return whether the rest of one path lies below the other, which is used up.

    `**/x.py` would overlap with any path if that were a folder; a last name with a dot in it is taken for a
    file.
    """
    if not rest or rest[0] != "**" or set(rest) == {"**"}:
        return True
    return not used_up or "." not in used_up[-1][1:]


def _names_meet(mine: str, its: str) -> bool:
    """Return whether one name can match both patterns."""
    if not _is_glob(mine) or not _is_glob(its):
        if mine == its:
            return True
        from fnmatch import fnmatchcase

        return fnmatchcase(mine, its) if _is_glob(its) else fnmatchcase(its, mine)
    # Two patterns with a `*` can match the same name when their fixed beginnings and endings agree. For `?`
    # and `[…]` that is generous, which is the safe side.
    return _agree(_fixed(mine), _fixed(its)) and _agree(_fixed(mine[::-1]), _fixed(its[::-1]))


def _fixed(pattern: str) -> str:
    for at, char in enumerate(pattern):
        if char in "*?[]":
            return pattern[:at]
    return pattern


def _agree(one: str, two: str) -> bool:
    return one.startswith(two) or two.startswith(one)


def _narrower(path: str, other: str) -> str:
    if _is_glob(path) != _is_glob(other):
        # A folder is wider than a glob below it; a file is narrower than any glob.
        plain, glob = (other, path) if _is_glob(path) else (path, other)
        return glob if len(_segments(plain)) < len(_segments(glob)) and "**" not in glob else plain
    return path if len(_segments(path)) >= len(_segments(other)) else other


class TaskStatus(StrEnum):
    """The status of a task, in the order of a board."""

    PENDING = "pending"  #: not started
    IN_PROGRESS = "in_progress"  #: its owner works on it now
    COMPLETED = "completed"  #: done


class Lease(NamedTuple):
    """Which instance holds a claim, and until when."""

    owner: str  #: its public name
    instance: str  #: the process, job or user behind the name
    token: str  #: fencing token: proves that a write comes from this very claim
    kind: str  #: "process" (ends with its kernel lock), "time" (renewed by calls), "manual" (never ends)
    since: int  #: epoch ms of the claim
    expires: int | None = None  #: epoch ms, for kind "time"
    span: int = 0  #: ms by which a call of the holder extends it, for kind "time"
    host: str = ""  #: the machine and boot of the holder, for kind "process"
    lock: str = ""  #: the file whose kernel lock proves that the holder is alive
    place: str = ""  #: identity of that file's folder, so that no other one is mistaken for it


class Task(NamedTuple):
    """One unit of work on the shared list.

    The fields up to `updated_at` are stored in the file. Those after it belong to the result of a call and are
    never stored.
    """

    id: str
    subject: str
    description: str = ""
    active_form: str | None = None
    owner: str | None = None
    status: TaskStatus = TaskStatus.PENDING
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    metadata: Mapping[str, object] = {}
    created_at: int | None = None
    updated_at: int | None = None
    lease: Lease | None = None  #: its current lease, where known
    ready: tuple[str, ...] = ()  #: after completing: the tasks this made ready
    notes: tuple[str, ...] = ()  #: notes for the reader of the result: warnings, the verification nudge

    @property
    def is_done(self) -> bool:
        """Whether it is completed."""
        return self.status is TaskStatus.COMPLETED

    @property
    def is_assigned(self) -> bool:
        """Whether it has an owner that has neither claimed nor started it."""
        return self.owner is not None and self.lease is None and self.status is TaskStatus.PENDING

    @property
    def is_internal(self) -> bool:
        """Whether this is a tracker, hidden from users and never worked on."""
        return bool(self.metadata.get("_internal"))

    @property
    def extra(self) -> Mapping[str, object]:
        """Taskyard's fields beyond those of Claude Code (`metadata.taskyard`)."""
        found = self.metadata.get("taskyard")
        return cast("dict[str, object]", found) if isinstance(found, dict) else {}

    @property
    def is_held(self) -> bool:
        """Whether it is quarantined after losing its holders too often; `claim_next` skips it."""
        return bool(self.extra.get("held"))


#: Number of a task's fields that are stored.
_STORED = Task._fields.index("lease")


def stored_fields(task: Task) -> tuple[object, ...]:
    """Return the stored fields of a task, for comparison."""
    return task[:_STORED]


class Draft(NamedTuple):
    """A validated task without an id."""

    subject: str
    description: str = ""
    active_form: str | None = None
    owner: str | None = None
    status: TaskStatus = TaskStatus.PENDING
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    metadata: Mapping[str, object] = {}


class Act(NamedTuple):
    """Who changes the list, and why: recorded in the event log with every change."""

    by: str | None  #: the agent or user, where known
    cause: str  #: the verb: "create", "claim", "complete", …, "external", "lease_lost"
    via: str = "api"  #: the interface: "api", "cli", "mcp", "hook", "watch"
    note: str = ""  #: a reason in words, where one was given


def lease_lost_act(lease: Lease, losses: int) -> Act:
    """Return the log record for releasing a dead holder's task; `losses` includes this one."""
    return Act(lease.owner, "lease_lost", "watch", f"its holder {lease.instance} is gone (loss {losses})")


class Change(NamedTuple):
    """One entry of a list's event log."""

    id: int  #: its position in the log; larger is later
    at: int  #: epoch ms
    act: Act
    tasks: Mapping[str, Task | None]  #: each task as it was afterwards; None = removed
    aborted: bool = False  #: the writer crashed before it took effect


class DamagedFile(NamedTuple):
    """A file in a list's folder that cannot be parsed as a task."""

    file: str
    why: str


class Listing(tuple[Task, ...]):
    """The tasks of a list by ascending id; `damaged` names the unreadable files."""

    damaged: tuple[DamagedFile, ...]
    _visible: Listing | None

    def __new__(cls, tasks: Iterable[Task] = (), damaged: Iterable[DamagedFile] = ()) -> Listing:
        """Create a listing of tasks in the given order."""
        listing = super().__new__(cls, tasks)
        listing.damaged = tuple(damaged)
        listing._visible = None
        return listing

    @property
    def visible(self) -> Listing:
        """The listing without trackers; computed once, since an unchanged list is returned repeatedly."""
        if self._visible is None:
            hidden = any(task.is_internal for task in self)
            self._visible = Listing((t for t in self if not t.is_internal), self.damaged) if hidden else self
        return self._visible


class LinkChange(NamedTuple):
    """Dependencies of one task that an update adds and removes, each as (blocker, blocked)."""

    new: tuple[tuple[str, str], ...] = ()
    gone: tuple[tuple[str, str], ...] = ()


class Facts(NamedTuple):
    """All that a rule may know when it decides about one task."""

    task: Task
    lease: Lease | None  #: the lease record, if its holder counts as alive
    look: Callable[[str], Task | None]  #: another task by id, as it is under the lock
    everything: Callable[[], Sequence[Task]]  #: all tasks; only with the list lock


class Decision(NamedTuple):
    """The result of a rule: the new task and its lease."""

    task: Task
    lease: Lease | None


def new_token() -> str:
    """Return a unique fencing token."""
    return os.urandom(9).hex()


class RetryOperation(Exception):
    """Read again, and retry the operation from the start."""


class LockLost(RetryOperation):
    """Another program considered our folder lock abandoned, because we slept for so long."""


class IdTaken(RetryOperation):
    """Another program had given out the id that looked free."""


class UnfinishedWrite(RetryOperation):
    """The intent of a crashed writer is in the way: settle that task first."""

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id)
        self.task_id = task_id


class WriteConflict(UnfinishedWrite):
    """Another program wrote between our read and our write: our own intent must be settled."""


#: 1 comes first; a task without a priority counts as 5.
FIRST_PRIORITY, UNSET_PRIORITY, LAST_PRIORITY = 1, 5, 9

#: Optional fields in the order of display.
EXTRAS = ("priority", "labels", "due", "parent", "external", "requires", "paths", "acceptance")

LONGEST_WORD = 100  #: characters of a label, capability or system name
LONGEST_PATH = 500
LONGEST_COMMAND = 10_000
MOST_WORDS = 50  #: labels, capabilities or paths of one task; comparing paths costs their product
LONGEST_ACCEPTANCE = 86_400.0  #: seconds; a check that takes a day should be a job


class External(NamedTuple):
    """The same task in another system."""

    system: str
    id: str
    url: str | None = None


class Acceptance(NamedTuple):
    """The command that proves a task completed."""

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
    """Return the given fields as `metadata.taskyard` stores them; None means not given.

    Raises:
        BadValue: a value has the wrong type or range.
        BadText: a text is empty, too long or contains control characters.
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


def check_named_extras(given: Mapping[str, object]) -> dict[str, object]:
    """Run `check_extras` for fields whose names come from outside too.

    Raises:
        BadValue: there is no such field; names the valid ones.
    """
    for name in given:
        if name not in EXTRAS:
            known = f"{', '.join(EXTRAS)}, or a key of metadata"
            raise BadValue(quote_value(name), None, known, found="is not a field of a task")
    return check_extras(**given)


def check_own_metadata(value: object, *, is_new: bool) -> dict[str, object]:
    """Validate a whole `metadata.taskyard`: known fields are checked, others kept as they are.

    Raises:
        BadValue, BadText, BadId: it is no object, a field is malformed, or a new task is to be `held`.
    """
    given = as_object(value)
    if given is None:
        raise BadValue("metadata.taskyard", value, "an object")
    held = given.get("held", False)
    if type(held) is not bool or (is_new and held):
        raise BadValue("held", held, "no such field: losing its holders quarantines a task", found="is not set by hand")
    checked = check_extras(**{name: given[name] for name in EXTRAS if name in given})
    return {name: checked.get(name, item) for name, item in given.items() if name in checked or name not in EXTRAS}


def check_clear(fields: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of optional fields to remove.

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
    """Return the priority, 1 to 9, 1 first; 5 if none is set."""
    found = explicit_priority_of(task)
    return UNSET_PRIORITY if found is None else found


def explicit_priority_of(task: Task) -> int | None:
    """Return the priority, 1 to 9, 1 first; None if none is set."""
    found = task.extra.get("priority")
    return found if type(found) is int and FIRST_PRIORITY <= found <= LAST_PRIORITY else None


def labels_of(task: Task) -> tuple[str, ...]:
    """Return its labels, in the order given."""
    return _read_words(task, "labels")


def requires_of(task: Task) -> tuple[str, ...]:
    """Return the capabilities an agent needs to be offered this task."""
    return _read_words(task, "requires")


def paths_of(task: Task) -> tuple[str, ...]:
    """Return the files, folders and globs this task works on."""
    return _read_words(task, "paths", longest=LONGEST_PATH)


def due_of(task: Task) -> str | None:
    """Return its due date or time in ISO 8601."""
    found = task.extra.get("due")
    return found if isinstance(found, str) and _is_iso(found) else None


def parent_of(task: Task) -> str | None:
    """Return the id of the task this one is a part of; never its own."""
    found = task.extra.get("parent")
    return found if isinstance(found, str) and is_id(found) and found != task.id else None


def external_of(task: Task) -> External | None:
    """Return its counterpart in another system."""
    found = as_object(task.extra.get("external"))
    if found is None:
        return None
    system, its_id, url = found.get("system"), found.get("id"), found.get("url")
    if not (isinstance(system, str) and system and isinstance(its_id, str) and its_id):
        return None
    return External(system, its_id, url if isinstance(url, str) and _is_http_url(url) else None)


def acceptance_of(task: Task) -> Acceptance | None:
    """Return the command that must succeed before the task counts as completed."""
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
        if not isinstance(url, str) or not _is_http_url(url):
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


def _is_http_url(url: str) -> bool:
    return url.startswith(("https://", "http://")) and url.isprintable()


def open_blockers(task: Task, tasks: Mapping[str, Task]) -> tuple[str, ...]:
    """Return the ids `task` still waits for; a deleted blocker no longer blocks."""
    known = (tasks[blocker] for blocker in task.blocked_by if blocker in tasks)
    return tuple(blocker.id for blocker in known if blocker.status is not TaskStatus.COMPLETED)


def is_ready(task: Task, tasks: Mapping[str, Task]) -> bool:
    """Return whether the task could be started now."""
    return task.status is TaskStatus.PENDING and not task.is_internal and not open_blockers(task, tasks)


def sort_by_id(tasks: Iterable[Task]) -> list[Task]:
    """Return tasks in the order of their ids, as numbers."""
    return sorted(tasks, key=lambda task: int(task.id))


def mirror_blocks(tasks: Sequence[Task]) -> list[Task]:
    """Return the same tasks, each with `blocks` derived from every `blocked_by`."""
    blocks: dict[str, list[str]] = {}
    for task in tasks:
        for blocker in task.blocked_by:
            blocks.setdefault(blocker, []).append(task.id)
    return [with_blocks(task, blocks.get(task.id)) for task in tasks]


def with_blocks(task: Task, found: Sequence[str] | None) -> Task:
    """Return the task with `found` as its `blocks`; the same record if nothing changes."""
    if not found:
        return task if not task.blocks else task._replace(blocks=())
    if len(found) == len(task.blocks) and set(found) == set(task.blocks):
        return task  # keep the order in which they were added
    return task._replace(blocks=tuple(found))


def metadata_parent(metadata: Mapping[str, object]) -> str | None:
    """The parent that a task's metadata names, be it that task itself."""
    found = (as_object(metadata.get("taskyard")) or {}).get("parent")
    return found if isinstance(found, str) and is_id(found) else None
