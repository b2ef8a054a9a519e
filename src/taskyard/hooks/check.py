"""What a settings file says about hooks, checked piece by piece; pure."""

from __future__ import annotations

from taskyard.errors import BadText, shown
from taskyard.names import check_text, nearest
from taskyard.typed import NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What we run hooks for. Settings of Claude Code hold others, which are its own affair.
EVENTS = ("TaskCreated", "TaskCompleted", "SubagentStart", "SubagentStop", "TeammateIdle", "JobEnded")

#: Where the caller has something to match: the agent's type, the job's. At other events hooks always run.
MATCHED = ("SubagentStart", "SubagentStop", "JobEnded")

#: The longest time limit a hook may ask for, in seconds: an hour is a test suite, a day is a typing error.
LONGEST_TIMEOUT = 86_400.0


class Hook(NamedTuple):
    """One command to run at one event."""

    event: str
    command: str
    source: str  #: the file it stands in
    of_project: bool  #: it came with the project, so it needs trust
    matcher: str = ""  #: a regular expression; empty: always
    timeout: float | None = None  #: seconds; None: the default


class HookProblem(NamedTuple):
    """Something in a settings file that cannot be a hook."""

    file: str
    where: str  #: "line 3, column 7" or "hooks.TaskCreated[0].matcher"; empty: the file as a whole
    why: str

    @property
    def text(self) -> str:
        """The problem as one sentence."""
        return f"{self.file}{', ' + self.where if self.where else ''}: {self.why}."


def check_settings(
    file: str, settings: object, *, of_project: bool, is_ours: bool
) -> tuple[tuple[Hook, ...], tuple[HookProblem, ...]]:
    """The hooks in `settings`, and what in it is wrong."""
    check = _Check(file, of_project)
    try:
        table = _table("", settings).get("hooks", {})
        groups = _table("hooks", table)
    except _Wrong as wrong:
        return (), (HookProblem(file, wrong.where, wrong.why),)
    for event, entries in groups.items():
        if event in EVENTS:
            check.event(event, entries)
        elif is_ours:
            hint = f"; nearest: {', '.join(near)}" if (near := nearest(event, EVENTS)) else ""
            check.problem(f"hooks.{_name(event)}", f"there is no such event{hint}")
    return tuple(check.hooks), tuple(check.problems)


class _Wrong(Exception):
    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where = where
        self.why = why


class _Check:
    """Gathers the hooks and the problems of one file."""

    def __init__(self, file: str, of_project: bool) -> None:
        self.hooks: list[Hook] = []
        self.problems: list[HookProblem] = []
        self._file = file
        self._of_project = of_project

    def problem(self, where: str, why: str) -> None:
        self.problems.append(HookProblem(self._file, where, why))

    def event(self, event: str, entries: object) -> None:
        for where, entry in self._each(f"hooks.{event}", entries):
            try:
                group, matcher = _table(where, entry), ""
                if event in MATCHED:
                    matcher = _matcher(f"{where}.matcher", group.get("matcher"))
            except _Wrong as wrong:
                self.problem(wrong.where, wrong.why)
                continue
            for place, hook in self._each(f"{where}.hooks", group.get("hooks")):
                self._hook(event, matcher, place, hook)

    def _each(self, where: str, entries: object) -> Iterator[tuple[str, object]]:
        if not isinstance(entries, list):
            self.problem(where, f"must be a list, not {_kind(entries)}")
            return
        for index, entry in enumerate(cast("list[object]", entries)):
            yield f"{where}[{index}]", entry

    def _hook(self, event: str, matcher: str, where: str, entry: object) -> None:
        try:
            fields = _table(where, entry)
            if fields.get("type", "command") != "command":
                raise _Wrong(f"{where}.type", f"only hooks of type 'command' run here, not {shown(fields['type'])}")
            command = _command(f"{where}.command", fields.get("command"))
        except _Wrong as wrong:
            self.problem(wrong.where, wrong.why)
            return
        try:
            timeout = _timeout(f"{where}.timeout", fields.get("timeout"))
        except _Wrong as wrong:
            self.problem(wrong.where, wrong.why)
            timeout = None  # the default limit; the hook itself is in force
        self.hooks.append(Hook(event, command, self._file, self._of_project, matcher, timeout))


def _table(where: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _Wrong(where, f"must be an object, not {_kind(value)}")
    return cast("dict[str, object]", value)


def _command(where: str, value: object) -> str:
    try:
        return check_text("command", value, allow_empty=False)
    except BadText as error:
        raise _Wrong(where, error.why) from error


def _matcher(where: str, value: object) -> str:
    """A regular expression over the whole value; `""` for always."""
    if value is None or value in ("", "*"):
        return ""
    if not isinstance(value, str):
        raise _Wrong(where, f"must be text, not {_kind(value)}")
    import re

    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise _Wrong(where, f"{shown(value)} is no regular expression ({error})") from error
    return value


def _timeout(where: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LONGEST_TIMEOUT:
        raise _Wrong(where, f"must be seconds from 0 to {LONGEST_TIMEOUT:,.0f}; the default limit is used")
    return float(value)


def _name(event: str) -> str:
    return event if event.isidentifier() and len(event) <= 60 else shown(event)


def _kind(value: object) -> str:
    kinds: dict[type[object], str] = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return kinds.get(type(value), "a number")
