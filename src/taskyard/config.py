"""
Settings: defaults, then `config.toml`, then the environment.

The file is `$XDG_CONFIG_HOME/taskyard/config.toml` (usually `~/.config/taskyard/config.toml`).
A key `lock_timeout = 5` there is `TASKYARD_LOCK_TIMEOUT=5` in the environment.
"""

from __future__ import annotations

import os

from taskyard.errors import BadValue, Damaged
from taskyard.paths import env_folder, user_home
from taskyard.plain_file import read_plain
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Settings(NamedTuple):
    """Everything that can be set, each number with its reason."""

    lock_timeout: float = 15.0  #: longer than the 10 s after which another program's lock counts as stale
    durability: str = "process"  #: "process" survives kill -9 of anything; "power" also a power cut, by fsync
    debounce: float = 0.01  #: seconds a burst of file events may gather before watchers wake; at most 0.05
    poll_interval: float = 5.0  #: how often a watcher looks by itself while something is unfinished
    lease_losses: int = 3  #: this many lost holders set a task aside for a person
    hook_timeout: float = 60.0  #: a hook still running then is ended and does not block
    paths_policy: str = "warn"  #: overlapping `paths` of two open claims: "warn", "refuse" or "off"
    verify_nudge: bool = True  #: ask for an independent verifier after the last of three or more tasks
    verifier: str = "verification"  #: the agent type that gives the verdict
    job_output_cap: int = 1_000_000_000  #: bytes of a job's output on disk; of more, its head and newest half are kept
    job_limit: int = 200  #: jobs that run at once; the next waits for a slot
    shell_limit: int = 200  #: shell commands among them
    job_depth: int = 5  #: how many jobs may be inside each other; 1 = none may start another
    job_starts_per_minute: int = 0  #: jobs that may begin within any minute; 0 = as many as like
    background_key: str = ""  #: moves an attached run to the background; "" = Ctrl+B, in tmux Ctrl+]; "off" = none does
    stall_after: float = 45.0  #: seconds of silence after which a job that asked something counts as waiting
    prompt_after: float = (
        10.0  #: the same for a job that is blocked reading its input after a line without a newline; 0 = off
    )
    stalled_after: float = 60.0  #: seconds without progress while working before a member counts as stalled
    job_store_quota: int = 10_000_000_000  #: bytes all jobs may take on disk: a hundred outputs at their cap
    event_segments: int = (
        8  #: files of 64 MB with events of jobs that are kept: half a gigabyte is over a million events
    )
    engine: str = "command"  #: what agents run on if nothing else is asked for; `taskyard engines` lists them
    agent_command: str = ""  #: the program of the engine `command`, as a shell would read it
    summary_every: float = 30.0  #: seconds between two summaries of what an agent is doing; 0 = none
    summary_engine: str = ""  #: what makes them; "" = a rule, from what it did and said last, or summary_command
    summary_command: str = ""  #: the program of that engine, as a shell would read it
    agent_limit: int = 20  #: agents that run at once, at each depth; more than that trips the limits of providers
    agent_starts_per_minute: int = 0  #: agents that may begin within any minute; 0 = as many as like
    agent_tokens: int = 0  #: tokens one agent may use; 0 = as many as it takes
    agent_cost: float = 0.0  #: dollars one agent may cost, where its engine tells; 0 = whatever it takes
    agent_tree_tokens: int = 0  #: tokens all agents below one outermost job may use together; 0 = as many as it takes
    agent_tree_cost: float = 0.0  #: dollars they may cost together
    agent_day_tokens: int = 0  #: tokens all agents of a day may use together; the next one waits for another day
    agent_day_cost: float = 0.0  #: dollars they may cost together
    agent_model: str = ""  #: the model of the engine `model` if none is asked for, such as anthropic:claude-sonnet-4-5
    agent_tools: bool = True  #: agents on the engines `claude`, `acp` and `model` get the tools of `taskyard mcp`
    agent_permissions: str = ""  #: what agents may do without asking: "ask", "edit", "work", "all"; "" = by the engine
    ask_timeout: float = (
        43_200.0  #: seconds a permission request waits: the morning can answer the evening; 0 = no limit
    )
    agent_start: float = 60.0  #: seconds an agent's program has to say hello: some are fetched first
    agent_silence: float = 1800.0  #: seconds without a word in the middle of a turn: longer than tools take
    on_rate_limit: str = "wait"  #: what agents do when their account is rate-limited: "wait", or "stop"
    rate_limit_wait: float = 86_400.0  #: seconds an agent waits for a rate limit to lift: overnight, and the day after
    rate_limit_retry: float = 5.0  #: seconds before the first retry where a provider names no time; then twice that
    mcp_patience: float = 45.0  #: seconds a tool call waits for a command; clients give up after 60
    mcp_lease: float = 600.0  #: seconds a client over HTTP may be silent before its claims and jobs are let go
    mcp_callers: int = 100  #: clients over HTTP at once; each keeps what it read of the list in memory
    mcp_body_limit: int = 4_000_000  #: bytes of one request over HTTP; the longest field a tool takes has 200,000
    mcp_structured: bool = False  #: tool answers carry structuredContent, for programs; many clients hide the text then
    mcp_defer_after: float = 2.0  #: seconds a call waits before a client that can wait by itself gets a task to look at
    a2a_tasks: int = 10  #: tasks of one caller over A2A that may go on at once
    a2a_body_limit: int = 4_000_000  #: bytes of one request over A2A
    memory_dir: str = ""  #: what dreams work on: a path, "claude" or "taskyard"; "" = Claude Code's if it is there
    dream_enabled: bool = True  #: False: none begins unless a person forces it
    dream_hours: float = 24.0  #: between two dreams at least: a day's work is worth a look back
    dream_sessions: int = 5  #: since the last one: fewer teach little that is new
    dream_sources: str = "claude,taskyard"  #: where past sessions are read from
    dream_copies: int = 10  #: earlier states of a memory folder that are kept
    monitor_tool: bool = True  #: models are offered the Monitor tool
    command_tools: bool = True  #: models are offered tools that run commands: Bash, Agent, Workflow, Monitor
    monitor_notices: bool = True  #: whoever starts a monitor is told what it sees; its output has it anyway
    task_rows: int = 10  #: tasks that `taskyard tui` shows at once, the others by scrolling; 0 = as many as fit
    job_age_limit: float = 30 * 86_400.0  #: seconds ended jobs are kept: a month back is as far as anyone looks
    store: str = "files"  #: where lists, mail and notices live: "files", or postgresql://… for several machines
    database_patience: float = 15.0  #: seconds for which a database that is away is tried again
    holder_silence: float = 30.0  #: seconds an agent elsewhere is believed to live without another word from it
    host: str = ""  #: what this machine is called where several share a database; "" = its own name


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in force for this process.

    Raises:
        Damaged: the settings file is not TOML.
        BadValue: a setting is unknown, or of the wrong type or range.
    """
    env = os.environ if environ is None else environ
    values = {name: value for name, value in in_file(env).items() if not isinstance(value, (dict, list))}
    for name in Settings._fields:
        if (text := env.get(f"TASKYARD_{name.upper()}")) is not None:
            values[name] = text
    return _checked(values) if values else Settings()


#: Far more than any settings need; what is larger is cut, and then is no TOML.
_LARGEST_FILE = 4 * 1024 * 1024


def config_folder(env: Mapping[str, str]) -> str:
    """Where Taskyard's own configuration lives."""
    base = env_folder("XDG_CONFIG_HOME", env) or os.path.join(user_home(env), ".config")
    return os.path.join(base, "taskyard")


def in_file(env: Mapping[str, str]) -> dict[str, object]:
    """Everything that `config.toml` says; nothing where there is none.

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
    import tomllib  # 15 ms that only those with a settings file pay

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

#: Below this a file system frees nothing.
SMALLEST_CAP = 65_536

#: The least of some settings: with 0 of these nothing would ever run.
_LEAST = {
    **dict.fromkeys(
        ("job_limit", "shell_limit", "agent_limit", "job_depth", "mcp_lease", "mcp_callers", "mcp_body_limit"), 1
    ),
    **dict.fromkeys(("a2a_tasks", "a2a_body_limit"), 1),
    "job_output_cap": SMALLEST_CAP,
    "holder_silence": 1,
    "dream_copies": 1,
}

#: What Ctrl may be held with: not C, D, H, I, J, M, Q, S, Z, [ and backslash, which terminals have a use for.
_KEYS = frozenset("abefgklnoprtuvwxy]^_")


def _checked(values: Mapping[str, object]) -> Settings:
    known: dict[str, object] = {}
    for name, value in values.items():
        if name not in Settings._fields:
            raise BadValue("The setting", name, f"one of {', '.join(Settings._fields)}")
        known[name] = _typed(name, value)
    settings = Settings(**known)  # type: ignore[arg-type]  # _typed gave each field its own type
    if not 0 <= settings.debounce <= 0.05:
        raise BadValue("debounce", settings.debounce, "at most 0.05 seconds")
    return settings


def _typed(name: str, value: object) -> object:
    default = Settings._field_defaults[name]
    if isinstance(default, bool):
        if str(value).lower() not in _YES + _NO:
            raise BadValue(name, value, "true or false")
        return str(value).lower() in _YES
    if name == "background_key":
        return _key(value)
    if isinstance(default, str):
        choices = _CHOICES.get(name)
        if choices and value not in choices:
            raise BadValue(name, value, " or ".join(choices))
        return str(value)
    try:
        number = type(default)(str(value))  # "5" and 5 alike
    except ValueError as error:
        raise BadValue(name, value, "a number") from error
    least = _LEAST.get(name, 0)
    if not least <= number < float("inf"):
        raise BadValue(name, value, f"a number from {least:,}")
    return number


def _key(value: object) -> str:
    """`Ctrl+B`, `ctrl-b`, `^B` or `b`, as `ctrl+b`."""
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
