"""
Any program as an agent: `command`.

It gets the prompt on stdin, to its end; or, where one of its words is or contains `{prompt}`, in that place, and can
then be sent more on stdin. A prompt that begins with `-` could be taken for an option there: it is refused, unless the
place is right after a word `--`, or has an option before it in the same word (`--message={prompt}`).

What it prints is its answer. A program that has more to tell prints lines of JSON among the others:

    {"type": "text", "text": "…"}                                  what it says
    {"type": "tool", "name": "Edit", "input": {…}}                 what it does
    {"type": "usage", "input_tokens": 900, "output_tokens": 40}    what an answer of its model took
    {"type": "cost", "usd": 0.12}                                  what all of it has cost
    {"type": "limited", "seconds": 20, "text": "429"}              its provider refuses requests, for so long: it waits
                                                                   and goes on, or ends and is started again then
    {"type": "refused", "name": "Write"}                           it was not permitted to use a tool
    {"type": "question", "text": "Overwrite?"}                     the answer comes as a line on its stdin
    {"type": "result", "text": "…", "error": "…"}                  its last word
"""

from __future__ import annotations

import asyncio
import json
from collections import deque

from taskyard.clock import now_ms
from taskyard.engines.engine import RateLimit, Said
from taskyard.engines.process import Program
from taskyard.errors import UsageError
from taskyard.shapes import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.engines.engine import Brief, Watcher

#: Where the prompt stands among a program's words, if not on its stdin.
PLACE = "{prompt}"

#: Characters of an answer that are kept: more than any reader is given.
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
        if why := _mistakable(brief):
            raise UsageError(why)

    async def work(self, brief: Brief, watcher: Watcher) -> Said:
        """Run the program to its end."""
        if why := _mistakable(brief):
            return Said(error=why)
        takes_argument = takes_prompt(brief.command)
        argv = [brief.command[0], *(word.replace(PLACE, brief.prompt) for word in brief.command[1:])]
        try:
            program = await Program.start(argv, brief, watcher)
        except OSError as error:
            return Said(error=f"{argv[0]} cannot be started: {error.strerror}")
        async with program:
            talk = _Talk(program, watcher, hears=takes_argument)
            if not takes_argument:
                program.feed(brief.prompt + "\n")
            # One that has read its prompt to the end reads nothing more: what is sent stays for its next turn.
            passing = asyncio.create_task(talk.pass_on()) if takes_argument else None
            try:
                async for line in program.lines():
                    await talk.heard(line)
                return talk.said(await program.ended())
            finally:
                if passing is not None:
                    passing.cancel()


def takes_prompt(command: Sequence[str]) -> bool:
    """Whether a program gets the prompt as one of its words, and so can be sent more on stdin."""
    return any(PLACE in word for word in command[1:])


def _mistakable(brief: Brief) -> str:
    """Why the prompt cannot be one of the program's words: it could be taken for an option; nothing if it can."""
    if not brief.prompt.startswith("-"):
        return ""
    for before, word in zip(brief.command, brief.command[1:], strict=False):
        if word.startswith(PLACE) and before != "--":
            return (
                f"The prompt begins with `-`, and {brief.command[0]} could take it for an option. Give it the prompt on"
                f" stdin (leave out {PLACE}), or write `-- {PLACE}` or `--option={PLACE}` if it knows these."
            )
    return ""


class _Talk:
    """What goes back and forth with one program."""

    def __init__(self, program: Program, watcher: Watcher, *, hears: bool) -> None:
        self._program = program
        self._hears = hears  # else its stdin ends with the prompt
        self._watcher = watcher
        self._answer: deque[str] = deque()
        self._room = _LONGEST_ANSWER
        self._result: Said | None = None
        self._limit: RateLimit | None = None  # that it hit last, if it did nothing since
        self._has_said_more = False  # since then
        self._refused: list[str] = []

    async def pass_on(self) -> None:
        """Hand over what is sent to the agent while it works; what it cannot hear is left for its next turn."""
        if not self._hears:
            return
        async for text in self._watcher.messages():
            self._watcher.record({"type": "user", "text": text})
            await self._program.say(text + "\n")
        await self._program.say("", last=True)  # nobody will tell it anything more

    async def heard(self, line: str) -> None:
        """Take in one line of it."""
        event = _event(line)
        if event is None:
            self._says(line)
            return
        kind = event["type"]
        if kind == "text":
            self._says(as_text(event.get("text")))
        elif kind == "tool":
            self._limit = None
            given = as_object(event.get("input")) or {}
            self._watcher.record({"type": "tool_use", "name": as_text(event.get("name")), "input": given})
            self._watcher.used_tool(as_text(event.get("name")) or "tool", given)
        elif kind == "question":
            self._limit = None
            await self._ask(as_text(event.get("text")))
        elif kind == "result":
            self._result = Said(as_text(event.get("text")), as_text(event.get("error")))
            self._limit = self._limit if self._result.error else None
        else:
            self._note(event)

    def _note(self, event: dict[str, object]) -> None:
        """Pass on what it took, what it was limited by, what it was refused."""
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

    def said(self, code: int) -> Said:
        """Its last word, by what it printed and how it ended."""
        result = self._result or Said("\n".join(self._answer)[-_LONGEST_ANSWER:].strip())
        # One that goes on to talk and ends well waited by itself.
        limit = self._limit if code != 0 or not self._has_said_more or result.error else None
        result = result._replace(rate_limit=limit, refused=tuple(dict.fromkeys(self._refused)))
        if code == 0 or result.error or result.rate_limit is not None:
            return result
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        words = self._program.last_words
        return result._replace(error=f"it ended with {how}{': ' + words if words else ''}")

    def _limited(self, event: dict[str, object]) -> None:
        """Its provider refuses requests. If that is the last it tells of, it ended for it."""
        seconds, why = _seconds(event.get("seconds")), as_text(event.get("text"))
        until = now_ms() + round(seconds * 1000) if seconds else None
        self._limit = RateLimit("", why[:300] or "rate limit", until)
        self._has_said_more = False
        self._watcher.limited(seconds, why)

    def _says(self, text: str) -> None:
        self._has_said_more = self._has_said_more or bool(text.strip())
        self._watcher.record({"type": "assistant", "text": text})
        self._answer.append(text)
        self._room -= len(text) + 1
        while self._room < 0 and len(self._answer) > 1:  # what is longer than an answer by itself is cut at the end
            self._room += len(self._answer.popleft()) + 1

    async def _ask(self, question: str) -> None:
        self._watcher.record({"type": "question", "text": question})
        answer = await self._answered(question) if self._hears else None  # nobody could tell it
        self._watcher.record({"type": "answer", "text": answer})
        if answer is not None:
            await self._program.say(answer + "\n")

    async def _answered(self, question: str) -> str | None:
        """What somebody answers; None if the program ends before."""
        asking = asyncio.ensure_future(self._watcher.ask(question))
        gone = asyncio.ensure_future(self._program.over())
        try:
            await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()
            gone.cancel()
            await asyncio.wait({asking, gone})  # so that nobody is asked any more


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and 0 <= value < float("inf") else 0.0


_EVENTS = frozenset({"text", "tool", "usage", "cost", "limited", "refused", "question", "result"})


def _event(line: str) -> dict[str, object] | None:
    """The event in a line; None if it is plain text, which may well look like JSON."""
    if not line.startswith("{"):
        return None
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
    return found if found is not None and found.get("type") in _EVENTS else None
