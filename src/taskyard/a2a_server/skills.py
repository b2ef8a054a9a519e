"""
What others may have done here: skills, each an agent that the person who serves has set up.

    [a2a.skills.review]
    description = "Reviews a change and says what is wrong with it"
    engine = "claude"                  # as `taskyard agent` takes it
    command = "my-agent --json"        # the program of an engine that is one
    model = "…"
    cwd = "/srv/project"               # where it works
    worktree = true                    # in a git worktree of its own
    timeout = 1800                     # seconds
    max_tokens = 200000
    max_cost = 2.5
    permissions = "work"               # what it may do without asking: ask, edit, work, all
    transcript = true                  # callers see what its tools were given, too
    tags = ["code"]
    examples = ["Review the last commit"]

Who asks names a skill, and brings a prompt: nothing else of what runs is theirs to say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from taskyard import config
from taskyard.engines.choice import words_of
from taskyard.errors import BadValue, UsageError
from taskyard.kinds.agent import Agent
from taskyard.names import check_name, check_text, nearest
from taskyard.shapes import as_list, as_object
from taskyard.typed import NamedTuple

#: What a skill is called that was set up by options alone.
USUAL = "agent"

_TEXTS = ("description", "engine", "command", "model", "cwd", "permissions")
_NUMBERS = ("timeout", "max_tokens", "max_cost")
_SWITCHES = ("worktree", "transcript")
_LISTS = ("tags", "examples")


class Skill(NamedTuple):
    """One thing that others may have done."""

    name: str
    description: str = "Works on what it is told"
    engine: str = ""
    command: tuple[str, ...] = ()
    model: str | None = None
    cwd: str | None = None
    timeout: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    permissions: str = ""
    worktree: bool = False
    transcript: bool = False
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    def agent(self, prompt: str) -> Agent:
        """The agent that works on a prompt; it outlives this server."""
        return Agent(
            prompt,
            engine=self.engine,
            command=self.command,
            model=self.model,
            cwd=self.cwd,
            timeout=self.timeout,
            max_tokens=self.max_tokens,
            max_cost=self.max_cost,
            permissions=self.permissions,
            worktree=self.worktree,
            on_parent_exit="keep",
        )


def offered(
    own: Skill | None = None, names: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> dict[str, Skill]:
    """The skills to serve, by name: `own` if one is given, else those in config.toml, or `names` of them.

    Raises:
        UsageError: a skill could not do its work, or is not there.
        Damaged: the settings file is not TOML.
    """
    if own is not None:
        found = {own.name: own}
    else:
        found = _in_file(os.environ if environ is None else environ) or {USUAL: Skill(USUAL)}
    for name in names:
        if name not in found:
            raise BadValue("--skill", name, f"one of {', '.join(nearest(name, found) or sorted(found))}")
    chosen = {name: skill for name, skill in found.items() if not names or name in names}
    for skill in chosen.values():
        _check(skill)
    return chosen


def about(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the table `[a2a]` says of the whole: `name` and `description`, those that are there."""
    table = _table(os.environ if environ is None else environ)
    told = {key: table[key] for key in ("name", "description") if key in table}
    for key in table:
        if key not in ("name", "description", "skills"):
            raise BadValue("a2a", key, "name, description or skills")
    return {key: check_text(f"a2a.{key}", value, longest=2_000, allow_empty=False) for key, value in told.items()}


def _check(skill: Skill) -> None:
    """Refuse now what would fail with the first who asks."""
    if skill.cwd is not None and not os.path.isdir(skill.cwd):
        raise BadValue(f"a2a.skills.{skill.name}.cwd", skill.cwd, "a folder that exists")
    try:
        skill.agent("Hello").wanted()
    except UsageError as error:
        advice = "Say what it runs on: `--engine`, `--command`, or a table [a2a.skills.NAME] in config.toml."
        raise UsageError(f"The skill {skill.name} cannot be offered. {error} {advice}") from error


def _table(environ: Mapping[str, str]) -> dict[str, object]:
    table = config.in_file(environ).get("a2a", {})
    found = as_object(table)
    if found is None:
        raise BadValue("a2a", table, "a table")
    return found


def _in_file(environ: Mapping[str, str]) -> dict[str, Skill]:
    tables = _table(environ).get("skills", {})
    found = as_object(tables)
    if found is None:
        raise BadValue("a2a.skills", tables, "tables such as [a2a.skills.review]")
    return {name: _skill(name, table) for name, table in found.items()}


def _skill(name: str, table: object) -> Skill:
    where = f"a2a.skills.{check_name('a skill', name)}"
    fields = as_object(table)
    if fields is None:
        raise BadValue(where, table, "a table")
    known = (*_TEXTS, *_NUMBERS, *_SWITCHES, *_LISTS)
    values: dict[str, object] = {}
    for key, value in fields.items():
        if key not in known:
            raise BadValue(where, key, f"one of {', '.join(nearest(key, known) or known)}")
        values[key] = _value(f"{where}.{key}", key, value)
    return Skill(name, **values)  # type: ignore[arg-type]  # each was checked


def _value(where: str, key: str, value: object) -> object:
    if key in _SWITCHES:
        if not isinstance(value, bool):
            raise BadValue(where, value, "true or false")
        return value
    if key in _NUMBERS:
        return value  # the agent checks them
    if key in _LISTS:
        words = as_list(value) or []
        return tuple(check_text(where, word, longest=500, allow_empty=False) for word in words)
    text = check_text(where, value, longest=2_000, allow_empty=False)
    return words_of(where, text) if key == "command" else text
