"""Engine `command`: any program as an agent.

It gets the prompt on stdin, up to EOF; or, where one of its words is or contains `{prompt}`, in that place,
and can then be sent more on stdin. A prompt that begins with `-` could be taken for an option there: it is
refused, unless the place is right after a word `--`, or has an option before it in the same word
(`--message={prompt}`).

Its stdout is its answer. A program with more to report prints lines of JSON among the others:

    {"type": "text", "text": "…"}                                  text of the answer
    {"type": "tool", "name": "Edit", "input": {…}}                 a tool use
    {"type": "usage", "input_tokens": 900, "output_tokens": 40}    tokens of one model answer
    {"type": "cost", "usd": 0.12}                                  total cost so far
    {"type": "limited", "seconds": 20, "text": "429"}              rate limit for so long: it waits and continues,
                                                                   or exits and is restarted then
    {"type": "refused", "name": "Write"}                           it was not permitted to use a tool
    {"type": "question", "text": "Overwrite?"}                     the answer comes as a line on its stdin
    {"type": "result", "text": "…", "error": "…"}                  the final result
"""

from __future__ import annotations

import asyncio
import json
from collections import deque

from taskyard.agents.engines.engine import RateLimit, TurnResult
from taskyard.agents.engines.process import Program
from taskyard.core.system import now_ms
from taskyard.core.values import as_object, as_text
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.agents.engines.engine import Brief, Recorder

#: Placeholder for the prompt among a program's words, if not on its stdin.
PROMPT_PLACEHOLDER = "{prompt}"

#: Characters of an answer that are kept: more than any reader gets.
_LONGEST_ANSWER = 200_000

#: Refused tools that are remembered.
_MOST_REFUSED = 20


class Command:
    """A program that works on a prompt."""

    def check(self, brief: Brief) -> None:
        """Refuse a brief without a program."""
        if not brief.command:
            raise UsageError(
                "The engine `command` needs a program: `--command 'my-agent --flag'`, or the setting `agent_command`."
                " See `taskyard engines` for agents that are installed here."
            )
        if why := _option_like_prompt(brief):
            raise UsageError(why)

    async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
        """Run the program until it exits."""
        if why := _option_like_prompt(brief):
            return TurnResult(error=why)
        takes_argument = takes_prompt(brief.command)
        argv = [brief.command[0], *(word.replace(PROMPT_PLACEHOLDER, brief.prompt) for word in brief.command[1:])]
        try:
            program = await Program.start(argv, brief, watcher)
        except OSError as error:
            return TurnResult(error=f"{argv[0]} cannot be started: {error.strerror}")
        async with program:
            talk = _Conversation(program, watcher, hears=takes_argument)
            if not takes_argument:
                program.feed(brief.prompt + "\n")
            # A program that reads its prompt to EOF reads nothing more: later messages wait for its next
            # turn.
            passing = asyncio.create_task(talk.forward_messages()) if takes_argument else None
            try:
                async for line in program.lines():
                    await talk.heard(line)
                return talk.said(await program.ended())
            finally:
                if passing is not None:
                    passing.cancel()


def takes_prompt(command: Sequence[str]) -> bool:
    """Return whether a program gets the prompt as one of its words, and so can be sent more on stdin."""
    return any(PROMPT_PLACEHOLDER in word for word in command[1:])


def _option_like_prompt(brief: Brief) -> str:
    """Return why the prompt cannot be one of the program's words (it looks like an option); empty if it can."""
    if not brief.prompt.startswith("-"):
        return ""
    for before, word in zip(brief.command, brief.command[1:], strict=False):
        if word.startswith(PROMPT_PLACEHOLDER) and before != "--":
            return (
                f"The prompt begins with `-`, and {brief.command[0]} could take it for an option. Give it the prompt on"
                f" stdin (leave out {PROMPT_PLACEHOLDER}), or write `-- {PROMPT_PLACEHOLDER}`"
                f" or `--option={PROMPT_PLACEHOLDER}` if it knows these."
            )
    return ""


class _Conversation:
    """The exchange with one program."""

    def __init__(self, program: Program, watcher: Recorder, *, hears: bool) -> None:
        self._program = program
        self._hears = hears  # otherwise its stdin ends with the prompt
        self._watcher = watcher
        self._answer: deque[str] = deque()
        self._room = _LONGEST_ANSWER
        self._result: TurnResult | None = None
        self._limit: RateLimit | None = None  # last rate limit, if it did nothing since
        self._has_text_since = False  # since that limit
        self._refused: list[str] = []

    async def forward_messages(self) -> None:
        """Forward messages sent to the agent while it works; without stdin they are left for its next turn."""
        if not self._hears:
            return
        async for text in self._watcher.messages():
            self._watcher.record({"type": "user", "text": text})
            await self._program.say(text + "\n")
        await self._program.say("", last=True)  # no more messages will come

    async def heard(self, line: str) -> None:
        """Handle one line of its output."""
        event = _parse_event(line)
        if event is None:
            self._add_text(line)
            return
        kind = event["type"]
        if kind == "text":
            self._add_text(as_text(event.get("text")))
        elif kind == "tool":
            self._limit = None
            given = as_object(event.get("input")) or {}
            self._watcher.record({"type": "tool_use", "name": as_text(event.get("name")), "input": given})
            self._watcher.used_tool(as_text(event.get("name")) or "tool", given)
        elif kind == "question":
            self._limit = None
            await self._ask(as_text(event.get("text")))
        elif kind == "result":
            self._result = TurnResult(as_text(event.get("text")), as_text(event.get("error")))
            self._limit = self._limit if self._result.error else None
        else:
            self._note(event)

    def _note(self, event: dict[str, object]) -> None:
        """Record usage, rate limits and refusals."""
        kind = event["type"]
        if kind == "usage":
            self._watcher.used_tokens(event)
        elif kind == "cost" and isinstance(usd := event.get("usd"), (int, float)):
            self._watcher.costs(float(usd))
        elif kind == "limited":
            self._limited(event)
        elif kind == "refused":
            name = as_text(event.get("name")) or "tool"
            self._watcher.record({"type": "refused", "name": name, "text": as_text(event.get("text"))})
            self._refused = [*self._refused, name][-_MOST_REFUSED:]

    def said(self, code: int) -> TurnResult:
        """Return the result, from its output and exit code."""
        result = self._result or TurnResult("\n".join(self._answer)[-_LONGEST_ANSWER:].strip())
        # A program that prints more text and exits with 0 waited for the limit by itself.
        limit = self._limit if code != 0 or not self._has_text_since or result.error else None
        result = result._replace(rate_limit=limit, refused=tuple(dict.fromkeys(self._refused)))
        if code == 0 or result.error or result.rate_limit is not None:
            return result
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        words = self._program.stderr_tail
        return result._replace(error=f"it ended with {how}{': ' + words if words else ''}")

    def _limited(self, event: dict[str, object]) -> None:
        """Record a rate limit. If it is the last event, the program exited because of it."""
        seconds, why = _seconds(event.get("seconds")), as_text(event.get("text"))
        until = now_ms() + round(seconds * 1000) if seconds else None
        self._limit = RateLimit("", why[:300] or "rate limit", until)
        self._has_text_since = False
        self._watcher.limited(seconds, why)

    def _add_text(self, text: str) -> None:
        self._has_text_since = self._has_text_since or bool(text.strip())
        self._watcher.record({"type": "assistant", "text": text})
        self._answer.append(text)
        self._room -= len(text) + 1
        while self._room < 0 and len(self._answer) > 1:  # a single longer text is cut in the result
            self._room += len(self._answer.popleft()) + 1

    async def _ask(self, question: str) -> None:
        self._watcher.record({"type": "question", "text": question})
        answer = await self._answered(question) if self._hears else None  # stdin is closed: no answer is possible
        self._watcher.record({"type": "answer", "text": answer})
        if answer is not None:
            await self._program.say(answer + "\n")

    async def _answered(self, question: str) -> str | None:
        """Return the user's answer; None if the program exits before."""
        asking = asyncio.ensure_future(self._watcher.ask(question))
        gone = asyncio.ensure_future(self._program.over())
        try:
            await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()
            gone.cancel()
            await asyncio.wait({asking, gone})  # withdraws the question


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and 0 <= value < float("inf") else 0.0


_EVENTS = frozenset({"text", "tool", "usage", "cost", "limited", "refused", "question", "result"})


def _parse_event(line: str) -> dict[str, object] | None:
    """Return the event in a line; None if it is plain text, which may well look like JSON."""
    if not line.startswith("{"):
        return None
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
    return found if found is not None and found.get("type") in _EVENTS else None
