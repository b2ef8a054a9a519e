"""Skills that the A2A server offers, and the tokens of its callers.

A skill is an agent configured by the user who runs the server:

    [a2a.skills.review]
    description = "Reviews a change and lists its defects"
    engine = "claude"                  # as `taskyard agent` takes it
    command = "my-agent --json"        # the program of an engine that is one
    model = "…"
    cwd = "/srv/project"               # working directory
    worktree = true                    # run in a git worktree of its own
    timeout = 1800                     # seconds
    max_tokens = 200000
    max_cost = 2.5
    permissions = "work"               # what it may do without asking: ask, edit, work, all
    transcript = true                  # callers also see the input of its tools
    tags = ["code"]
    examples = ["Review the last commit"]

A caller chooses a skill and sends a prompt; it controls nothing else of what runs.

A caller is a name and a token in a file of that name, readable by its owner only:

    $TASKYARD_HOME/a2a-tokens/<caller>

Each caller sees only its own tasks. A rotated or removed token is invalid from the next request on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from taskyard import config
from taskyard.agents.agent.kind import Agent
from taskyard.agents.engines.provider import split_command
from taskyard.core import files
from taskyard.core import values as core_values
from taskyard.core.values import NamedTuple, as_list, as_object, check_name, check_text, nearest
from taskyard.errors import BadName, BadValue, UsageError
from taskyard.servers.http.access import Token, ensure_token

#: Name of a skill that is configured by options alone.
DEFAULT_SKILL = "agent"

_TEXT_FIELDS = ("description", "engine", "command", "model", "cwd", "permissions")
_NUMBER_FIELDS = ("timeout", "max_tokens", "max_cost")
_BOOL_FIELDS = ("worktree", "transcript")
_LIST_FIELDS = ("tags", "examples")


class Skill(NamedTuple):
    """One skill that callers may use."""

    name: str
    description: str = "Works on the prompt"
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
        """Return the agent for a prompt; it continues when this server exits."""
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


def load_skills(
    own: Skill | None = None, names: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> dict[str, Skill]:
    """Return the skills to serve by name: `own` if given, else those in config.toml, or `names` of them.

    Raises:
        UsageError: A skill is misconfigured, or does not exist.
        Damaged: The settings file is not TOML.
    """
    if own is not None:
        found = {own.name: own}
    else:
        found = _configured_skills(os.environ if environ is None else environ) or {DEFAULT_SKILL: Skill(DEFAULT_SKILL)}
    for name in names:
        if name not in found:
            raise BadValue("--skill", name, f"one of {', '.join(nearest(name, found) or sorted(found))}")
    chosen = {name: skill for name, skill in found.items() if not names or name in names}
    for skill in chosen.values():
        _check_skill(skill)
    return chosen


def load_card_texts(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `name` and `description` of the table `[a2a]`, those that are set."""
    table = _a2a_table(os.environ if environ is None else environ)
    told = {key: table[key] for key in ("name", "description") if key in table}
    for key in table:
        if key not in ("name", "description", "skills"):
            raise BadValue("a2a", key, "name, description or skills")
    return {key: check_text(f"a2a.{key}", value, longest=2_000, allow_empty=False) for key, value in told.items()}


def _check_skill(skill: Skill) -> None:
    """Refuse a skill now that would fail with the first request."""
    if skill.cwd is not None and not os.path.isdir(skill.cwd):
        raise BadValue(f"a2a.skills.{skill.name}.cwd", skill.cwd, "a folder that exists")
    try:
        skill.agent("Hello").wanted()
    except UsageError as error:
        advice = "Set its engine: `--engine`, `--command`, or a table [a2a.skills.NAME] in config.toml."
        raise UsageError(f"The skill {skill.name} cannot be offered. {error} {advice}") from error


def _a2a_table(environ: Mapping[str, str]) -> dict[str, object]:
    table = config.read_config_file(environ).get("a2a", {})
    found = as_object(table)
    if found is None:
        raise BadValue("a2a", table, "a table")
    return found


def _configured_skills(environ: Mapping[str, str]) -> dict[str, Skill]:
    tables = _a2a_table(environ).get("skills", {})
    found = as_object(tables)
    if found is None:
        raise BadValue("a2a.skills", tables, "tables such as [a2a.skills.review]")
    return {name: _parse_skill(name, table) for name, table in found.items()}


def _parse_skill(name: str, table: object) -> Skill:
    where = f"a2a.skills.{check_name('a skill', name)}"
    fields = as_object(table)
    if fields is None:
        raise BadValue(where, table, "a table")
    known = (*_TEXT_FIELDS, *_NUMBER_FIELDS, *_BOOL_FIELDS, *_LIST_FIELDS)
    values: dict[str, object] = {}
    for key, value in fields.items():
        if key not in known:
            raise BadValue(where, key, f"one of {', '.join(nearest(key, known) or known)}")
        values[key] = _parse_value(f"{where}.{key}", key, value)
    return Skill(name, **values)  # type: ignore[arg-type]  # each was checked


def _parse_value(where: str, key: str, value: object) -> object:
    if key in _BOOL_FIELDS:
        if not isinstance(value, bool):
            raise BadValue(where, value, "true or false")
        return value
    if key in _NUMBER_FIELDS:
        return value  # checked by the agent
    if key in _LIST_FIELDS:
        words = as_list(value) or []
        return tuple(check_text(where, word, longest=500, allow_empty=False) for word in words)
    text = check_text(where, value, longest=2_000, allow_empty=False)
    return split_command(where, text) if key == "command" else text


#: Name of the caller that a server creates if there is none.
DEFAULT_CALLER = "guest"


def tokens_dir(home: str) -> str:
    """Return the directory of the token files."""
    return f"{home}/a2a-tokens"


def caller_token(home: str, caller: str = DEFAULT_CALLER, *, rotate: bool = False) -> Token:
    """Return the token of a caller; create it if missing, or if `rotate`.

    Raises:
        BadName: The name of the caller is invalid.
        StorageError: Other users can read the file, or it cannot be created.
    """
    files.make_private_folder(home)
    files.make_private_folder(tokens_dir(home))
    return ensure_token(_token_path(home, caller), rotate=rotate)


def remove_caller(home: str, caller: str) -> bool:
    """Remove a caller's token; return whether there was one."""
    path = _token_path(home, caller)
    is_there = os.path.lexists(path)
    files.remove(path)
    return is_there


def list_callers(home: str) -> list[str]:
    """Return the names of all callers."""
    try:
        return sorted(name for name in os.listdir(tokens_dir(home)) if core_values.is_folder_safe(name))
    except FileNotFoundError:
        return []


class CallerTokens:
    """The tokens of all callers, as in their files now."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._seen: tuple[int, ...] = ()
        self._tokens: dict[str, Token] = {}

    def known(self) -> dict[str, Token]:
        """Return the token of each caller; read again only if a file was added, removed or replaced.

        Raises:
            StorageError: Other users can read a token file.
        """
        now = self._looks()
        if now != self._seen:
            self._tokens = {name: ensure_token(_token_path(self._home, name)) for name in list_callers(self._home)}
            self._seen = now
        return self._tokens

    def _looks(self) -> tuple[int, ...]:
        """Return a stamp of the directory, which changes with each token: files are replaced by rename."""
        try:
            found = os.stat(tokens_dir(self._home))
        except FileNotFoundError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _token_path(home: str, caller: str) -> str:
    core_values.check_name("a caller", caller)
    if not core_values.is_folder_safe(caller):
        raise BadName("a caller", caller, "it may have letters, digits, _ and - alone")
    return f"{tokens_dir(home)}/{caller}"
