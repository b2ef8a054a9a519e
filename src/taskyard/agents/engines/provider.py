"""Engine selection, provider accounts, rate-limit parsing, and Taskyard's MCP server for agents.

Agents on one account share a rate limit, and wait for it together. An account is a provider (`anthropic`,
`openai`, `google`, else the program's name) and its credentials: the API key and base URL in the agent's
environment, or, without a key, the folder of the program's login.

Rate limits are recognised by the wording of providers and agent programs (pure functions):

    You've hit your 5-hour limit · resets 4:50am (UTC)          a time of day, in the zone it names
    Claude AI usage limit reached|1763355000                    an epoch second
    You've hit your usage limit. Try again in 3 days 2 hours.   a duration
    429 Too Many Requests … Retry-After: 20                     seconds
    API Error: 529 overloaded                                   no time: the caller backs off

`KNOWN_AGENTS` maps names of installed agents to an engine and a command line; `choose_engine` applies the
settings.
"""

from __future__ import annotations

import re
import sys

from taskyard import config
from taskyard.agents.engines.engine import RateLimit
from taskyard.core.values import NamedTuple
from taskyard.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from taskyard.agents.engines.engine import Brief


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LONGEST = 40

#: Provider of a program, by its name; a program that can use any provider goes by its own name.
_SERVED_BY = {
    "claude": "anthropic", "claude-agent-acp": "anthropic", "claude-code-acp": "anthropic",
    "codex": "openai", "codex-acp": "openai", "gemini": "google",
    "google-gla": "google", "google-vertex": "google", "openai-chat": "openai", "openai-responses": "openai",
}  # fmt: skip

#: Variables that identify the account: keys, their base URLs, and login folders.
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY", "CODEX_API_KEY"),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
_ACCOUNT_VARIABLES = {
    "anthropic": ("ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR"),
    "openai": ("OPENAI_BASE_URL", "CODEX_HOME"),
    "google": ("GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GEMINI_CLI_HOME"),
}

#: Interpreters: the account goes by the name of the script instead.
_INTERPRETERS = ("python", "node", "bash", "sh", "env", "ruby", "deno", "bun", "npx", "uvx")


class Account(NamedTuple):
    """An account with a provider."""

    provider: str  #: common name
    key: str  #: usable in a file name: the provider, and a digest of the credentials


def account_of(engine: str, command: Sequence[str], model: str | None, env: Mapping[str, str]) -> Account:
    """Return the account that an agent uses, by its engine, program, model and environment."""
    served_by = _program(command) if command else (model or "").partition(":")[0] or _default_program(engine)
    provider = _SERVED_BY.get(served_by, served_by)
    names = (provider,) if provider in _KEYS else tuple(_KEYS)
    keys = [f"{name}={env[name]}" for each in names for name in _KEYS[each] if env.get(name)]
    places = [f"{name}={env[name]}" for each in names for name in _ACCOUNT_VARIABLES[each] if env.get(name)]
    home = [] if keys else [f"HOME={env.get('HOME', '')}"]
    import hashlib

    digest = hashlib.sha256("\n".join([provider, *keys, *places, *home]).encode("utf-8", "surrogateescape")).hexdigest()
    name = "".join(char if char in _LETTERS else "-" for char in provider)[:_LONGEST]
    return Account(name, f"{name}-{digest[:12]}")


def _default_program(engine: str) -> str:
    return {"claude-stream": "claude"}.get(engine, engine)


def _program(command: Sequence[str]) -> str:
    names = [word.rsplit("/", 1)[-1] for word in command]
    if names[0].rstrip("0123456789.") in _INTERPRETERS:
        script = next((name for name in names[1:] if not name.startswith("-")), "")
        is_name = script and "-c" not in command and len(script) <= _LONGEST and not any(map(str.isspace, script))
        return script.rsplit(".", 1)[0] if is_name else names[0]
    return names[0]


#: Wordings of a refusal for the number of requests, not for their content.
_LIMITED = re.compile(
    r"(?<![\w.])(?:429|529)(?![\w.]*\d)|rate.?limit|too many requests|overloaded|resource.?exhausted"
    r"|quota (?:exceeded|reached)|exceeded your (?:current )?(?:quota|usage)|usage limit|limiting requests"
    r"|hit your [\w\- ]{0,40}limit"
    r"|limit reached",
    re.IGNORECASE,
)

#: Wordings that no wait resolves, unless they name a time: the user has to pay.
_BILLING = re.compile(r"insufficient_quota|billing|credit balance|payment required", re.IGNORECASE)

_EPOCH = re.compile(r"\|\s*(\d{10})\b")
_CLOCK = re.compile(
    r"\b(?:resets?|try again|retry)(?: at| on)?\s+(?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"(?:, \d{4})?,?(?: at)? )?(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>[ap]m)?"
    r"(?:\s*\((?P<zone>[\w/+-]{1,40})\))?",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\b(?:retry[- _]?after|retry[- _]?delay|(?:try again|retry|resets?) in)\W{0,4}(?P<amount>\d[\w .,]{0,60})",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s|hours?|hrs?|h|days?|d)?")
_BETWEEN = re.compile(r"[ ,]*(?:and )?")
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

#: Maximum characters of a reason that are kept, and of a text that are examined.
LONGEST_REASON, _LONGEST_TEXT = 300, 10_000

_DAY = 86_400

#: Seconds by which a time of day may be past and still be today's: clocks differ, and messages take time.
_JUST_PASSED = 900.0

#: Maximum seconds a provider refuses for: a later time is not believed.
_FARTHEST = 60 * _DAY


def parse_rate_limit(text: str, *, provider: str, now: float) -> RateLimit | None:
    """Return the rate limit that a text is about; None if it is about something else.

    Args:
        text: An error, as it was printed.
        provider: Common name of the provider that refused.
        now: Epoch seconds: times of day are the next ones after it.
    """
    text = text[:_LONGEST_TEXT]
    if _LIMITED.search(text) is None:
        return None
    until = parse_reset_time(text, now=now)
    if until is None and _BILLING.search(text) is not None:
        return None
    reason = " ".join(text.split())[:LONGEST_REASON]
    return RateLimit(provider, reason, None if until is None else round(until * 1000))


def parse_reset_time(text: str, *, now: float) -> float | None:
    """Return when a limit lifts according to a text, in epoch seconds; None without a plausible time.

    >>> parse_reset_time("resets 4:50am (UTC)", now=4 * 3600), parse_reset_time("Retry-After: 20", now=100.0)
    (17400.0, 120.0)
    """
    if found := _EPOCH.search(text):
        return _plausible_time(float(found[1]), now)
    if found := _AFTER.search(text):
        return _plausible_time(now + _parse_duration(found["amount"]), now)
    if found := _CLOCK.search(text):
        if found["half"] is None and found["minute"] is None:
            return None  # a bare number is not a time of day
        return _plausible_time(_at_clock(found, now), now)
    return None


def _plausible_time(moment: float | None, now: float) -> float | None:
    return moment if moment is not None and now < moment < now + _FARTHEST else None


def _parse_duration(amount: str) -> float:
    """Parse `20`, `24.5s`, `3 days 2 hours 5 minutes`, `1h30m` to seconds; text after it is ignored."""
    total, at = 0.0, 0
    while found := _PART.match(amount, at):
        unit = (found[2] or "s").lower()
        scale = 0.001 if unit.startswith(("ms", "milli")) else _UNITS.get(unit[0], 1.0)
        total += float(found[1]) * scale
        at = found.end()
        if found[2] is None:
            break
        between = _BETWEEN.match(amount, at)
        at = between.end() if between is not None else at
    return total


def _at_clock(found: re.Match[str], now: float) -> float | None:
    """Return the next such time of day in the named zone, else in this machine's."""
    import datetime

    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    if hour > 23 or minute > 59:
        return None
    zone = _zone(found["zone"])
    today = datetime.datetime.fromtimestamp(now, zone)
    try:
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            at = today.replace(month=month, day=int(found["day"]), hour=hour, minute=minute, second=0, microsecond=0)
            at = at if at.timestamp() > now else at.replace(year=at.year + 1)
        else:
            at = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
            if now - _JUST_PASSED < at.timestamp() <= now:
                return None
            at = at if at.timestamp() > now else at + datetime.timedelta(days=1)
    except ValueError:
        return None  # no such day
    return at.timestamp()


def _zone(name: str | None) -> tzinfo | None:
    import datetime

    if name is None:
        return None
    if name.upper() in ("UTC", "GMT", "Z"):
        return datetime.UTC
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (OSError, ValueError):
        return None  # unknown zone: assume this machine's


#: HTTP status codes of overload: too many requests, unavailable, overloaded.
_OVERLOAD_STATUS = re.compile(r"(?<![\w.])(429|503|529)(?![\w.]*\d)")


def is_overload(text: str) -> bool:
    """Return whether a retry may succeed, by the status codes in a text.

    >>> is_overload("API Error: 529 overloaded"), is_overload("exit code 1"), is_overload("line 4290")
    (True, False, False)
    """
    return _OVERLOAD_STATUS.search(text) is not None


class KnownAgent(NamedTuple):
    """An agent program of another vendor."""

    name: str
    engine: str
    command: tuple[str, ...]
    about: str


KNOWN_AGENTS = (
    KnownAgent("claude", "claude", ("claude",), "Claude Code"),
    KnownAgent("gemini", "gemini", ("gemini",), "Gemini CLI"),
    KnownAgent("codex", "codex", ("codex",), "Codex CLI"),
    KnownAgent("opencode", "opencode", ("opencode",), "opencode"),
    KnownAgent("aider", "command", ("aider", "--yes-always", "--message={prompt}"), "Aider"),
    KnownAgent("goose", "command", ("goose", "run", "-i", "-"), "goose"),
    KnownAgent("claude-acp", "acp", ("claude-agent-acp",), "Claude Code, by its adapter"),
    KnownAgent("gemini-acp", "acp", ("gemini", "--acp"), "Gemini CLI"),
    KnownAgent("codex-acp", "acp", ("codex-acp",), "Codex CLI, by its adapter"),
    KnownAgent("copilot-acp", "acp", ("copilot", "--acp"), "GitHub Copilot CLI"),
    KnownAgent("cursor-acp", "acp", ("cursor-agent", "acp"), "Cursor"),
    KnownAgent("opencode-acp", "acp", ("opencode", "acp", "--print-logs", "--log-level=ERROR"), "opencode"),
    KnownAgent("goose-acp", "acp", ("goose", "acp"), "goose"),
    KnownAgent("qwen-acp", "acp", ("qwen", "--acp"), "Qwen Code"),
    KnownAgent("cline-acp", "acp", ("cline", "--acp"), "Cline"),
    KnownAgent("auggie-acp", "acp", ("auggie", "--acp"), "Auggie"),
    KnownAgent("vibe-acp", "acp", ("vibe-acp",), "Mistral Vibe"),
)


class EngineInfo(NamedTuple):
    """A name that `--engine` takes here."""

    name: str
    engine: str
    about: str
    path: str | None  #: of the program, where it is one
    missing: str = ""  #: what is missing, in a few words

    @property
    def is_ready(self) -> bool:
        """Whether it can be used."""
        return not self.missing


def list_engines(*, path: str | None = None) -> list[EngineInfo]:
    """Return every engine and every known agent, with whether it can be used; `path` as $PATH."""
    import shutil

    from taskyard.agents import engines

    ours = [
        EngineInfo(name, name, _ABOUT.get(name, "an engine of a plug-in"), None, _missing_library(name))
        for name in engines.known_engines()
        if name not in {one.name for one in KNOWN_AGENTS}
    ]
    theirs: list[EngineInfo] = []
    for one in KNOWN_AGENTS:
        where = shutil.which(one.command[0], path=path)
        missing = _missing_library(one.engine) if where else f"{one.command[0]} is not installed"
        theirs.append(EngineInfo(one.name, one.engine, one.about, where, missing))
    return [*ours, *theirs]


def _missing_library(engine: str) -> str:
    """Return how to install what an engine of ours is missing; empty if nothing."""
    from importlib.util import find_spec

    if all(find_spec(module) is not None for module in _NEEDS.get(engine, ())):
        return ""
    from taskyard.core.installation import extra_install_command

    return f"needs {extra_install_command('agents')}"


def resolve_engine(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the engine and the command line of a name; an engine's own name stands for itself."""
    for one in KNOWN_AGENTS:
        if one.name == name:
            return one.engine, one.command
    return name, ()


def model_for(engine: str, wanted: str | None, *, usual: str) -> str | None:
    """Return the model to use: the wanted one, or, where an engine requires one, the usual."""
    return wanted or (usual or None if engine == "model" else None)


_ABOUT = {
    "command": "any program: the prompt in, its answer out (--command)",
    "claude-stream": "programs that print their conversation as Claude Code does (--command)",
    "acp": "programs that speak the Agent Client Protocol (--command)",
    "model": "any model, with tools of our own (--model provider:name)",
}

#: Libraries that engines need: the extra `agents` installs them.
_NEEDS = {"acp": ("acp",), "model": ("pydantic_ai", "mcp")}


class EngineChoice(NamedTuple):
    """An engine with its command line and model."""

    engine: str
    command: tuple[str, ...]  #: for engines that are programs
    model: str | None


def choose_engine(
    engine: str, command: Sequence[str], model: str | None, settings: config.Settings | None = None
) -> EngineChoice:
    """Return the engine, the program it runs, and the model it runs on.

    Raises:
        BadValue: the program in the settings is not a valid command.
    """
    settings = settings or config.load_settings()
    found, program = resolve_engine(engine or settings.engine)
    if command:
        program = tuple(command)
    elif not program and found == "command":
        program = split_command("agent_command", settings.agent_command)
    return EngineChoice(found, program, model_for(found, model, usual=settings.agent_model))


def split_command(setting: str, command: str) -> tuple[str, ...]:
    """Split a command in a setting into words, as a shell would.

    Raises:
        BadValue: it has unbalanced quotes or the like.
    """
    import shlex

    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise BadValue(setting, command, f"a command as a shell would read it ({error})") from None


#: Besides TASKYARD_*: variables that decide where our files are, and whether Python finds us.
_NEEDED = ("HOME", "PATH", "CLAUDE_CONFIG_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "VIRTUAL_ENV")

#: A secret of the server over HTTP, which no agent needs.
_SECRET_VARIABLE = "TASKYARD_MCP_TOKEN"  # noqa: S105 - the name of a variable


#: Tools of ours that run nothing by themselves. The others (Bash, Agent, Workflow, Monitor, SendInput) run
#: commands, or type into them.
HARMLESS_TOOLS = (
    "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskClaim", "TaskOutput", "ListJobs", "SendMessage", "ReadMail",
)  # fmt: skip


def is_available() -> bool:
    """Return whether the server can run here: it needs the extra `mcp`."""
    from importlib.util import find_spec

    return find_spec("mcp") is not None


def restrict_tools(brief: Brief) -> Brief:
    """Limit a brief to the tools of ours that its mode allows.

    In `ask` and `edit` none of them runs a command. For engines that cannot ask the user about a tool of
    ours.
    """
    if brief.permissions not in ("ask", "edit"):
        return brief
    return brief._replace(env={**brief.env, "TASKYARD_COMMAND_TOOLS": "false"})


def server_command(brief: Brief) -> list[str]:
    """Return the command of the MCP server for a brief: the agent's name, and the list of its folder."""
    name = brief.env.get("TASKYARD_AGENT", "agent")
    list_name = config.list_name(env=brief.env, cwd=brief.cwd)
    return [sys.executable, "-P", "-m", "taskyard", "mcp", "--agent", name, "--list", list_name]


def server_env(brief: Brief) -> dict[str, str]:
    """Return the environment variables the server needs; a client passes on hardly any by itself."""
    return {
        name: value
        for name, value in brief.env.items()
        if (name.startswith("TASKYARD_") and name != _SECRET_VARIABLE) or name in _NEEDED
    }
