"""Engines `claude` and `claude-stream`: Claude Code, and programs that print the same stream.

`claude` runs Claude Code and exchanges JSON lines with it, as its SDK does: the prompt and later messages go
in, progress and permission requests come out. A request becomes the job's question; without an answer in time
the tool is refused.

`claude-stream` runs any program that prints its conversation as Claude Code does: the prompt on stdin up to
EOF, a line of JSON per message, at last one of type `result`. Nothing can be asked or sent while it works.

A stream that breaks off without a result was cut: that is an error, and can be retried.

The module has the command line (permission mode, our MCP server), the classification of errors (rate limits,
reset times, retryable ones), permission questions, usage counting, and the stream parser.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time

from taskyard import config as config_module
from taskyard.agents.engines import provider
from taskyard.agents.engines.engine import RateLimit, TurnResult
from taskyard.agents.engines.process import Program, is_session_lost
from taskyard.core.system import now_ms
from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple, as_list, as_object, as_text
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence
    from datetime import datetime

    from taskyard.agents.engines.engine import Brief, Recorder


#: Output options; every engine here reads this stream.
STREAM = ("-p", "--output-format", "stream-json", "--verbose")

#: Prompts, messages and answers go in as lines; permission requests come out as lines; token counts are
#: streamed.
CONTROL = ("--input-format", "stream-json", "--include-partial-messages")
PROMPTS = ("--permission-prompt-tool", "stdio")

SERVER = "taskyard"

#: Options by which a command line sets a permission mode itself.
_PERMISSION_OPTIONS = ("--permission-mode", "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions")

#: The mode where none is set: it can ask, so commands do.
_DEFAULT = "edit"

_ACCEPT_EDITS = ("--permission-mode", "acceptEdits")
_MODE_FLAGS = {
    "ask": (),
    "edit": _ACCEPT_EDITS,
    "work": _ACCEPT_EDITS,
    "all": ("--permission-mode", "bypassPermissions"),
}


def cli_options(brief: Brief, *, session: str | None, allowed: Iterable[str] = ()) -> list[str]:
    """Return the options that follow the program's own words; `allowed` are rules granted earlier in this job."""
    command = brief.command
    permissions = brief.permissions or _DEFAULT
    rules = ["Bash", *allowed] if permissions == "work" else list(allowed)
    prompts = () if _has_option(command, PROMPTS[:1]) else PROMPTS
    model = ("--model", brief.model) if brief.model else ()
    resumed = ("--resume", session) if session else ()
    server: tuple[str, ...] = ()
    if brief.own_tools and provider.is_available():
        server = ("--mcp-config", mcp_config(brief))
        own = ("*",) if permissions in ("work", "all") else provider.HARMLESS_TOOLS  # the others ask, like Bash
        rules = [*(f"mcp__{SERVER}__{tool}" for tool in own), *rules]
    granted = ("--allowedTools", *rules) if rules else ()
    return [*STREAM, *CONTROL, *prompts, *access_options(brief), *model, *resumed, *server, *granted]


def access_options(brief: Brief) -> tuple[str, ...]:
    """Return the permission mode, unless the command line names one, and extra folders it may use."""
    mode = () if _has_option(brief.command, _PERMISSION_OPTIONS) else _MODE_FLAGS[brief.permissions or _DEFAULT]
    return (*mode, *(word for folder in brief.reads for word in ("--add-dir", folder)))


def mcp_config(brief: Brief) -> str:
    """Return our server's configuration for `--mcp-config`.

    Environment variables are referenced, not written: other users can read a command line. `alwaysLoad` puts
    the tools into the first request, and makes the program wait for the server; otherwise it defers them to a
    search.
    """
    command, *arguments = provider.server_command(brief)
    env = {name: f"${{{name}}}" for name in provider.server_env(brief)}
    server = {"type": "stdio", "command": command, "args": arguments, "env": env, "alwaysLoad": True}
    return json.dumps({"mcpServers": {SERVER: server}}, separators=(",", ":"))


def check_permissions(brief: Brief) -> None:
    """Refuse what the program would refuse only after its start.

    Raises:
        UsageError: all permissions, as root, outside a sandbox.
    """
    is_root = os.geteuid() == 0 and brief.env.get("IS_SANDBOX") != "1"
    if brief.permissions == "all" and is_root and not _has_option(brief.command, _PERMISSION_OPTIONS):
        raise UsageError(
            "Claude Code refuses to run with all permissions as root. Use `--permissions work`, run as another user,"
            " or set IS_SANDBOX=1 if this machine is a sandbox."
        )


def _has_option(command: Sequence[str], options: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in options for word in command)


PROVIDER = "anthropic"

#: A limit that lifts later than this (ms) is not believed: the longest window known is a month.
_FARTHEST_MS = 32 * 86_400_000

#: Maximum characters of an error.
_LONGEST_ERROR = 1_000

_RATE_KINDS = ("rate_limit", "rate_limit_error", "overloaded", "overloaded_error", "usage_limit_reached")
_RETRYABLE_KINDS = ("server_error", "api_error", "connection_failed", "timeout_error", "malformed_tool_use_exhausted")
_FINAL_KINDS = (
    "billing_error",
    "authentication_failed",
    "authentication_error",
    "permission_error",
    "oauth_org_not_allowed",
)

_RATE_STATUS = (429, 529)
_RETRYABLE_STATUS = (408, 409)

_FINAL_TEXT = re.compile(r"credit balance is too low|invalid api key|please run /login|not logged in", re.I)
_RATE_TEXT = re.compile(
    r"hit your .{0,40}\blimit\b|usage limit reached|temporarily limiting requests|rate.?limit|\boverloaded\b"
    r"|(?<![\w.])(?:429|529)(?![\w.]*\d)",
    re.I,
)
_RETRYABLE_TEXT = re.compile(
    r"usually temporary|connection (?:lost|error|closed|reset)|mid-response|timed? ?out|(?<![\w.])50[0234](?![\w.]*\d)",
    re.I,
)

_EPOCH = re.compile(r"limit reached\|(\d{10,13})(?!\d)")
_RESETS = re.compile(
    r"resets?\s+(?:at\s+)?(?:(?P<month>[A-Z][a-z]{2})[a-z]*\.?\s+(?P<day>\d{1,2})(?:,|\s+at)?\s+)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)?\s*(?:\((?P<zone>[^()]{1,60})\))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Fault(NamedTuple):
    """Why a turn failed, as the program reports it."""

    text: str
    status: int | None = None  #: HTTP status of the API's answer
    kinds: tuple[str, ...] = ()  #: the program's and the API's error types
    resets_ms: int | None = None  #: when a rejected quota lifts, from its own event


class FaultVerdict(NamedTuple):
    """Classification of a failed turn."""

    rate_limit: RateLimit | None = None
    is_retryable: bool = False


def classify_fault(fault: Fault, *, now_ms: int) -> FaultVerdict:
    """Return whether it is a rate limit, retryable, or neither."""
    if _has_kind(fault, _FINAL_KINDS) or _FINAL_TEXT.search(fault.text):
        return FaultVerdict()
    if fault.status in _RATE_STATUS or _has_kind(fault, _RATE_KINDS) or _matches(fault, _RATE_TEXT):
        reason = escape_control(fault.text.strip() or "rate limit")[:_LONGEST_ERROR]
        until = plausible_reset(fault.resets_ms, now_ms) or reset_time(fault.text, now_ms=now_ms)
        return FaultVerdict(RateLimit(PROVIDER, reason, until), is_retryable=True)
    is_server = fault.status is not None and (fault.status >= 500 or fault.status in _RETRYABLE_STATUS)
    return FaultVerdict(
        is_retryable=is_server or _has_kind(fault, _RETRYABLE_KINDS) or _matches(fault, _RETRYABLE_TEXT)
    )


def reset_time(text: str, *, now_ms: int) -> int | None:
    """Return when a limit lifts (epoch ms) by its message: the next such time in the time zone it names.

    >>> reset_time("You've hit your 5-hour limit · resets 4:50am (UTC)", now_ms=1_700_000_000_000)
    1700023800000
    """
    if (found := _EPOCH.search(text)) is not None:
        return plausible_reset(int(found[1]) * (1 if len(found[1]) > 11 else 1000), now_ms)
    found = _RESETS.search(text)
    if found is None or (found["half"] is None and found["minute"] is None):
        return None
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    hour = int(found["hour"]) % 12 + 12 * (found["half"] == "pm") if found["half"] else int(found["hour"])
    try:
        zone = ZoneInfo(found["zone"]) if found["zone"] else datetime.now(UTC).astimezone().tzinfo
        now = datetime.fromtimestamp(now_ms / 1000, zone)
        at = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0, fold=0)
        if found["month"]:
            at = _on_date(at, _MONTHS.index(found["month"]) + 1, int(found["day"]), now)
        elif at <= now:
            at = (at.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
        return plausible_reset(round(at.timestamp() * 1000), now_ms)
    except (ValueError, OSError, OverflowError, KeyError):  # no such time, month or time zone
        return None


def _on_date(at: datetime, month: int, day: int, now: datetime) -> datetime:
    at = at.replace(month=month, day=day)
    return at if at > now else at.replace(year=at.year + 1)


def plausible_reset(reset_ms: int | None, now_ms: int) -> int | None:
    """Return `reset_ms` if a limit can lift then; None if it is past or too late."""
    return reset_ms if reset_ms is not None and now_ms < reset_ms <= now_ms + _FARTHEST_MS else None


def rejected_until(info: Mapping[str, object]) -> int | None:
    """Return when a quota that rejects requests lifts (epoch ms); 0: unknown, None: it does not reject."""
    if as_text(info.get("status")) != "rejected":
        return None
    at = info.get("resetsAt")
    if not isinstance(at, (int, float)) or isinstance(at, bool) or not 0 < at < 1e14:
        return 0
    return round(at if at > 1e11 else at * 1000)


def parse_fault(result: Mapping[str, object], spoken: Mapping[str, object], resets_ms: int | None) -> Fault:
    """Return the fault in a failed result, with the error message printed before it (`spoken`)."""
    listed = "; ".join(as_text(one) for one in as_list(result.get("errors")) or [])
    text = as_text(result.get("result")) or listed or as_text(result.get("subtype")) or "it failed"
    status = next(
        (at for at in (result.get("api_error_status"), spoken.get("api_error_status")) if type(at) is int), None
    )
    names = ("api_error_type", "api_error", "error")
    kinds = tuple(name for line in (result, spoken) for key in names if (name := as_text(line.get(key))))
    info = as_object((as_object(spoken.get("api_error_params")) or {}).get("rate_limit_info")) or {}
    return Fault(text[:_LONGEST_ERROR], status, kinds, rejected_until(info) or resets_ms or None)


def _has_kind(fault: Fault, kinds: tuple[str, ...]) -> bool:
    return any(kind in kinds for kind in fault.kinds)


def _matches(fault: Fault, text: re.Pattern[str]) -> bool:
    """Return whether an error with neither status nor kind matches a text pattern."""
    return fault.status is None and not fault.kinds and text.search(fault.text) is not None


#: Maximum characters of a question, of one input value, and number of values shown.
_LONGEST_QUESTION, _LONGEST_VALUE, _MOST_VALUES = 1_800, 500, 8

#: Maximum characters of what "always" grants. A longer one is not offered: a grant is shown in full or not
#: at all.
_LONGEST_GRANT = 300

#: Maximum characters of a reason passed on to the model.
_LONGEST_REASON = 2_000

_YES = ("1", "y", "yes", "allow", "ok")
_ALWAYS = ("2", "a", "always", "allow always")
_NO = re.compile(r"(?:3|n|no|deny|reject)(?:$|[\s:,.;-]+(?P<reason>.*))", re.I | re.S)

#: The tool by which the model asks the user a question.
QUESTION_TOOL = "AskUserQuestion"

ANSWER_HINT = "Answer y, a or n; `n REASON` tells the agent why."


class PermissionRequest(NamedTuple):
    """A tool that the program wants to use."""

    id: str
    tool: str
    given: Mapping[str, object]
    suggestions: tuple[Mapping[str, object], ...] = ()  #: permission updates that would allow it from now on
    reason: str = ""  #: why the program asks

    @classmethod
    def read(cls, message: Mapping[str, object]) -> PermissionRequest:
        """Parse a `control_request` of subtype `can_use_tool`."""
        asked = as_object(message.get("request")) or {}
        suggestions = [as_object(one) for one in as_list(asked.get("permission_suggestions")) or []]
        return cls(
            as_text(message.get("request_id")),
            as_text(asked.get("tool_name")) or "tool",
            as_object(asked.get("input")) or {},
            tuple(one for one in suggestions if one is not None),
            as_text(asked.get("decision_reason")),
        )


class PermissionDecision(NamedTuple):
    """The user's decision."""

    is_allowed: bool
    always: bool = False
    reason: str = ""

    def response(self, request: PermissionRequest) -> dict[str, object]:
        """Return the decision in the program's format."""
        if not self.is_allowed:
            return {"behavior": "deny", "message": self.reason or "The user denied this."}
        grants = {"updatedPermissions": permission_updates(request)} if self.always else {}
        return {"behavior": "allow", "updatedInput": dict(request.given), **grants}


def permission_question(request: PermissionRequest) -> str:
    """Return the permission question for the user, with the accepted answers.

    >>> print(permission_question(PermissionRequest("1", "Bash", {"command": "make"})))
    Claude Code asks for permission to use Bash:
      command: make
    1. Allow once (y)
    2. Always allow Bash(make) in this job (a)
    3. Deny (n); `n REASON` tells the agent why
    """
    lines = [f"Claude Code asks for permission to use {escape_control(request.tool)[:100]}:"]
    lines += [
        f"  {escape_control(str(key))[:60]}: {_format_value(value)}"
        for key, value in list(request.given.items())[:_MOST_VALUES]
    ]
    if len(request.given) > _MOST_VALUES:
        lines.append(f"  … and {len(request.given) - _MOST_VALUES} more")
    if request.reason:
        lines.append(f"  ({escape_control(request.reason)[:200]})")
    always = [f"2. Always allow {words} in this job (a)"] if (words := format_grant(request)) else []
    answers = "\n".join(["1. Allow once (y)", *always, "3. Deny (n); `n REASON` tells the agent why"])
    asked = "\n".join(lines)
    room = _LONGEST_QUESTION - len(answers)
    return f"{asked if len(asked) <= room else asked[: room - 1] + '…'}\n{answers}"


def parse_decision(answer: str, request: PermissionRequest) -> PermissionDecision | None:
    """Return the decision in an answer; None if it is not one.

    >>> parse_decision("n use make", PermissionRequest("1", "Bash", {})).reason
    'use make'
    """
    said = answer.strip()
    if said.casefold() in _YES:
        return PermissionDecision(is_allowed=True)
    if said.casefold() in _ALWAYS and format_grant(request):
        return PermissionDecision(is_allowed=True, always=True)
    if (no := _NO.fullmatch(said)) is not None:
        return PermissionDecision(is_allowed=False, reason=(no["reason"] or "").strip()[:_LONGEST_REASON])
    return None


def permission_updates(request: PermissionRequest) -> list[dict[str, object]]:
    """Return the permission updates of "always": rules if the program suggests some, for this session alone."""
    rules = [one for one in request.suggestions if one.get("type") == "addRules" and one.get("behavior") == "allow"]
    chosen = rules or [one for one in request.suggestions if one.get("type") in ("setMode", "addDirectories")]
    if chosen:
        return [{**one, "destination": "session"} for one in chosen]
    command = as_text(request.given.get("command"))
    if request.tool == "Bash" and not command:
        return []
    rule = {"toolName": request.tool, **({"ruleContent": command} if request.tool == "Bash" else {})}
    return [{"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}]


def format_grant(request: PermissionRequest) -> str:
    """Describe what "always" grants; empty if it cannot be offered."""
    parts: list[str] = []
    for one in permission_updates(request):
        if one.get("type") == "addRules":
            parts += rules_in(one)
        elif one.get("type") == "addDirectories":
            parts += [f"access to {escape_control(str(path))}" for path in as_list(one.get("directories")) or []]
        elif one.get("mode") == "acceptEdits":
            parts.append("file edits")
        else:
            return ""
    words = ", ".join(parts)
    return words if len(words) <= _LONGEST_GRANT else ""


def rules_in(update: Mapping[str, object]) -> list[str]:
    """Return the rules of a permission update, in the format of `--allowedTools`."""
    found: list[str] = []
    for raw in as_list(update.get("rules")) or []:
        rule = as_object(raw) or {}
        content = as_text(rule.get("ruleContent"))
        found.append(escape_control(as_text(rule.get("toolName")) + (f"({content})" if content else "")))
    return found


def model_questions(request: PermissionRequest) -> list[tuple[str, str]]:
    """Return the questions of the model's question tool: each name, and its text for the user."""
    found: list[tuple[str, str]] = []
    for raw in as_list(request.given.get("questions")) or []:
        one = as_object(raw) or {}
        name = as_text(one.get("question"))
        lines = [escape_control(name)[:_LONGEST_VALUE]]
        for number, option in enumerate(_options(one)[:_MOST_VALUES], 1):
            about = as_text(option.get("description"))
            lines.append(
                f"{number}. {escape_control(as_text(option.get('label')))[:100]}"
                f"{f': {escape_control(about)[:100]}' if about else ''}"
            )
        if name:
            found.append((name, "\n".join(lines)))
    return found


def format_answers(request: PermissionRequest, answers: Mapping[str, str]) -> dict[str, object]:
    """Return the answers to the model's questions, in the program's format; a number selects an option."""
    given: dict[str, str] = {}
    for raw in as_list(request.given.get("questions")) or []:
        one = as_object(raw) or {}
        name = as_text(one.get("question"))
        said = answers.get(name, "").strip()
        options = _options(one)
        if said.isdecimal() and 1 <= int(said[:6]) <= len(options):
            said = as_text(options[int(said[:6]) - 1].get("label")) or said
        if name:
            given[name] = said
    return {"behavior": "allow", "updatedInput": {**request.given, "answers": given}}


def _options(asked: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    return [as_object(one) or {} for one in as_list(asked.get("options")) or []]


def _format_value(value: object) -> str:
    text = escape_control(value if isinstance(value, str) else str(value), lines=True)
    text = text.replace("\n", "\n    ")  # a value must not look like one of the answers below it
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"


#: Messages whose tokens are remembered; only the latest few can still be repeated.
_MOST_MESSAGES = 1_000


class UsageCounter:
    """Counts each message once.

    The program prints one `assistant` line per content block and repeats the message's usage on each, with
    the output tokens known when the message started. `stream_event` lines bring the final count; the `result`
    line has the sum.
    """

    def __init__(self, watcher: Recorder) -> None:
        self._watcher = watcher
        self._output: dict[str, int] = {}  # counted so far, by message id
        self._current = ""  # the message that stream events without an id belong to
        self._in_turn = 0  # output tokens counted since the last result
        self._cost = 0.0

    def message(self, message: Mapping[str, object], *, is_main: bool) -> None:
        """Count a message, or what is new of it. Only the input of the main conversation is its size."""
        usage = as_object(message.get("usage"))
        if usage is None:
            return
        known = as_text(message.get("id"))
        seen = self._output.get(known) if known else None
        output = _count(usage.get("output_tokens"))
        new = max(output - (seen or 0), 0)
        if known:
            if len(self._output) >= _MOST_MESSAGES:
                del self._output[next(iter(self._output))]
            self._output[known] = max(output, seen or 0)
        if seen is None and is_main:
            self._tell({**usage, "output_tokens": new})
        elif new:
            self._tell({"output_tokens": new})

    def event(self, event: Mapping[str, object], message_id: str, *, is_main: bool) -> None:
        """Count the tokens in an event of the model's stream."""
        kind = event.get("type")
        if kind == "message_start":
            message = as_object(event.get("message")) or {}
            self._current = as_text(message.get("id"))
            self.message(message, is_main=is_main)
        elif kind == "message_delta" and (known := message_id or self._current) in self._output:
            output = _count((as_object(event.get("usage")) or {}).get("output_tokens"))
            self.message({"id": known, "usage": {"output_tokens": output}}, is_main=False)

    def result(self, result: Mapping[str, object]) -> None:
        """Count what the lines left out, and the cost: the sums of a result are exact."""
        models = as_object(result.get("model_usage_since_last_result"))
        if models is not None:  # includes subagents and side requests, but not earlier runs of the conversation
            each = [as_object(model) or {} for model in models.values()]
            output = sum(_count(model.get("outputTokens")) for model in each)
            self._cost += sum(_dollars(model.get("costUSD")) for model in each)
        else:
            output = _count((as_object(result.get("usage")) or {}).get("output_tokens"))
            self._cost = _dollars(result.get("total_cost_usd"))
        if (missing := output - self._in_turn) > 0:
            self._tell({"output_tokens": missing})
        self._in_turn = 0
        if models is not None or "total_cost_usd" in result:
            self._watcher.costs(self._cost)

    def _tell(self, usage: Mapping[str, object]) -> None:
        self._in_turn += _count(usage.get("output_tokens"))
        self._watcher.used_tokens(usage)


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _dollars(value: object) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < float("inf") else 0.0  # type: ignore[arg-type, operator]  # is_number


#: Maximum refused tools that are kept, and characters of one name.
_MOST_REFUSED, _LONGEST_NAME = 20, 100

#: Lines that show that the model works: after a result, that another turn started.
_ACTIVITY_TYPES = frozenset({"assistant", "stream_event", "user", "control_request"})


class StreamParser:
    """Parses the stream of one run."""

    def __init__(self, watcher: Recorder) -> None:
        self._watcher = watcher
        self._usage = UsageCounter(watcher)
        self._refused: dict[str, None] = {}
        self._error_line: Mapping[str, object] = {}  # the latest message that stands for an API error
        self._resets_ms: int | None = None  # reset time of a quota that rejects requests
        self.session = ""  #: conversation id, to resume it
        self.is_working = True  #: a turn is running
        self.said: TurnResult | None = None  #: the outcome of the latest turn

    def hear(self, line: str) -> Mapping[str, object]:
        """Handle a line; return the message in it, empty if it has none."""
        message = _parse_line(line)
        if message is None:
            self._watcher.record({"type": "stdout", "text": line})
            return {}
        kind = as_text(message.get("type"))
        if kind != "stream_event":  # repeats the message in pieces
            self._watcher.record(message)
        if kind in _ACTIVITY_TYPES:
            self.is_working = True
        act = _LINE_HANDLERS.get(kind)
        if act is not None:
            act(self, message)
        return message

    def _on_assistant(self, message: Mapping[str, object]) -> None:
        inner = as_object(message.get("message")) or {}
        self._usage.message(inner, is_main=not message.get("parent_tool_use_id"))
        if message.get("is_api_error_message") is True or as_text(message.get("error")):
            self._error_line = message
        elif inner:
            self._error_line = {}
        for raw in as_list(inner.get("content")) or []:
            block = as_object(raw) or {}
            if block.get("type") == "tool_use":
                self._watcher.used_tool(as_text(block.get("name")) or "tool", as_object(block.get("input")) or {})

    def _on_stream_event(self, message: Mapping[str, object]) -> None:
        event = as_object(message.get("event")) or {}
        is_main = not message.get("parent_tool_use_id")
        self._usage.event(event, as_text(message.get("api_message_id")), is_main=is_main)

    def _system(self, message: Mapping[str, object]) -> None:
        subtype = message.get("subtype")
        if subtype == "init":
            self.session = as_text(message.get("session_id"))
            self.is_working = True
        elif subtype == "permission_denied":
            self._refuse(message.get("tool_name"))
        elif subtype == "api_retry":
            self._retries(message)

    def _retries(self, message: Mapping[str, object]) -> None:
        """Show a rate limit that the program itself waits for."""
        status, delay = message.get("error_status"), message.get("retry_delay_ms")
        kind = as_text(message.get("error"))
        fault = Fault("", status if type(status) is int else None, (kind,) if kind else ())
        if classify_fault(fault, now_ms=now_ms()).rate_limit is not None:
            seconds = delay / 1000 if isinstance(delay, (int, float)) and 0 <= delay < 1e9 else 0.0
            self._watcher.limited(seconds, f"{kind or 'rate limit'} ({status}), the agent retries")

    def _on_quota(self, message: Mapping[str, object]) -> None:
        self._resets_ms = rejected_until(as_object(message.get("rate_limit_info")) or message)

    def _ended(self, message: Mapping[str, object]) -> None:
        self.is_working = False
        self._usage.result(message)
        for raw in as_list(message.get("permission_denials")) or []:
            self._refuse((as_object(raw) or {}).get("tool_name"))
        refused = tuple(self._refused)
        self._refused = {}
        text = as_text(message.get("result"))
        is_failed = message.get("is_error") is True or as_text(message.get("subtype")).startswith("error")
        if not is_failed and message.get("terminal_reason") != "api_error":
            self.said = TurnResult(text, refused=refused)
            return
        fault = parse_fault(message, self._error_line, self._resets_ms)
        verdict = classify_fault(fault, now_ms=now_ms())
        self.said = TurnResult(
            error=fault.text, is_retryable=verdict.is_retryable, rate_limit=verdict.rate_limit, refused=refused
        )

    def _refuse(self, name: object) -> None:
        if isinstance(name, str) and name and len(self._refused) < _MOST_REFUSED:
            self._refused[escape_control(name)[:_LONGEST_NAME]] = None


_LINE_HANDLERS = {
    "assistant": StreamParser._on_assistant,  # pyright: ignore[reportPrivateUsage]
    "stream_event": StreamParser._on_stream_event,  # pyright: ignore[reportPrivateUsage]
    "system": StreamParser._system,  # pyright: ignore[reportPrivateUsage]
    "rate_limit_event": StreamParser._on_quota,  # pyright: ignore[reportPrivateUsage]
    "result": StreamParser._ended,  # pyright: ignore[reportPrivateUsage]
}


def _parse_line(line: str) -> dict[str, object] | None:
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None


#: The default program.
DEFAULT = ("claude",)

#: Seconds in which a program that is done is expected to exit.
_EXIT_TIMEOUT = 5.0

#: How often a question is asked if the answer is none of those offered.
_MOST_ATTEMPTS = 3

#: Maximum requests waiting for an answer; the program makes one per tool call.
_MOST_WAITING = 50

#: Maximum rules granted for a job that are passed on to its next run.
_MOST_RULES = 200


class Claude:
    """Claude Code."""

    def __init__(self) -> None:
        self._session: str | None = None  # resumed by the next call
        self._rules: dict[str, None] = {}  # granted for the job

    def check(self, brief: Brief) -> None:
        """Refuse a permission mode that the program would refuse."""
        check_permissions(brief)

    async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
        """Run it until it has answered the prompt and all messages that reached it. Called again, it resumes."""
        session = self._session or brief.session
        argv = [*(brief.command or DEFAULT), *cli_options(brief, session=session, allowed=self._rules)]
        try:
            program = await Program.start(argv, brief, watcher)
        except OSError as error:
            return TurnResult(error=f"{argv[0]} cannot be started: {error.strerror}")
        async with program:
            run = _Run(program, watcher, self._rules)
            try:
                said = await run.work(brief.prompt)
            finally:
                await run.close()
                self._session = run.stream.session or session
            if said is not None and session and not run.stream.session and is_session_lost(said.error):
                self._session = None
                return said._replace(is_session_lost=True)
            return said if said is not None else await _stream_cut(program)


class ClaudeStream:
    """A program that prints its conversation as Claude Code does."""

    def check(self, brief: Brief) -> None:
        """Check as `Claude` if no program is given; the program is looked up when it is started."""
        if not brief.command:
            Claude().check(brief)

    async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
        """Run it until its result."""
        if not brief.command:
            return await Claude().work(brief, watcher)
        model = ("--model", brief.model) if brief.model else ()
        resumed = ("--resume", brief.session) if brief.session else ()
        is_claude_code = os.path.basename(brief.command[0]) == "claude"  # other programs may not know the options
        access = access_options(brief) if is_claude_code and brief.reads else ()
        argv = [*brief.command, *access, *STREAM, *model, *resumed]
        try:
            program = await Program.start(argv, brief, watcher)
        except OSError as error:
            return TurnResult(error=f"{argv[0]} cannot be started: {error.strerror}")
        async with program:
            program.feed(brief.prompt)
            stream = StreamParser(watcher)
            async for line in program.lines():
                stream.hear(line)
            return stream.said if stream.said is not None else await _stream_cut(program)


class _Run:
    """One run of Claude Code."""

    def __init__(self, program: Program, watcher: Recorder, rules: dict[str, None]) -> None:
        self._program = program
        self._watcher = watcher
        self._rules = rules
        self._settings = config_module.load_settings()
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._messages: asyncio.Task[None] | None = None
        self._is_closed = False
        self._last_activity = time.monotonic()
        self.stream = StreamParser(watcher)

    async def work(self, prompt: str) -> TurnResult | None:
        """Read its output to the end; return the outcome of its last turn, None if it was cut."""
        self._messages = asyncio.create_task(self._converse(prompt))
        lines = self._program.lines()
        coming: asyncio.Future[str | None] | None = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(lines, None))
                patience = self._settings.agent_silence if self.stream.is_working else _EXIT_TIMEOUT
                if self._questions:  # waiting for the user
                    self._last_activity = time.monotonic()
                await asyncio.wait({coming}, timeout=max(self._last_activity + patience - time.monotonic(), 0))
                if not coming.done():
                    if self._questions or self._last_activity + patience > time.monotonic():
                        continue
                    return self._silent(patience)
                self._last_activity = time.monotonic()
                line, coming = coming.result(), None
                if line is None:
                    return None if self.stream.is_working else self.stream.said
                self._heard(self.stream.hear(line))
        finally:
            if coming is not None:
                coming.cancel()

    async def close(self) -> None:
        """Stop asking and sending."""
        tasks = [*self._questions.values(), *([self._messages] if self._messages is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _silent(self, patience: float) -> TurnResult | None:
        if not self.stream.is_working:
            return self.stream.said  # it answered, but a child process keeps it running
        return TurnResult(error=f"it produced no output for {patience:g} s", is_retryable=True)

    def _heard(self, message: Mapping[str, object]) -> None:
        kind = message.get("type")
        if kind == "result" and not self._is_closed:
            self._is_closed = True
            assert self._messages is not None
            self._messages.cancel()  # later messages belong to the next turn
            self._messages = asyncio.create_task(self._program.say("", last=True))
        elif kind == "control_request":
            self._asked(message)
        elif kind == "control_cancel_request":
            asking = self._questions.get(str(message.get("request_id")))
            if asking is not None:
                asking.cancel()

    # -- to the program -----------------------------------------------------------------------

    async def _converse(self, prompt: str) -> None:
        """Send the prompt, then messages sent to the agent while it works."""
        await self._say(_user_message(prompt))
        async for text in self._watcher.messages():
            self._watcher.record({"type": "user", "text": text})
            await self._say(_user_message(text))

    async def _say(self, message: Mapping[str, object]) -> None:
        await self._program.say(json.dumps(message, separators=(",", ":")) + "\n")

    async def _respond(self, request_id: str, response: Mapping[str, object]) -> None:
        answer = {"subtype": "success", "request_id": request_id, "response": response}
        await self._say({"type": "control_response", "response": answer})

    # -- permission ---------------------------------------------------------------------------

    def _asked(self, message: Mapping[str, object]) -> None:
        request = PermissionRequest.read(message)
        if request.id in self._questions:
            return  # repeated
        act = self._answer(request) if _wants_permission(message) else self._decline(request)
        if len(self._questions) >= _MOST_WAITING:
            act.close()
            act = self._respond(request.id, PermissionDecision(False, reason=_TOO_MANY).response(request))
        before = list(self._questions.values())  # one at a time: an answer does not name its question
        asking = asyncio.create_task(_run_after(before, act))
        self._questions[request.id] = asking
        asking.add_done_callback(lambda _: self._settled(request.id))

    def _settled(self, request_id: str) -> None:
        self._questions.pop(request_id, None)
        self._last_activity = time.monotonic()  # restart the silence timeout

    async def _decline(self, request: PermissionRequest) -> None:
        answer = {"subtype": "error", "request_id": request.id, "error": "not supported"}
        await self._say({"type": "control_response", "response": answer})

    async def _answer(self, request: PermissionRequest) -> None:
        try:
            async with asyncio.timeout(self._settings.ask_timeout or None):
                response = await self._decided(request)
        except TimeoutError:
            reason = f"Nobody answered within {self._settings.ask_timeout:g} s, so this is denied. {_CONTINUE_HINT}"
            response = PermissionDecision(False, reason=reason).response(request)
        await self._respond(request.id, response)

    async def _decided(self, request: PermissionRequest) -> Mapping[str, object]:
        if request.tool == QUESTION_TOOL and (asked := model_questions(request)):
            answers: dict[str, str] = {}
            for name, text in asked:
                said = await self._ask(text)
                if said is None:
                    return PermissionDecision(False, reason=_NO_ANSWER).response(request)
                answers[name] = said
            return format_answers(request, answers)
        asked_again = question = permission_question(request)
        for _ in range(_MOST_ATTEMPTS):
            said = await self._ask(asked_again)
            if said is None:
                return PermissionDecision(False, reason=_NO_ANSWER).response(request)
            decision = parse_decision(said, request)
            if decision is not None:
                if decision.always:
                    self._remember(request)
                return decision.response(request)
            asked_again = f"{question}\n{ANSWER_HINT}"
        return PermissionDecision(False, reason=_NO_ANSWER).response(request)

    async def _ask(self, question: str) -> str | None:
        self._watcher.record({"type": "question", "text": question})
        answer = await self._watcher.ask(question)
        self._watcher.record({"type": "answer", "text": answer})
        return answer

    def _remember(self, request: PermissionRequest) -> None:
        for update in permission_updates(request):
            for rule in rules_in(update) if update.get("type") == "addRules" else ():
                # A comma or a parenthesis inside could be read as the start of another rule.
                if len(self._rules) < _MOST_RULES and not any(mark in rule[:-1] for mark in ("),", ") ", ",")):
                    self._rules[rule] = None


_CONTINUE_HINT = "Do what can be done without it, and say what could not."
_NO_ANSWER = f"Nobody can answer, so this is denied. {_CONTINUE_HINT}"
_TOO_MANY = "Too many requests wait for an answer. Ask again later."


async def _run_after(before: list[asyncio.Task[None]], act: Coroutine[object, object, None]) -> None:
    """Run `act` once all tasks in `before` are done."""
    try:
        if before:
            await asyncio.wait(before)
    except asyncio.CancelledError:
        act.close()
        raise
    await act


def _wants_permission(message: Mapping[str, object]) -> bool:
    return (as_object(message.get("request")) or {}).get("subtype") == "can_use_tool"


def _user_message(text: str) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}


async def _stream_cut(program: Program) -> TurnResult:
    try:
        code = str(await asyncio.wait_for(program.ended(), _EXIT_TIMEOUT))
    except TimeoutError:
        code = "none yet"
    words = f": {program.stderr_tail}" if program.stderr_tail else ""
    return TurnResult(error=f"its stream broke off without a result (exit code {code}){words}", is_retryable=True)
