"""Interface of every engine: `Brief` in, `Recorder` calls during the turn, `TurnResult` out.

Also the pure helpers that all engines share: progress counts, the answer buffer, transcript lines.
"""

from __future__ import annotations

import re
import time

from taskyard.core.values import NamedTuple, as_list, as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Protocol


if TYPE_CHECKING:

    class Recorder(Protocol):
        """Receives an engine's transcript, usage and questions."""

        def record(self, line: Mapping[str, object]) -> None:
            """Write a transcript line: text or an action, as data."""
            ...

        def used_tool(self, name: str, given: Mapping[str, object]) -> None:
            """Count a tool use."""
            ...

        def used_tokens(self, usage: Mapping[str, object]) -> None:
            """Count the tokens of one model answer: input_tokens, output_tokens, cache_….

            What is not a number counts 0. A program that reports only the sum of several requests passes it
            as spent_tokens.
            """
            ...

        def costs(self, usd: float) -> None:
            """Set the total cost so far."""
            ...

        def limited(self, seconds: float, why: str) -> None:
            """Report that the provider is overloaded: the next attempt is in `seconds`."""
            ...

        async def ask(self, question: str) -> str | None:
            """Ask the user; None if no answer is possible any more."""
            ...

        def messages(self) -> AsyncIterator[str]:
            """Yield messages sent to the agent while it works."""
            ...

    class Engine(Protocol):
        """Something that works on a prompt."""

        def check(self, brief: Brief) -> None:
            """Refuse a brief that it could not work on.

            Raises:
                UsageError: names what is missing.
            """
            ...

        async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
            """Work on a brief to the end. Stopping arrives as cancellation."""
            ...


#: What an agent may do without asking, from least to most:
#:
#:   ask    read files; every edit and every command needs permission
#:   edit   edit files in its folder too; every command needs permission
#:   work   edit files in its folder and run commands; what goes beyond needs permission
#:   all    everything, outside its folder too, and without the agent program's sandbox
#:
#: Where the engine cannot ask the user, what needs permission is refused and named in `TurnResult.refused`.
PERMISSIONS = ("ask", "edit", "work", "all")


class Brief(NamedTuple):
    """The prompt and options of one turn."""

    prompt: str
    cwd: str
    env: Mapping[str, str]
    model: str | None = None
    command: tuple[str, ...] = ()  #: for engines that are programs
    session: str | None = None  #: conversation to continue, by the id its engine gave it
    own_tools: bool = True  #: offer Taskyard's own tools to the agent, where the engine can
    permissions: str = ""  #: one of PERMISSIONS; "" = the engine's default, `work` where it cannot ask the user
    reads: tuple[str, ...] = ()  #: other folders that it may read in every mode
    guard: tuple[str, ...] = ()  #: prefix of the program's command line: a process that kills all its descendants


class RateLimit(NamedTuple):
    """A request refused by the provider: quota, rate limit or overload. Not a failure of the work."""

    provider: str  #: common name: anthropic, openai, google; or the program's name
    reason: str  #: message of the provider or program, one line
    until_ms: int | None = None  #: when it lifts (epoch ms), if the provider stated it; else the caller backs off

    @property
    def failure(self) -> str:
        """The error of a turn that is not retried after this limit."""
        words = f"rate-limited by {self.provider or 'its provider'}"
        return self.reason if self.reason.startswith(words) else f"{words}: {self.reason}"


class TurnResult(NamedTuple):
    """The outcome of one turn: its final answer, or why there is none.

    A turn counts as completed only if `is_complete`: the agent ended it normally, nothing it needed was
    refused, and it reports no failure.
    """

    text: str = ""
    error: str = ""
    is_retryable: bool = False  #: a retry may succeed: a cut stream, a server error
    rate_limit: RateLimit | None = None  #: resume the same conversation once it lifts; costs no attempt
    refused: tuple[str, ...] = ()  #: names of tools refused for lack of permission
    is_session_lost: bool = False  #: the program does not know the conversation to continue

    @property
    def is_complete(self) -> bool:
        """Whether this turn did what it was asked for, as reported by the engine."""
        return not self.error and self.rate_limit is None and not self.refused

    @property
    def failure(self) -> str:
        """Why this turn does not count as completed, in one sentence; empty if it does."""
        if self.error:
            return self.error
        if self.rate_limit is not None:
            return self.rate_limit.failure
        return f"refused for want of permission: {', '.join(self.refused)}" if self.refused else ""


#: Number of activities kept.
RECENT = 5

#: Maximum characters of each tool input value: enough to identify it.
_LONGEST_VALUE = 500


class Progress(NamedTuple):
    """Counts of what an agent did so far."""

    tools: int = 0
    latest_input: int = 0  #: tokens of the last request, including cache reads and writes
    output: int = 0  #: tokens of all answers
    recent: tuple[Mapping[str, object], ...] = ()
    before: int = 0  #: tokens of earlier conversations

    @property
    def tokens(self) -> int:
        """Token count: the latest input, all output, and earlier conversations."""
        return self.before + self.latest_input + self.output

    def next_conversation(self) -> Progress:
        """Return the counts at the start of the next conversation."""
        return self._replace(before=self.tokens, latest_input=0, output=0)

    def used_tool(self, name: str, given: Mapping[str, object]) -> Progress:
        """Return the counts after one more tool use."""
        activity = {"toolName": name, "input": {key: _shorten(value) for key, value in given.items()}}
        return self._replace(tools=self.tools + 1, recent=(*self.recent, activity)[-RECENT:])

    def used_tokens(self, usage: Mapping[str, object]) -> Progress:
        """Return the counts after one more model answer."""
        parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        latest = sum(_count(usage.get(part)) for part in parts)
        output = self.output + _count(usage.get("output_tokens"))
        before = self.before + _count(usage.get("spent_tokens"))
        return self._replace(latest_input=latest or self.latest_input, output=output, before=before)

    def usage(self, seconds: float) -> dict[str, int]:
        """Return usage in the form of notices and events, after `seconds`."""
        return {"total_tokens": self.tokens, "tool_uses": self.tools, "duration_ms": round(seconds * 1000)}

    def to_json(self) -> dict[str, object]:
        """Return progress in the form of records."""
        return {
            "toolUseCount": self.tools,
            "tokenCount": self.tokens,
            "lastActivity": self.recent[-1] if self.recent else None,
            "recentActivities": list(self.recent),
        }


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _shorten(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
    return value if value is None or isinstance(value, (int, float, bool)) else _shorten(str(value))


#: Maximum characters of one transcript line: longer text continues on the next.
_LONGEST_LINE = 8_000

#: Seconds after which the end of a line causes a flush, so that followers see text soon.
_FLUSH_AFTER = 1.0

#: Characters of an answer that are kept: more than any reader gets.
LONGEST_ANSWER = 200_000


class AnswerBuffer:
    """Collects the text that an agent streams in one turn and writes it as transcript lines."""

    def __init__(self, watcher: Recorder) -> None:
        self._watcher = watcher
        self._kind = ""
        self._held = ""
        self._since = 0.0
        self._answer = ""
        self._before = ""

    def says(self, text: str, *, kind: str = "assistant") -> None:
        """Add a piece of text; `kind` is the type of the transcript line."""
        if not text:
            return
        if kind != self._kind:
            self.pause()
            self._kind, self._since = kind, time.monotonic()
        self._held += text
        if kind == "assistant":
            self._answer = (self._answer + text)[-LONGEST_ANSWER:]
        if len(self._held) >= _LONGEST_LINE or ("\n" in text and time.monotonic() - self._since > _FLUSH_AFTER):
            self.pause()

    def pause(self) -> None:
        """Flush the collected text to the transcript before another kind of line."""
        held, kind = self._held, self._kind
        self._held = self._kind = ""
        for at in range(0, len(held), _LONGEST_LINE):
            self._watcher.record({"type": kind, "text": held[at : at + _LONGEST_LINE]})

    def acts(self) -> None:
        """Note an action: text before it was not the final answer."""
        self.pause()
        if self._answer.strip():
            self._before = self._answer
        self._answer = ""

    @property
    def answer(self) -> str:
        """The text since the last action; if there is none, the text before it."""
        return (self._answer.strip() or self._before.strip())[-LONGEST_ANSWER:]


def assistant_text(line: Mapping[str, object]) -> str:
    """Return the assistant text in a transcript line; empty if it has none."""
    if line.get("type") != "assistant":
        return ""
    if isinstance(text := line.get("text"), str):
        return text
    content = as_list((as_object(line.get("message")) or {}).get("content")) or []
    blocks = [(as_object(raw) or {}).get("text") for raw in content]
    return "\n".join(each for each in blocks if isinstance(each, str))


def session_in(line: Mapping[str, object]) -> str | None:
    """Return the conversation id in an engine's init line, if any."""
    named = line.get("session_id")
    is_beginning = line.get("type") == "system" and line.get("subtype") == "init"
    return named if is_beginning and isinstance(named, str) and is_session_id(named) else None


def is_session_id(text: str) -> bool:
    """Return whether a text is a valid conversation id: nothing that a program takes for an option or a path."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", text, re.ASCII) is not None
