"""One run of an agent program over the Agent Client Protocol (ACP), JSON-RPC on stdin and stdout.

A run is: initialize, open or resume a session, one turn for the prompt and one for messages sent meanwhile,
shutdown. Every wait has a timeout: `agent_start` for the answers to initialize and session requests,
`agent_silence` without output during a turn. A program that dies, falls silent or sends invalid messages has
failed; it never counts as an answer. Messages are bounded, and stray output is tolerated.

Gemini CLI names a session file by the minute of its start and its id. `session/load` starts a new recording
of the same id before it reads the old one: in the same minute both have one name, and the new recording
empties the old (seen with version 0.61.0). In a later minute the names differ, and the session is found.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import json
import os
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import anyio
from acp import PROTOCOL_VERSION, text_block
from acp.client.connection import ClientSideConnection
from acp.exceptions import RequestError
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    EnvVariable,
    Implementation,
    InitializeResponse,
    McpServerStdio,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from pydantic import BaseModel

from taskyard import __version__, config
from taskyard.agents.engines import process
from taskyard.agents.engines import provider as engines_provider
from taskyard.agents.engines.engine import AnswerBuffer, Brief, RateLimit, TurnResult
from taskyard.agents.engines.opencode import MOST_ERRORS, permission_settings, stream_error
from taskyard.agents.engines.process import TRANSIENT_ERROR, Program
from taskyard.agents.engines.provider import LONGEST_REASON, is_overload, parse_rate_limit, parse_reset_time
from taskyard.core.subprocesses import LONGEST_LINE
from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple as RecordsNamedTuple
from taskyard.core.values import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.agents.engines.engine import Recorder


#: Invalid lines tolerated before the program counts as not speaking ACP: a greeting or a warning is normal.
_MOST_INVALID_LINES = 200

#: Maximum messages that wait for the program to read them: it may ask without end and never read the
#: answers.
_MOST_UNREAD = 1_000

#: Characters of an invalid line that are recorded.
_LONGEST_INVALID_LINE = 2_000

#: JSON-RPC code for an error without a better one.
_INTERNAL_ERROR = -32603


class AcpTransport:
    """A transport for the ACP library (`acp.connection.Transport`)."""

    def __init__(self, program: Program, watcher: Recorder) -> None:
        self._program = program
        self._lines = program.lines()
        self._watcher = watcher
        self._invalid_lines = 0
        self._unread = 0
        self.last_output_at = time.monotonic()
        self.fault = ""  #: why reading stopped, if the program caused it

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. The reader notices if the program has exited."""
        if self._unread >= _MOST_UNREAD:
            self.fault = "it asks for more and more, and does not read the answers"
            return
        self._unread += 1
        try:
            await self._program.say(json.dumps(message, separators=(",", ":")) + "\n")
        finally:
            self._unread -= 1

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end."""
        while not self.fault and (line := await anext(self._lines, None)) is not None:
            if (message := _parse_message(line)) is not None:
                self.last_output_at = time.monotonic()
                return message
            if line.strip():
                self._watcher.record({"type": "stdout", "text": line[:_LONGEST_INVALID_LINE]})
                self._invalid_lines += 1
                self.fault = self._why(line)
        return None

    async def close(self) -> None:
        """Do nothing: the program is terminated by the code that started it."""

    def _why(self, line: str) -> str:
        if len(line.encode("utf-8", "replace")) >= LONGEST_LINE:
            return f"it sent a message of more than {LONGEST_LINE:,} bytes"
        if self._invalid_lines > _MOST_INVALID_LINES:
            return f"it does not speak the Agent Client Protocol: {line[:100]!r}"
        return ""


def _parse_message(line: str) -> dict[str, Any] | None:
    """Return the message in a line, if it is well-formed: the library trusts it from here on."""
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
    if found is None or not isinstance(found.get("method", ""), str):
        return None
    if not isinstance(found.get("id"), (int, str, type(None))) or isinstance(found.get("id"), bool):
        return None
    if "error" in found:
        found["error"] = _normalise_error(found["error"])
    return found


def _normalise_error(value: object) -> dict[str, object]:
    """Return an error object of valid shape."""
    given = as_object(value) or {}
    code, message = given.get("code"), given.get("message")
    if isinstance(code, int) and isinstance(message, str):
        return given
    return {"code": _INTERNAL_ERROR, "message": str(value)[:_LONGEST_INVALID_LINE]}


#: Maximum models listed when the requested one is not offered.
_MOST_MODELS = 10


class ModelChoice(NamedTuple):
    """The session setting for a model, or why there is none."""

    config_id: str = ""
    value: str = ""
    error: str = ""


def choose_model(model: str, settings: Sequence[Any]) -> ModelChoice:
    """Find the session setting by which the agent uses `model`."""
    wanted = model.casefold()
    offered: list[str] = []
    for setting in settings:
        if getattr(setting, "category", None) != "model" or getattr(setting, "type", None) != "select":
            continue
        for option in _flatten_options(setting.options):
            if wanted in (option.value.casefold(), option.name.casefold()):
                return ModelChoice(setting.id, option.value)
            offered.append(option.value)
    known = f"it offers {', '.join(offered[:_MOST_MODELS])}" if offered else "it offers no choice of models"
    return ModelChoice(error=f"it has no model {model!r}: {known}")


def _flatten_options(found: Sequence[Any]) -> Iterator[Any]:
    """Yield options, single or grouped."""
    for one in found:
        yield from one.options if hasattr(one, "group") else (one,)


#: Maximum characters of the request, of one option name, and of all names. A name states what "always"
#: grants: it is shown whole, or the option is not offered.
_LONGEST_REQUEST, _LONGEST_OPTION, _LONGEST_NAMES = 1_000, 600, 950

#: Maximum options shown; an agent has four or five.
_MOST_OPTIONS = 12

_YES, _NO = ("y", "yes", "allow", "ok"), ("n", "no", "deny", "reject")


class Option(RecordsNamedTuple):
    """One of the answers an agent accepts."""

    id: str
    name: str
    kind: str  #: "allow_once", "allow_always", "reject_once" or "reject_always"


def format_question(what: str, options: Sequence[Option]) -> str:
    """Return the permission question for the user.

    >>> print(format_question("Run make", [Option("a", "Allow", "allow_once"), Option("r", "Reject", "reject_once")]))
    Run make
    1. Allow
    2. Reject
    """
    named = [f"{number}. {escape_control(option.name)}" for number, option in enumerate(offered_options(options), 1)]
    return "\n".join([cut(escape_control(what, lines=True), _LONGEST_REQUEST) or "It asks for permission.", *named])


def offered_options(options: Sequence[Option]) -> list[Option]:
    """Return the options offered to the user: those whose names can be shown whole."""
    found: list[Option] = []
    room = _LONGEST_NAMES
    for option in sorted(options[:_MOST_OPTIONS], key=lambda option: len(option.name)):
        room -= len(escape_control(option.name)) + 5
        if len(escape_control(option.name)) <= _LONGEST_OPTION and room >= 0:
            found.append(option)
    return [option for option in options if option in found]


def cut(text: str, longest: int) -> str:
    """Clip a text and state how much is left out.

    >>> cut("x" * 10, 4)
    'xxxx… (6 more characters)'
    """
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest:,} more characters)"


#: Kinds of tool calls that each mode allows without asking; `all` allows every kind.
_ALLOWED_KINDS = {
    "edit": frozenset({"read", "search", "think", "edit"}),
    "work": frozenset({"read", "search", "think", "edit", "delete", "move", "execute"}),
}


#: Kinds of tool calls that only read; opencode reports access to a folder as `other`.
_READ_KINDS = ("read", "search", "other")


def is_permitted(mode: str, kind: str, paths: Sequence[str], folder: str, *, reads: Sequence[str] = ()) -> bool:
    """Return whether a mode allows a tool call on these paths without asking.

    Edits outside `folder` always ask. `reads`: other folders that may be read in every mode.
    """
    if mode == "all":
        return True
    if kind in _READ_KINDS and paths and all(any(_is_below(path, each) for each in reads) for path in paths):
        return True
    if kind not in _ALLOWED_KINDS.get(mode, frozenset()):
        return False
    return kind in ("read", "search", "think", "execute") or all(_is_below(path, folder) for path in paths)


def _is_below(path: str, folder: str) -> bool:
    import os

    folder = os.path.realpath(folder)
    return os.path.commonpath([os.path.realpath(os.path.join(folder, path)), folder]) == folder


def allow_once_option(options: Sequence[Option]) -> Option | None:
    """Return the option that allows this call only."""
    return next((option for option in options if option.kind == "allow_once"), None)


def parse_answer(answer: str, options: Sequence[Option]) -> Option | None:
    """Return the option that an answer means, by number, id, name, or yes and no; None if it is none of them.

    >>> parse_answer("y", [Option("x", "Always", "allow_always"), Option("o", "Once", "allow_once")]).name
    'Once'
    """
    said = answer.strip().casefold()
    numbered = {str(number): option for number, option in enumerate(offered_options(options), 1)}
    if said in numbered:
        return numbered[said]
    for option in options:
        if said in (option.id.casefold(), option.name.strip().casefold()):
            return option
    lead = "allow" if said in _YES else "reject" if said in _NO else ""
    alike = [option for option in options if lead and option.kind.startswith(lead)]
    return min(alike, key=lambda option: not option.kind.endswith("_once"), default=None)


#: Seconds to wait for the title and input of a tool call before it is recorded without them.
_TOOL_INPUT_DELAY = 1.0

#: Maximum characters of a tool result in the transcript.
_LONGEST_RESULT = 20_000

#: Maximum characters of a tool name: agents put a sentence there.
_LONGEST_TOOL_NAME = 200

#: Tool calls remembered by id; beyond that, some may be counted twice.
_MOST_CALLS = 10_000

#: Maximum questions waiting for an answer; further ones are denied.
_MOST_WAITING = 50

#: Makes Codex' adapter report a failed turn as such: by default it ends as if it had succeeded, with the
#: error as its last text.
FAILURE_CAPABILITY = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}}

#: Prefix of the model's review of a request by Codex' adapter, in its default mode: a failed review is a
#: refusal.
_REVIEW = "guardian_assessment:"

#: How often a question is asked if the answer is none of the options.
_MOST_ATTEMPTS = 3


class SessionState:
    """State that outlives one run of an agent that continues later."""

    def __init__(self, session: str | None = None) -> None:
        self.session = session  #: session to continue
        self.is_ours = False  #: we started it: only our own messages are lost with it
        self.cost = 0.0  #: its last known cost, in USD


class AcpClient:
    """The client side of the ACP library (`acp.interfaces.Client`)."""

    def __init__(
        self,
        watcher: Recorder,
        memory: SessionState,
        *,
        folder: str = "/",
        permissions: str = "",
        reads: Sequence[str] = (),
    ) -> None:
        self._folder, self._permissions, self._reads = folder, permissions, reads
        self._watcher = watcher
        self._memory = memory
        self._turn = anyio.Lock()  # one question at a time: an answer does not name its question
        self._calls: dict[str, dict[str, Any]] = {}  # what is known of each tool call
        self._told: set[str] = set()
        self._cost_before = 0.0
        self.answer_buffer = AnswerBuffer(watcher)
        self.asking = 0  #: questions waiting for an answer
        self.is_replaying = False  #: the agent only repeats earlier messages
        self.used: int | None = None  #: tokens of the conversation, if reported
        self.refused: list[str] = []  #: tools that were refused in this turn
        self.failure: tuple[str, str] | None = None  #: category and text of a failure reported by the agent

    def goes_on(self) -> None:
        """Continue the earlier session: subtract the cost it had already."""
        self._cost_before = self._memory.cost

    def begin(self) -> None:
        """Start a turn."""
        self.answer_buffer = AnswerBuffer(self._watcher)
        self.refused, self.failure = [], None

    def end(self) -> None:
        """End the turn: record tool calls with what is known of them."""
        for call in self._calls:
            self._tell(call)
        self.answer_buffer.pause()

    async def session_update(self, session_id: str, update: BaseModel, **_: Any) -> None:
        """Handle one update."""
        if self.is_replaying:
            return
        raw: Mapping[str, Any] = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        act = _UPDATE_HANDLERS.get(as_text(raw.get("sessionUpdate")))
        if act is not None:
            act(self, raw)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Ask the user for permission; without an answer, nothing is allowed."""
        if self.asking >= _MOST_WAITING:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        known = [Option(one.option_id, one.name, one.kind) for one in options]
        raw: dict[str, Any] = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        call = as_text(raw.get("toolCallId"))
        self._merge_call(call, raw)
        seen = self._calls.get(call, raw)
        name = _tool_name(seen)
        self._tell(call)
        paths = [as_text((as_object(one) or {}).get("path")) for one in as_list(seen.get("locations")) or []]
        if is_permitted(self._permissions, as_text(seen.get("kind")), paths, self._folder, reads=self._reads):
            once = allow_once_option(known)
            if once is not None:
                return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=once.id))
        self.answer_buffer.pause()
        self.asking += 1
        try:
            async with self._turn:
                chosen = await self._decided(format_question(_describe_request(seen), known), known)
        finally:
            self.asking -= 1
        if chosen is None or chosen.kind.startswith("reject"):
            self.refused.append(name)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.id))

    async def _decided(self, question: str, options: list[Option]) -> Option | None:
        asked = question
        for _ in range(_MOST_ATTEMPTS):
            self._watcher.record({"type": "question", "text": asked})
            answer = await self._watcher.ask(asked)
            self._watcher.record({"type": "answer", "text": answer})
            if answer is None:
                return None
            if (chosen := parse_answer(answer, options)) is not None:
                return chosen
            asked = f"{question}\nAnswer with one of these, by its number or name, or y or n."
        return None

    # -- updates ------------------------------------------------------------------------------

    def _said(self, raw: Mapping[str, Any]) -> None:
        self.answer_buffer.says(_content_text(raw.get("content")))

    def _thought(self, raw: Mapping[str, Any]) -> None:
        self.answer_buffer.says(_content_text(raw.get("content")), kind="thought")

    def _tool(self, raw: Mapping[str, Any]) -> None:
        """Handle the start or progress of a tool call; it is recorded once, when its input is known."""
        call = as_text(raw.get("toolCallId"))
        self._merge_call(call, raw)
        is_over = raw.get("status") in ("completed", "failed")
        if is_over or _has_input(self._calls.get(call, {})):
            self._tell(call)
        elif call not in self._told:
            asyncio.get_running_loop().call_later(_TOOL_INPUT_DELAY, self._tell, call)
        if raw.get("status") == "failed" and call.startswith(_REVIEW):
            self.refused.append(_reviewed_tool(self._calls.get(call, {})))
        if is_over:
            text = "\n".join(_content_text(part) for part in as_list(raw.get("content")) or [])[:_LONGEST_RESULT]
            self._watcher.record({"type": "tool_result", "id": call, "status": raw["status"], "text": text})

    def _merge_call(self, call: str, raw: Mapping[str, Any]) -> None:
        """Merge the parts of a tool call, which arrive in pieces, until it is recorded."""
        if len(self._calls) >= _MOST_CALLS:
            self._told.clear()
            self._calls.clear()
        self._calls[call] = {**self._calls.get(call, {}), **{key: value for key, value in raw.items() if value}}

    def _tell(self, call: str) -> None:
        if call in self._told or call not in self._calls:
            return
        known = self._calls[call]
        self._told.add(call)
        self.answer_buffer.acts()
        name, given = _tool_name(known), as_object(known.get("rawInput")) or _path_input(known)
        self._watcher.record({"type": "tool_use", "id": call, "name": name, "input": given})
        self._watcher.used_tool(name, given)

    def _plan(self, raw: Mapping[str, Any]) -> None:
        self.answer_buffer.pause()
        self._watcher.record({"type": "plan", "entries": raw.get("entries")})

    def _usage(self, raw: Mapping[str, Any]) -> None:
        """Record tokens and cost of the conversation so far."""
        used = raw.get("used")
        self.used = used if type(used) is int else self.used
        self._watcher.used_tokens({"input_tokens": used})
        cost = as_object(raw.get("cost")) or {}
        amount = cost.get("amount")
        if as_text(cost.get("currency")).upper() == "USD" and isinstance(amount, (int, float)):
            self._memory.cost = float(amount)
            self._watcher.costs(max(self._memory.cost - self._cost_before, 0.0))

    def reports(self, raw: Mapping[str, Any]) -> None:
        """Take a failure that the agent reports by its own extension (`FAILURE_CAPABILITY`)."""
        found = as_object(raw.get("_meta")) or {}
        for key in ("jetbrains", "air", "sessionFailure"):
            found = as_object(found.get(key)) or {}
        if not found:
            return
        words = as_text(found.get("title"))
        self._watcher.record({"type": "note", "text": words})
        self.failure = (as_text(found.get("category")), words) if found.get("severity") == "error" else None


_UPDATE_HANDLERS = {
    "agent_message_chunk": AcpClient._said,  # pyright: ignore[reportPrivateUsage]
    "agent_thought_chunk": AcpClient._thought,  # pyright: ignore[reportPrivateUsage]
    "tool_call": AcpClient._tool,  # pyright: ignore[reportPrivateUsage]
    "tool_call_update": AcpClient._tool,  # pyright: ignore[reportPrivateUsage]
    "plan": AcpClient._plan,  # pyright: ignore[reportPrivateUsage]
    "session_info_update": AcpClient.reports,
    "usage_update": AcpClient._usage,  # pyright: ignore[reportPrivateUsage]
}


def _content_text(value: object) -> str:
    """Return the text of a piece of content; for other content, its type."""
    content = as_object(value) or {}
    inner = as_object(content.get("content"))  # a tool's content has one more layer
    if inner is not None:
        return _content_text(inner)
    if (text := as_text(content.get("text"))) or content.get("type") in ("text", None):
        return text
    if content.get("type") == "diff":
        return f"[changed {as_text(content.get('path'))}]"
    return f"[{as_text(content.get('type'))}]"


def _has_input(known: Mapping[str, Any]) -> bool:
    """Return whether a tool's input is known; its cwd arrives before that."""
    return bool(set(as_object(known.get("rawInput")) or {}) - {"cwd"})


def _path_input(raw: Mapping[str, Any]) -> dict[str, object]:
    """Return the path a tool call is about, where the agent does not report its input."""
    paths = [as_text((as_object(one) or {}).get("path")) for one in as_list(raw.get("locations")) or []]
    return {"path": paths[0]} if paths else {}


def _reviewed_tool(raw: Mapping[str, Any]) -> str:
    """Return the tool that a review is about."""
    action = as_object((as_object(raw.get("rawInput")) or {}).get("action")) or {}
    return (as_text(action.get("command")) or as_text(action.get("type")) or "tool")[:_LONGEST_TOOL_NAME]


def _tool_name(raw: Mapping[str, Any]) -> str:
    """Return a tool's own name if reported, else its title, which may be a sentence."""
    own = as_object((as_object(raw.get("_meta")) or {}).get("claudeCode")) or {}
    return (as_text(own.get("toolName")) or as_text(raw.get("title")) or as_text(raw.get("kind")) or "tool")[
        :_LONGEST_TOOL_NAME
    ]


def _describe_request(raw: Mapping[str, Any]) -> str:
    """Describe the tool call that needs permission."""
    given = as_object(raw.get("rawInput")) or {}
    shown = "\n".join(f"  {key}: {cut(str(value), 700)}" for key, value in list(given.items())[:8])
    return f"{as_text(raw.get('title')) or as_text(raw.get('kind')) or 'It wants to use a tool'}\n{shown}".strip()


#: Characters of a session id in its file name.
_SHORT_ID = 8

_MINUTE = 60.0

#: Seconds into the next minute: two processes read the clock one after the other.
_MARGIN = 0.1


def is_gemini_session(session: str, env: Mapping[str, str]) -> bool:
    """Return whether Gemini CLI stores a session of that id."""
    return bool(_session_files(session, env))


def seconds_until_loadable(session: str, env: Mapping[str, str], *, now: float) -> float:
    """Return seconds until the session can be loaded; 0 if it can be now, or is not Gemini CLI's."""
    import time

    first = min(_session_files(session, env), default="")
    this_minute = time.strftime("session-%Y-%m-%dT%H-%M-", time.gmtime(now))
    return _MINUTE - now % _MINUTE + _MARGIN if first.startswith(this_minute) else 0.0


def _session_files(session: str, env: Mapping[str, str]) -> list[str]:
    """Return the file names of a session, which begin with the time."""
    home = env.get("GEMINI_CLI_HOME") or env.get("HOME", "")
    chats = os.path.join(glob.escape(home), ".gemini", "tmp", "*", "chats")
    pattern = f"session-*-{glob.escape(session[:_SHORT_ID])}.jsonl"
    return [os.path.basename(path) for path in glob.glob(os.path.join(chats, pattern))] if session else []


T = TypeVar("T")

#: Seconds for an agent to confirm cancellation; it is terminated right after, and both must fit a job's
#: grace period.
_CANCEL_TIMEOUT = 1.5

#: Seconds in which a program that closed its output is expected to exit.
_EXIT_TIMEOUT = 2.0

#: ACP error code: the user must log in first.
_AUTH_REQUIRED = -32000

#: Seconds of silence that end the replay of a session, whose messages come without a pause; and limit in
#: all.
_HISTORY_PAUSE, _LONGEST_HISTORY = 0.5, 10.0

#: Maximum characters of an error that are repeated.
_LONGEST_ERROR = 1_000


class RunFailed(Exception):
    """The run failed; the message states why."""

    def __init__(self, why: str, *, is_retryable: bool = False, rate_limit: RateLimit | None = None) -> None:
        super().__init__(why)
        self.said = TurnResult(error=why, is_retryable=is_retryable, rate_limit=rate_limit)


async def run(brief: Brief, watcher: Recorder, memory: SessionState) -> TurnResult:
    """Run the agent and return the result. Continues the session in `memory`, where the agent can."""
    process.quiet_libraries()
    brief = engines_provider.restrict_tools(brief)
    if os.path.basename(brief.command[0]) == "opencode":  # it asks nothing unless its rules demand it
        brief = brief._replace(env={**brief.env, **permission_settings(brief)})
    brief = brief._replace(env={**_codex_mode(brief), **brief.env})
    try:
        program = await Program.start(brief.command, brief, watcher)
    except OSError as error:
        return TurnResult(error=f"{brief.command[0]} cannot be started: {error.strerror}")
    async with program:
        one = _Run(brief, watcher, program, memory)
        try:
            said = await one.work()
            await program.hang_up()  # most agents exit cleanly by themselves when stdin closes
            return said
        except RunFailed as failure:
            return failure.said
        finally:
            await one.close()


def _codex_mode(brief: Brief) -> dict[str, str]:
    """Return the variable that makes Codex' adapter ask the user; by default a model reviews requests."""
    if os.path.basename(brief.command[0]) != "codex-acp" or brief.permissions not in _CODEX_MODES:
        return {}
    return {"INITIAL_AGENT_MODE": _CODEX_MODES[brief.permissions]}


class _Run:
    """One program, from initialize to exit."""

    def __init__(self, brief: Brief, watcher: Recorder, program: Program, memory: SessionState) -> None:
        self._brief = brief
        self._watcher = watcher
        self._program = program
        self._wire = AcpTransport(program, watcher)
        self._memory = memory
        self._updates = AcpClient(watcher, memory, folder=brief.cwd, permissions=brief.permissions, reads=brief.reads)
        self._errors = 0
        self._failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        program.on_stderr = self._log
        self._agent = ClientSideConnection(self._updates, self._wire)  # type: ignore[arg-type]  # what we offer of it
        self._sent: list[str] = []
        self._reading = asyncio.create_task(self._read_messages())
        self._session = ""

    async def work(self) -> TurnResult:
        """Open a session and send one prompt after the other."""
        await self._open()
        prompt = self._brief.prompt
        while True:
            said = await self._turn(prompt)
            if said.error or not self._sent:
                return said
            prompt = "\n\n".join(self._sent)
            self._sent.clear()
            self._watcher.record({"type": "user", "text": prompt})

    async def close(self) -> None:
        """Stop reading."""
        self._reading.cancel()
        self._updates.answer_buffer.pause()
        await self._agent.close()

    async def _read_messages(self) -> None:
        async for text in self._watcher.messages():
            self._sent.append(text)

    # -- session ------------------------------------------------------------------------------

    async def _open(self) -> None:
        try:
            hello: InitializeResponse = await self._soon("initialize", self._agent.initialize(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(field_meta=FAILURE_CAPABILITY),
                client_info=Implementation(name="taskyard", title="Taskyard", version=__version__),
            ))  # fmt: skip
        except RequestError as error:
            raise self._refused("`initialize`", error) from error
        if hello.protocol_version != PROTOCOL_VERSION:
            raise RunFailed(f"it uses version {hello.protocol_version} of the protocol, not {PROTOCOL_VERSION}")
        try:
            await self._enter(hello.agent_capabilities or AgentCapabilities())
        except RequestError as error:
            if error.code == _AUTH_REQUIRED:
                ways = ", ".join(one.name for one in hello.auth_methods or [])
                why = f"the user has to log in to it first{f' ({ways})' if ways else ''}: start it once by hand"
                raise RunFailed(why) from error
            raise self._refused("a session", error) from error

    async def _enter(self, can: AgentCapabilities) -> None:
        """Continue the earlier session, or start one."""
        where: dict[str, Any] = {"cwd": self._brief.cwd, "mcp_servers": self._servers()}
        abilities, before = can.session_capabilities, self._memory.session
        if before is not None and await self._resume_session(before, can, where):
            self._session = before
            self._updates.goes_on()
        else:
            made = await self._soon("session/new", self._agent.new_session(**where))
            self._session = self._memory.session = made.session_id
            self._memory.is_ours = True
            await self._choose_model(made.config_options or [])
        if can.load_session or (abilities is not None and abilities.resume is not None):
            self._watcher.record({"type": "system", "subtype": "init", "session_id": self._session})

    async def _resume_session(self, before: str, can: AgentCapabilities, where: dict[str, Any]) -> bool:
        """Resume the earlier session; False if the agent cannot, or no longer knows it."""
        abilities = can.session_capabilities
        self._updates.is_replaying = True  # replayed messages are known
        try:
            if abilities is not None and abilities.resume is not None:
                await self._soon("session/resume", self._agent.resume_session(session_id=before, **where))
            elif can.load_session:
                is_gemini = is_gemini_session(before, self._brief.env)
                if is_gemini:
                    await self._await_next_minute(before)
                await self._soon("session/load", self._agent.load_session(session_id=before, **where))
                if is_gemini:
                    await self._await_end_of_history()
            elif not self._memory.is_ours:
                raise RunFailed(f"it cannot go on with conversation {before!r}: it keeps none")
            else:
                return False
        except RequestError as error:
            if not self._memory.is_ours:
                raise  # exactly this session was requested
            self._watcher.record({"type": "note", "text": f"its session cannot go on: {str(error)[:_LONGEST_ERROR]}"})
            return False
        finally:
            self._updates.is_replaying = False
        return True

    async def _await_next_minute(self, session: str) -> None:
        """Wait until Gemini CLI can load a session without overwriting it."""
        seconds = seconds_until_loadable(session, self._brief.env, now=time.time())
        if seconds > 0:
            why = f"Gemini CLI cannot load a session in the minute in which it began: waiting {seconds:.0f} s"
            self._watcher.record({"type": "note", "text": why})
            await asyncio.sleep(seconds)

    async def _await_end_of_history(self) -> None:
        """Wait for the replay that Gemini CLI sends after its answer to `session/load`."""
        deadline = time.monotonic() + _LONGEST_HISTORY
        self._wire.last_output_at = time.monotonic()
        until = min(self._wire.last_output_at + _HISTORY_PAUSE, deadline)
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(left)
            until = min(self._wire.last_output_at + _HISTORY_PAUSE, deadline)

    async def _choose_model(self, settings: list[Any]) -> None:
        if not self._brief.model:
            return
        wanted = choose_model(self._brief.model, settings)
        if wanted.error:
            raise RunFailed(wanted.error)
        await self._soon("session/set_config_option", self._agent.set_config_option(
            config_id=wanted.config_id, session_id=self._session, value=wanted.value
        ))  # fmt: skip

    def _servers(self) -> list[Any]:
        """Return Taskyard's own MCP server, if available."""
        if not (self._brief.own_tools and engines_provider.is_available()):
            return []
        command, *args = engines_provider.server_command(self._brief)
        env = [EnvVariable(name=name, value=value) for name, value in engines_provider.server_env(self._brief).items()]
        return [McpServerStdio(name="taskyard", command=command, args=args, env=env)]

    async def _soon(self, what: str, asking: Coroutine[Any, Any, T]) -> T:
        """Await an answer that every agent gives at once, with the timeout `agent_start`."""
        patience = config.load_settings().agent_start
        try:
            return await asyncio.wait_for(asking, patience)
        except TimeoutError:
            raise RunFailed(f"it did not answer `{what}` within {patience:g} s{self._last_words()}") from None
        except ConnectionError:
            raise await self._gone(is_retryable=False) from None
        except ValueError as error:
            raise RunFailed(f"its answer to `{what}` violates the protocol: {str(error)[:_LONGEST_ERROR]}") from error

    # -- a turn -------------------------------------------------------------------------------

    async def _turn(self, prompt: str) -> TurnResult:
        self._updates.begin()
        self._wire.last_output_at = time.monotonic()
        asking = asyncio.create_task(self._agent.prompt(session_id=self._session, prompt=[text_block(prompt)]))
        try:
            await self._wait_for_turn(asking)
            return self._said(await asking)
        except ConnectionError:
            raise await self._gone(is_retryable=True) from None
        except RequestError as error:
            raise self._refused("the prompt", error) from error
        except ValueError as error:
            raise RunFailed(f"its answer violates the protocol: {str(error)[:_LONGEST_ERROR]}") from error
        except asyncio.CancelledError:
            await self._cancel(asking)
            raise
        finally:
            asking.cancel()

    async def _wait_for_turn(self, asking: asyncio.Task[PromptResponse]) -> None:
        """Wait for the end of the turn while the agent sends output or waits for an answer."""
        patience = config.load_settings().agent_silence
        while not asking.done():
            if self._updates.asking:
                self._wire.last_output_at = time.monotonic()
            left = patience - (time.monotonic() - self._wire.last_output_at)
            if left <= 0:
                raise RunFailed(f"it produced no output for {patience:g} s{self._last_words()}", is_retryable=True)
            either: set[asyncio.Future[Any]] = {asking, self._failed}
            await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done() and not asking.done():
                raise self._failure(self._failed.result(), kind="server_error")  # opencode retries no other error

    def _said(self, response: PromptResponse) -> TurnResult:
        updates = self._updates
        updates.end()
        updates.reports({"_meta": response.field_meta})
        self._count(response)
        if updates.failure is not None:
            category, words = updates.failure
            raise self._failure(words or "its turn failed", kind=category)
        return TurnResult(
            updates.answer_buffer.answer, _STOP_REASONS.get(response.stop_reason, ""), refused=tuple(updates.refused)
        )

    def _count(self, response: PromptResponse) -> None:
        """Count the tokens of a turn, in either way agents report them."""
        if (usage := response.usage) is None:
            quota = as_object((as_object(response.field_meta) or {}).get("quota")) or {}
            counted = as_object(quota.get("token_count")) or {}  # Gemini CLI: sum of all requests of the turn
            spent = sum(value for value in counted.values() if type(value) is int)
            self._watcher.used_tokens({"spent_tokens": spent})
            return
        inputs = {
            "input_tokens": usage.input_tokens,
            "cache_read_input_tokens": usage.cached_read_tokens,
            "cache_creation_input_tokens": usage.cached_write_tokens,
        }
        if self._updates.used is None:
            self._watcher.used_tokens({**inputs, "output_tokens": usage.output_tokens})
        elif self._updates.used == sum(value or 0 for value in inputs.values()):
            self._watcher.used_tokens({"output_tokens": usage.output_tokens})  # most agents include the input in `used`

    async def _cancel(self, asking: asyncio.Task[PromptResponse]) -> None:
        """Ask the agent to cancel, by the protocol. It is terminated right after, whatever it answers."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CANCEL_TIMEOUT):
                await self._agent.cancel(session_id=self._session)
                await asyncio.wait({asking})

    # -- errors -------------------------------------------------------------------------------

    async def _gone(self, *, is_retryable: bool) -> RunFailed:
        """Return why the connection is gone."""
        if self._wire.fault:
            return RunFailed(self._wire.fault)
        with contextlib.suppress(TimeoutError):
            code = await asyncio.wait_for(self._program.ended(), _EXIT_TIMEOUT)
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            return RunFailed(f"it ended in the middle ({how}){self._last_words()}", is_retryable=is_retryable)
        return RunFailed(f"it closed its output in the middle{self._last_words()}", is_retryable=is_retryable)

    def _refused(self, what: str, error: RequestError) -> RunFailed:
        detail = f"{error} {error.data}" if error.data else str(error)
        return self._failure(
            f"it refused {what}: {detail[:_LONGEST_ERROR]}{self._last_words()}",
            detail=detail,
            kind=as_text((as_object(error.data) or {}).get("errorKind")),
        )

    def _failure(self, why: str, *, detail: str = "", kind: str = "") -> RunFailed:
        """Classify an error: a rate limit, a transient error, or neither."""
        detail = detail or why
        provider = _PROVIDERS.get(self._brief.command[0].rsplit("/", 1)[-1], self._brief.command[0])
        limit = parse_rate_limit(detail, provider=provider, now=time.time())
        if limit is None and (kind in _RATE_LIMIT_KINDS or "exhausted" in detail):
            until = parse_reset_time(detail, now=time.time())
            reason = " ".join(detail.split())[:LONGEST_REASON]
            limit = RateLimit(provider, reason, None if until is None else round(until * 1000))
        passes = (
            limit is not None
            or is_overload(detail)
            or kind == "server_error"
            or TRANSIENT_ERROR.search(detail) is not None
        )
        return RunFailed(why, is_retryable=passes, rate_limit=limit)

    def _log(self, line: str) -> None:
        """Detect failed requests of opencode, which it retries forever and reports only in its log."""
        if (error := stream_error(line)) is None or self._failed.done():
            return
        self._errors += 1
        if self._errors >= MOST_ERRORS or parse_rate_limit(error, provider="", now=time.time()) is not None:
            self._failed.set_result(error)

    def _last_words(self) -> str:
        return f": {self._program.stderr_tail}" if self._program.stderr_tail else ""


#: Provider of each program's model, by its common name.
_PROVIDERS = {"claude-agent-acp": "anthropic", "codex-acp": "openai", "gemini": "google"}

#: Modes of Codex' adapter in which the user decides, by permission mode.
_CODEX_MODES = {"ask": "read-only", "edit": "workspace-write"}

#: Error kinds by which agents report a rate limit.
_RATE_LIMIT_KINDS = ("rate_limit", "rate_limited", "usage_limit", "overloaded")

#: Errors for the reasons that end a turn without an answer.
_STOP_REASONS = {
    "max_tokens": "it reached the most tokens it may use in a turn, before it was done",
    "max_turn_requests": "it reached the most requests it may make in a turn, before it was done",
    "refusal": "it refused to continue",
    "cancelled": "it was cancelled before it was done",
}
