"""Read a team plan from a YAML or JSON file: tasks that refer to each other by ids of the file.

    name: shop                      the team's name, if none is given
    tasks:
      - Read the specification
      - id: parser
        subject: Write the parser
        blocked_by: [task-1]        task-1 is the first one, where it has no id of its own
        acceptance: make test

Everything is checked before anything is created; errors name the line.
"""

from __future__ import annotations

import os

from taskyard.core.values import NamedTuple, as_list, as_object, check_name, nearest
from taskyard.errors import BadName, BadPlan, BadText, BadValue, BadWorkflow, Cycle, quote_value, truncate
from taskyard.jobs.workflow import parse
from taskyard.tasks.formats.exchange import MOST_BLOCKERS, ImportedTask, check_imported, check_key
from taskyard.tasks.graph import refuse_cycles
from taskyard.tasks.model import EXTRAS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from taskyard.jobs.workflow.parse import KeyPath, LineNumbers

#: Maximum tasks: a plan is written by hand, or by a model.
MOST_TASKS = 5_000

_TOP_KEYS = ("name", "tasks")
_FIELDS = ("id", "subject", "description", "active_form", "owner", "blocked_by", "parent")
_KEYS = (*_FIELDS, "needs", *(name for name in EXTRAS if name != "parent"))


class TeamPlan(NamedTuple):
    """The tasks of a team."""

    tasks: tuple[ImportedTask, ...]
    name: str | None = None  #: of the team


def read_plan(path: str) -> TeamPlan:
    """Read the plan in a file, YAML or JSON.

    Raises:
        BadPlan: it is invalid; names what, and the line.
        MissingExtra: it is YAML, and no YAML library is installed.
        NotFound, StorageError: the file cannot be read.
    """
    file = os.path.basename(path)
    try:
        raw, lines = parse.parse_text(parse.read_text(path), file, what="A plan")
    except BadWorkflow as error:
        raise BadPlan(file, error.why, line=error.line or 0) from None
    return _PlanParser(file, lines).plan(raw)


class _PlanParser:
    """Checks one plan."""

    def __init__(self, file: str, lines: LineNumbers) -> None:
        self._file, self._lines = file, lines
        self._waiting: list[str] = []  # the key each task uses for its blockers, in file order

    def plan(self, raw: object) -> TeamPlan:
        top = {"tasks": raw} if as_list(raw) is not None else as_object(raw)
        if top is None:
            self._refuse((), "a plan is a list of tasks, or a mapping with `tasks`")
        base: KeyPath = () if as_list(raw) is not None else ("tasks",)
        self._check_keys((), "the plan", top, _TOP_KEYS)
        listed = as_list(top.get("tasks"))
        if not listed or len(listed) > MOST_TASKS:
            self._refuse(base, f"`tasks` must be a list of 1 to {MOST_TASKS:,} tasks")
        found = [self._task(each, (*base, at), at + 1) for at, each in enumerate(listed)]
        self._check_references(found, base)
        return TeamPlan(tuple(found), self._name(top))

    def _name(self, top: Mapping[str, object]) -> str | None:
        if "name" not in top:
            return None
        name = top["name"]
        try:
            return check_name("a team", name if isinstance(name, str) else "")
        except BadName as error:
            self._refuse(("name",), f"{quote_value(name)} is not a valid team name: {error.why}")

    def _task(self, raw: object, path: KeyPath, number: int) -> ImportedTask:
        given = {"subject": raw} if isinstance(raw, str) else as_object(raw)
        if given is None:
            self._refuse(path, f"task {number} is neither a subject nor a mapping with one")
        where = f"task {number}"
        self._check_keys(path, where, given, _KEYS)
        if "needs" in given and "blocked_by" in given:
            self._refuse((*path, "needs"), f"{where}: `needs` and `blocked_by` mean the same: use one")
        fields = {name: given[name] for name in _FIELDS if name in given}
        self._waiting.append("needs" if "needs" in given else "blocked_by")
        fields["blocked_by"] = self._waits(given, path, where)
        extras = {name: given[name] for name in EXTRAS if name in given and name != "parent"}
        if isinstance(extras.get("acceptance"), str):
            extras["acceptance"] = {"command": extras["acceptance"]}
        try:
            return check_imported(given.get("id", f"task-{number}"), fields, where=where, extras=extras)
        except (BadText, BadValue) as error:
            field = error.field.split(" ")[0]
            self._refuse((*path, field), f"{where}: {error}")

    def _waits(self, given: Mapping[str, object], path: KeyPath, where: str) -> list[object]:
        name = self._waiting[-1]
        value = given.get(name, [])
        is_one = isinstance(value, (str, int)) and not isinstance(value, bool)
        listed: list[object] | None = [value] if is_one else as_list(value)
        if listed is None or len(listed) > MOST_BLOCKERS:
            self._refuse((*path, name), f"{where}: `{name}` must be an id or a list of ids, {MOST_BLOCKERS:,} at most")
        for key in listed:
            try:
                check_key(key)
            except (BadText, BadValue) as error:
                self._refuse((*path, name), f"{where}: `{name}` names {quote_value(key)}: {error}")
        return listed

    def _check_references(self, found: Sequence[ImportedTask], base: KeyPath) -> None:
        seen: set[str] = set()
        for at, task in enumerate(found):
            if task.key in seen:
                self._refuse((*base, at, "id"), f"{task.where}: the id {quote_value(task.key)} is another task's")
            seen.add(task.key)
        for at, task in enumerate(found):
            for field, keys in (
                (self._waiting[at], task.blocked_by),
                ("parent", (task.parent,) if task.parent else ()),
            ):
                for key in keys:
                    self._check_known(key, seen, (*base, at, field), f"{task.where}: `{field}`")
        try:
            refuse_cycles({task.key: task.blocked_by for task in found})
        except Cycle as error:
            at = next(number for number, task in enumerate(found) if task.key == error.path[0])
            self._refuse((*base, at), f"tasks wait for each other: {' → '.join(error.path)}")

    def _check_known(self, key: str, known: set[str], path: KeyPath, where: str) -> None:
        if key not in known:
            near = nearest(check_key(key), sorted(known), most=1)
            hint = f"did you mean {near[0]}?" if near else "no task has that id"
            self._refuse(path, f"{where} names {quote_value(key)}; {hint}")

    def _check_keys(self, path: KeyPath, where: str, given: Mapping[str, object], names: Sequence[str]) -> None:
        for name in given:
            if name not in names:
                near = nearest(name, list(names), most=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
                self._refuse((*path, name), f"{where}: it has no key {quote_value(name)}; {hint}")

    def _refuse(self, path: KeyPath, why: str) -> NoReturn:
        line = 0
        while not (line := self._lines.get(path, 0)) and path:
            path = path[:-1]
        raise BadPlan(self._file, truncate(why, 300), line=line)
