"""Paths, the current list and project, settings, and the database address.

    $TASKYARD_HOME                 our own state (0700): mail, teams, instances, trust
    <tasks_dir>/<list>/            a list: N.json, .lock, .highwatermark, shared with Claude Code
    <tasks_dir>/<list>/.taskyard/  our own files of that list: lock, log, leases

Settings are the defaults, overridden by `$XDG_CONFIG_HOME/taskyard/config.toml` (usually
`~/.config/taskyard/config.toml`), overridden by the environment. A key `lock_timeout = 5` in the file is
`TASKYARD_LOCK_TIMEOUT=5` in the environment.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from taskyard.core.files import read_plain
from taskyard.core.values import NamedTuple, folder_name
from taskyard.errors import BadName, BadValue, Damaged, MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


#: The team of the in-process teammate for which this code runs.
teammate_team: ContextVar[str | None] = ContextVar("teammate_team", default=None)

#: Variables whose relative values this process has warned about.
_warned: set[str] = set()


def user_home(env: Mapping[str, str] | None = None) -> str:
    """Return the user's home folder: `$HOME` if it is absolute, else the password database's entry."""
    home = _absolute("HOME", os.environ if env is None else env)
    if home is not None:
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise BadValue("HOME", "", "an absolute path: this user has no entry in the password database") from None


def env_folder(name: str, env: Mapping[str, str] | None = None) -> str | None:
    """Return the absolute folder in the variable `name`; None if the variable is unset or ignored.

    A relative value would name a folder of the current project, and make that project's settings the user's
    own. `XDG_*` variables are then ignored with a warning, as their specification requires.

    Raises:
        BadValue: any other variable has a relative path.
    """
    env = os.environ if env is None else env
    value = env.get(name)
    if not value:
        return None
    if name.startswith("XDG_"):
        return _absolute(name, env)
    if value == "~" or value.startswith("~/"):
        value = user_home(env) + value[1:]
    if not os.path.isabs(value):
        raise BadValue(name, value, "an absolute path")
    return os.path.normpath(value)


def _absolute(name: str, env: Mapping[str, str]) -> str | None:
    value = env.get(name)
    if not value or os.path.isabs(value):
        return value or None
    if name not in _warned:
        _warned.add(name)
        import sys

        sys.stderr.write(f"taskyard: ignoring {name}={value!r}: it is not an absolute path\n")
    return None


def home(env: Mapping[str, str] | None = None) -> str:
    """Return `$TASKYARD_HOME`, or `taskyard` in the XDG state folder."""
    if chosen := env_folder("TASKYARD_HOME", env):
        return chosen
    state = env_folder("XDG_STATE_HOME", env) or os.path.join(user_home(env), ".local", "state")
    return os.path.join(state, "taskyard")


def claude_folder(env: Mapping[str, str] | None = None) -> str:
    """Return Claude Code's configuration folder."""
    return env_folder("CLAUDE_CONFIG_DIR", env) or os.path.join(user_home(env), ".claude")


def tasks_dir(env: Mapping[str, str] | None = None) -> str:
    """Return the folder of lists: `$TASKYARD_TASKS_DIR`, else Claude Code's."""
    return env_folder("TASKYARD_TASKS_DIR", env) or os.path.join(claude_folder(env), "tasks")


def resolve_tasks_dir(chosen: str | os.PathLike[str] | None) -> str:
    """Return the folder of lists that a caller named, as an absolute path; by default `tasks_dir()`."""
    return os.path.abspath(str(os.fspath(chosen))) if chosen is not None else tasks_dir()


def child_tasks_dir(chosen: str | os.PathLike[str] | None, settings: Settings) -> str | None:
    """Return the folder of lists to pass to a child process; None: it finds the lists by its settings."""
    if chosen is None and settings.store != "files":
        return None
    return os.path.abspath(resolve_tasks_dir(chosen))


def list_name(chosen: str | None = None, *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> str:
    """Return the name of the current list, as a folder name.

    In this order: the argument, `TASKYARD_LIST`, `CLAUDE_CODE_TASK_LIST_ID`, the in-process teammate's team,
    `CLAUDE_CODE_TEAM_NAME`, then the project. An MCP client that created a team works on the team's list from
    then on (`servers.mcp.callers`). `TASKYARD_LIST_SCOPE=session` replaces the project's list by the session's
    own.
    """
    env = os.environ if env is None else env
    name = (
        chosen
        or env.get("TASKYARD_LIST")
        or env.get("CLAUDE_CODE_TASK_LIST_ID")
        or teammate_team.get()
        or env.get("CLAUDE_CODE_TEAM_NAME")
    )
    if chosen == "":
        raise BadName("a list", chosen, "it is empty")
    if name is None and env.get("TASKYARD_LIST_SCOPE") == "session":
        name = _session_list(env)
    return folder_name("a list", name if name is not None else project_list(cwd or os.getcwd()))


class Project(NamedTuple):
    """The project that contains a folder."""

    root: str  #: its main checkout; trust and hooks belong to it
    shared: str  #: the git folder all its worktrees share; outside git, the folder itself
    checkout: str  #: the worktree that contains the folder; the root if it is in the main checkout


def project_list(folder: str) -> str:
    """Return `<folder>-<8 hex>`: one list per project, the same from every worktree and session."""
    import zlib

    root, shared, _ = project(folder)
    name = "".join(char if char.isprintable() else "-" for char in os.path.basename(root)[:100])
    return f"{name or 'root'}-{zlib.crc32(os.fsencode(shared)):08x}"


def current_project() -> str:
    """Return the project name of the working directory, as jobs record it."""
    return project_list(os.getcwd())


def project(folder: str) -> Project:
    """Return the project that contains `folder`.

    A `.git` file counts only if the repository it names has registered this folder as its worktree: any user
    can write a file that names another user's repository. Without that, and in submodules, the folder is its
    own project. A `.git` folder counts only if it has a HEAD, as for git: Codex puts an empty one into every
    folder that its sandbox may write, while a command runs there.
    """
    folder = os.path.realpath(folder)
    here = folder
    while True:
        git = os.path.join(here, ".git")
        if os.path.lexists(f"{git}/HEAD"):
            return Project(here, git, here)
        if os.path.isfile(git):
            shared = _common_git_dir(git)
            if shared is None:
                return Project(here, git, here)
            return Project(os.path.dirname(shared) if os.path.basename(shared) == ".git" else here, shared, here)
        parent = os.path.dirname(here)
        if parent == here:
            return Project(folder, folder, folder)
        here = parent


def _common_git_dir(git_file: str) -> str | None:
    """Return the git folder that lists the folder of `git_file` as its worktree; None if none does.

    The registration is `<git folder>/worktrees/NAME/gitdir`. It is read from inside that repository, so that a
    `commondir` elsewhere cannot claim to belong to it.
    """
    text = _read_short_text(git_file)
    if not text.startswith("gitdir:"):
        return None
    entry = os.path.realpath(os.path.join(os.path.dirname(git_file), text[len("gitdir:") :].strip()))
    common = _read_short_text(os.path.join(entry, "commondir"))
    back = _read_short_text(os.path.join(entry, "gitdir"))
    if not common or not back:
        return None
    shared = os.path.realpath(os.path.join(entry, common))
    if os.path.dirname(entry) != os.path.join(shared, "worktrees"):
        return None
    return shared if os.path.realpath(os.path.join(entry, back)) == git_file else None


def _read_short_text(path: str) -> str:
    """Return the text of a small plain file; "" if there is no such file."""
    try:
        return os.fsdecode(read_plain(path, most=8192, follow=True)).strip()
    except OSError:
        return ""


def _session_list(env: Mapping[str, str]) -> str:
    session = env.get("TASKYARD_SESSION") or env.get("CLAUDE_CODE_SESSION_ID")
    if not session:
        raise BadName("a session's list", "", "set TASKYARD_SESSION to the session's id")
    return session


class Settings(NamedTuple):
    """All settings; each number with its reason."""

    lock_timeout: float = 15.0  #: seconds; longer than the 10 s after which another program's lock is stale
    durability: str = "process"  #: "process" survives kill -9 of any process; "power" also a power cut, by fsync
    debounce: float = 0.01  #: seconds to collect a burst of file events before watchers wake; at most 0.05
    poll_interval: float = 5.0  #: seconds between two polls of a watcher while a task is unfinished
    lease_losses: int = 3  #: lost holders after which a task is quarantined
    hook_timeout: float = 60.0  #: seconds; a hook that runs longer is terminated and does not block
    paths_policy: str = "warn"  #: overlapping `paths` of two open claims: "warn", "refuse" or "off"
    verify_nudge: bool = True  #: ask for an independent verifier after the last of three or more tasks
    verifier: str = "verification"  #: the agent type of the verifier
    job_output_cap: int = 1_000_000_000  #: bytes of a job's output on disk; of more, the head and newest half are kept
    job_limit: int = 200  #: jobs that run at once; the next waits for a slot
    shell_limit: int = 200  #: shell commands among them
    job_depth: int = 5  #: nesting depth of jobs; 1 = no job may start another
    job_starts_per_minute: int = 0  #: jobs that may start within any minute; 0 = no limit
    background_key: str = ""  #: moves an attached run to the background; "" = Ctrl+B, in tmux Ctrl+]; "off" = none
    stall_after: float = 45.0  #: seconds without output after which a job that printed a prompt counts as waiting
    prompt_after: float = (
        10.0  #: the same for a job that is blocked reading stdin after a line without a newline; 0 = off
    )
    stalled_after: float = 60.0  #: seconds without progress while working before a member counts as stalled
    job_store_quota: int = 10_000_000_000  #: bytes all jobs may take on disk: a hundred outputs at their cap
    event_segments: int = 8  #: job event files of 64 MB that are kept: half a gigabyte is over a million events
    engine: str = "command"  #: the default engine of agents; `taskyard engines` lists them
    agent_command: str = ""  #: the program of the engine `command`, parsed like a shell command
    summary_every: float = 30.0  #: seconds between two summaries of an agent's activity; 0 = none
    summary_engine: str = ""  #: the engine that writes them; "" = a rule on its latest activity, or summary_command
    summary_command: str = ""  #: the program of that engine, parsed like a shell command
    agent_limit: int = 20  #: agents that run at once, at each depth; more would trip providers' rate limits
    agent_starts_per_minute: int = 0  #: agents that may start within any minute; 0 = no limit
    agent_tokens: int = 0  #: token budget of one agent; 0 = no limit
    agent_cost: float = 0.0  #: dollar budget of one agent, where its engine reports cost; 0 = no limit
    agent_tree_tokens: int = 0  #: token budget of all agents below one outermost job together; 0 = no limit
    agent_tree_cost: float = 0.0  #: dollar budget of these together
    agent_day_tokens: int = 0  #: token budget of all agents per day; the next agent waits for the next day
    agent_day_cost: float = 0.0  #: dollar budget of these together
    agent_model: str = ""  #: default model of the engine `model`, such as anthropic:claude-sonnet-4-5
    agent_tools: bool = True  #: agents on the engines `claude`, `acp` and `model` get the tools of `taskyard mcp`
    agent_permissions: str = ""  #: what agents may do without asking: "ask", "edit", "work", "all"; "" = by the engine
    ask_timeout: float = 43_200.0  #: seconds a permission request waits: overnight, until the morning; 0 = no limit
    agent_start: float = 60.0  #: seconds for an agent's program to complete its handshake: some are downloaded first
    agent_silence: float = 1800.0  #: seconds without output within a turn before a timeout: longer than tools take
    on_rate_limit: str = "wait"  #: what agents do when their account is rate-limited: "wait", or "stop"
    rate_limit_wait: float = 86_400.0  #: seconds an agent waits for a rate limit to lift: overnight, and the day after
    rate_limit_retry: float = 5.0  #: seconds before the first retry if a provider names no time; then doubled (backoff)
    mcp_patience: float = 45.0  #: seconds a tool call waits for a command; clients time out after 60
    mcp_lease: float = 600.0  #: seconds without a call after which an HTTP client's claims and jobs are released
    mcp_callers: int = 100  #: HTTP clients at once; each keeps what it read of the list in memory
    mcp_body_limit: int = 4_000_000  #: bytes of one HTTP request; the longest field of a tool has 200,000
    mcp_structured: bool = False  #: tool answers carry structuredContent, for programs; many clients then hide the text
    mcp_defer_after: float = 2.0  #: seconds a call waits before a client that supports it gets a task to poll
    a2a_tasks: int = 10  #: concurrent tasks of one A2A caller
    a2a_body_limit: int = 4_000_000  #: bytes of one A2A request
    memory_dir: str = ""  #: folder that dreams work on: a path, "claude" or "taskyard"; "" = Claude Code's if it exists
    dream_enabled: bool = True  #: False: no dream starts unless a user forces it
    dream_hours: float = 24.0  #: minimum hours between two dreams: a day's work is worth reviewing
    dream_sessions: int = 5  #: minimum sessions since the last dream: fewer contain little that is new
    dream_sources: str = "claude,taskyard"  #: where past sessions are read from
    dream_copies: int = 10  #: earlier states of a memory folder that are kept
    monitor_tool: bool = True  #: models are offered the Monitor tool
    command_tools: bool = True  #: models are offered tools that run commands: Bash, Agent, Workflow, Monitor
    monitor_notices: bool = True  #: the agent that starts a monitor gets its events; its output has them anyway
    task_rows: int = 10  #: tasks that `taskyard tui` shows at once, the others by scrolling; 0 = as many as fit
    job_age_limit: float = 30 * 86_400.0  #: seconds ended jobs are kept: a month is as far back as users look
    store: str = "files"  #: where lists, mail and notices are stored: "files", or postgresql://… for several hosts
    database_patience: float = 15.0  #: seconds for which an unreachable database is retried
    holder_silence: float = 30.0  #: seconds without a heartbeat after which an agent on another host counts as dead
    host: str = ""  #: name of this host where several share a database; "" = its host name


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of this process.

    Raises:
        Damaged: the settings file is not TOML.
        BadValue: a setting is unknown, or of the wrong type or range.
    """
    env = os.environ if environ is None else environ
    values = {name: value for name, value in read_config_file(env).items() if not isinstance(value, (dict, list))}
    for name in Settings._fields:
        if (text := env.get(f"TASKYARD_{name.upper()}")) is not None:
            values[name] = text
    return _parse_settings(values) if values else Settings()


#: Bytes; far more than any settings need. A larger file is cut, and then is not TOML.
_LARGEST_FILE = 4 * 1024 * 1024


def config_folder(env: Mapping[str, str]) -> str:
    """Return the folder of Taskyard's own configuration."""
    base = env_folder("XDG_CONFIG_HOME", env) or os.path.join(user_home(env), ".config")
    return os.path.join(base, "taskyard")


def read_config_file(env: Mapping[str, str]) -> dict[str, object]:
    """Return the content of `config.toml`; {} if there is none.

    Raises:
        Damaged: it is not TOML.
    """
    path = os.path.join(config_folder(env), "config.toml")
    try:
        data = read_plain(path, most=_LARGEST_FILE, follow=True)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except OSError as error:
        raise Damaged(path, error.strerror or os.strerror(error.errno or 0)) from error
    import tomllib  # 15 ms, spent only if there is a settings file

    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Damaged(path, str(error)) from error


_CHOICES = {
    "durability": ("process", "power"),
    "paths_policy": ("warn", "refuse", "off"),
    "agent_permissions": ("", "ask", "edit", "work", "all"),
    "on_rate_limit": ("wait", "stop"),
}
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

#: Bytes; below this a file system frees nothing.
MIN_OUTPUT_CAP = 65_536

#: Minimum of some settings: with 0 of these nothing would ever run.
_MINIMUM = {
    **dict.fromkeys(
        ("job_limit", "shell_limit", "agent_limit", "job_depth", "mcp_lease", "mcp_callers", "mcp_body_limit"), 1
    ),
    **dict.fromkeys(("a2a_tasks", "a2a_body_limit"), 1),
    "job_output_cap": MIN_OUTPUT_CAP,
    "holder_silence": 1,
    "dream_copies": 1,
}

#: Keys for Ctrl+key: not C, D, H, I, J, M, Q, S, Z, [ and backslash, which terminals use.
_KEYS = frozenset("abefgklnoprtuvwxy]^_")


def _parse_settings(values: Mapping[str, object]) -> Settings:
    known: dict[str, object] = {}
    for name, value in values.items():
        if name not in Settings._fields:
            raise BadValue("The setting", name, f"one of {', '.join(Settings._fields)}")
        known[name] = _parse_value(name, value)
    settings = Settings(**known)  # type: ignore[arg-type]  # _typed gave each field its own type
    if not 0 <= settings.debounce <= 0.05:
        raise BadValue("debounce", settings.debounce, "at most 0.05 seconds")
    return settings


def _parse_value(name: str, value: object) -> object:
    default = Settings._field_defaults[name]
    if isinstance(default, bool):
        if str(value).lower() not in _YES + _NO:
            raise BadValue(name, value, "true or false")
        return str(value).lower() in _YES
    if name == "background_key":
        return _parse_key(value)
    if isinstance(default, str):
        choices = _CHOICES.get(name)
        if choices and value not in choices:
            raise BadValue(name, value, " or ".join(choices))
        return str(value)
    try:
        number = type(default)(str(value))  # "5" and 5 alike
    except ValueError as error:
        raise BadValue(name, value, "a number") from error
    least = _MINIMUM.get(name, 0)
    if not least <= number < float("inf"):
        raise BadValue(name, value, f"a number from {least:,}")
    return number


def _parse_key(value: object) -> str:
    """Return `Ctrl+B`, `ctrl-b`, `^B` or `b` as `ctrl+b`."""
    text = str(value).strip().lower()
    if text in ("", "off"):
        return text
    for lead in ("ctrl+", "ctrl-", "c-", "^"):
        if text.startswith(lead) and len(text) > len(lead):
            text = text[len(lead) :]
            break
    if text not in _KEYS:
        allowed = "Ctrl+ and a letter or one of ] ^ _, such as Ctrl+G, but none of C, D, H, I, J, M, Q, S, Z; or off"
        raise BadValue("background_key", value, allowed)
    return f"ctrl+{text}"


#: Prefixes of a database address.
SCHEMES = ("postgresql://", "postgres://")


def is_database_url(store: str) -> bool:
    """Return whether `store` is a database address."""
    return store.startswith(SCHEMES)


def strip_password(address: str) -> str:
    """Return the address without a password, for clients that get it from `~/.pgpass`, PGPASSWORD or a service file."""
    import re

    plain = re.sub(r"(?<=://)([^:/?@]*):[^/?]*@", r"\1@", address, count=1)
    return re.sub(r"(?<=[?&])(password|sslpassword)=[^&]*&?", "", plain).rstrip("?&")


def database_label(address: str) -> str:
    """Return host, port and name of a database for messages; never a password.

    Raises:
        BadValue: the address is invalid.
        MissingExtra: the packages for PostgreSQL are not installed.
    """
    found = parse_database_url(address)
    host = found.get("host") or found.get("hostaddr") or found.get("service") or "the local socket"
    port = f":{found['port']}" if found.get("port") else ""
    return f"{host}{port}/{found.get('dbname') or found.get('user') or ''}".rstrip("/")


def parse_database_url(address: str) -> dict[str, str]:
    """Return the parts of an address by libpq's keywords.

    Raises:
        BadValue, MissingExtra: see `database_label`.
    """
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ModuleNotFoundError as error:
        raise MissingExtra("A store in PostgreSQL", "postgres", error.name or "") from error
    try:
        return {key: str(value) for key, value in conninfo_to_dict(address).items() if value is not None}
    except ProgrammingError:
        # libpq's message quotes the address, password included.
        raise BadValue("store", "this address", "postgresql://user@host:5432/database") from None
