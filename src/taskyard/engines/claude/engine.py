"""
The engines `claude` and `claude-stream`.

`claude` runs Claude Code and talks with it line by line, as its SDK does: the prompt and later messages go in, progress
and permission requests come out. A request becomes the job's question; without an answer in time the tool is refused.

`claude-stream` runs any program that prints its conversation as Claude Code does: the prompt on stdin to its end, a
line of JSON per message, at last one of type `result`. Nothing can be asked or sent while it works.

A stream that breaks off without a result was cut: that is an error, and can be retried.
"""

from __future__ import annotations

import asyncio
import json
import os
import time

from taskyard import config
from taskyard.engines.claude import arguments, permission
from taskyard.engines.claude.stream import Stream
from taskyard.engines.engine import Said
from taskyard.engines.json_lines import is_session_lost
from taskyard.engines.process import Program
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from taskyard.engines.engine import Brief, Watcher

#: The program if none is named.
DEFAULT = ("claude",)

#: Seconds in which a program that has nothing left to do ends by itself.
_PARTING = 5.0

#: How often a person is asked again whose answer is none of those offered.
_MOST_ASKED = 3

#: Requests that wait for an answer; the program makes one per tool call.
_MOST_WAITING = 50

#: Rules granted for a job that are passed on to its next run.
_MOST_RULES = 200


class Claude:
    """Claude Code."""

    def __init__(self) -> None:
        self._session: str | None = None  # to resume if it is called again
        self._rules: dict[str, None] = {}  # granted for the job

    def check(self, brief: Brief) -> None:
        """Refuse a permission mode that the program would refuse."""
        arguments.check(brief)

    async def work(self, brief: Brief, watcher: Watcher) -> Said:
        """Run it until it has answered the prompt and all messages that reached it. Called again, it resumes."""
        session = self._session or brief.session
        argv = [*(brief.command or DEFAULT), *arguments.words(brief, session=session, allowed=self._rules)]
        try:
            program = await Program.start(argv, brief, watcher)
        except OSError as error:
            return Said(error=f"{argv[0]} cannot be started: {error.strerror}")
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
            return said if said is not None else await _cut(program)


class ClaudeStream:
    """A program that prints its conversation as Claude Code does."""

    def check(self, brief: Brief) -> None:
        """The program is looked for when it is started."""
        if not brief.command:
            Claude().check(brief)

    async def work(self, brief: Brief, watcher: Watcher) -> Said:
        """Run it to its result."""
        if not brief.command:
            return await Claude().work(brief, watcher)
        model = ("--model", brief.model) if brief.model else ()
        resumed = ("--resume", brief.session) if brief.session else ()
        is_claude_code = os.path.basename(brief.command[0]) == "claude"  # other programs may not know the options
        access = arguments.access(brief) if is_claude_code and brief.reads else ()
        argv = [*brief.command, *access, *arguments.STREAM, *model, *resumed]
        try:
            program = await Program.start(argv, brief, watcher)
        except OSError as error:
            return Said(error=f"{argv[0]} cannot be started: {error.strerror}")
        async with program:
            program.feed(brief.prompt)
            stream = Stream(watcher)
            async for line in program.lines():
                stream.hear(line)
            return stream.said if stream.said is not None else await _cut(program)


class _Run:
    """One run of Claude Code."""

    def __init__(self, program: Program, watcher: Watcher, rules: dict[str, None]) -> None:
        self._program = program
        self._watcher = watcher
        self._rules = rules
        self._settings = config.load()
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._messages: asyncio.Task[None] | None = None
        self._is_closed = False
        self._alive_at = time.monotonic()
        self.stream = Stream(watcher)

    async def work(self, prompt: str) -> Said | None:
        """Read it to its end; the outcome of its last turn, None if it was cut."""
        self._messages = asyncio.create_task(self._converse(prompt))
        lines = self._program.lines()
        coming: asyncio.Future[str | None] | None = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(lines, None))
                patience = self._settings.agent_silence if self.stream.is_working else _PARTING
                if self._questions:  # a person has to answer first
                    self._alive_at = time.monotonic()
                await asyncio.wait({coming}, timeout=max(self._alive_at + patience - time.monotonic(), 0))
                if not coming.done():
                    if self._questions or self._alive_at + patience > time.monotonic():
                        continue
                    return self._silent(patience)
                self._alive_at = time.monotonic()
                line, coming = coming.result(), None
                if line is None:
                    return None if self.stream.is_working else self.stream.said
                self._heard(self.stream.hear(line))
        finally:
            if coming is not None:
                coming.cancel()

    async def close(self) -> None:
        """Nothing more is asked or sent."""
        tasks = [*self._questions.values(), *([self._messages] if self._messages is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _silent(self, patience: float) -> Said | None:
        if not self.stream.is_working:
            return self.stream.said  # it answered, and something it started keeps it
        return Said(error=f"it said nothing for {patience:g} s", is_retryable=True)

    def _heard(self, message: Mapping[str, object]) -> None:
        kind = message.get("type")
        if kind == "result" and not self._is_closed:
            self._is_closed = True
            assert self._messages is not None
            self._messages.cancel()  # what is sent from now on belongs to the next turn
            self._messages = asyncio.create_task(self._program.say("", last=True))
        elif kind == "control_request":
            self._asked(message)
        elif kind == "control_cancel_request":
            asking = self._questions.get(str(message.get("request_id")))
            if asking is not None:
                asking.cancel()

    # -- to the program -----------------------------------------------------------------------

    async def _converse(self, prompt: str) -> None:
        """Give it the prompt, then what is sent to the agent while it works."""
        await self._say(_user(prompt))
        async for text in self._watcher.messages():
            self._watcher.record({"type": "user", "text": text})
            await self._say(_user(text))

    async def _say(self, message: Mapping[str, object]) -> None:
        await self._program.say(json.dumps(message, separators=(",", ":")) + "\n")

    async def _respond(self, request_id: str, response: Mapping[str, object]) -> None:
        answer = {"subtype": "success", "request_id": request_id, "response": response}
        await self._say({"type": "control_response", "response": answer})

    # -- permission ---------------------------------------------------------------------------

    def _asked(self, message: Mapping[str, object]) -> None:
        request = permission.Request.read(message)
        if request.id in self._questions:
            return  # the same again
        act = self._answer(request) if _wants_permission(message) else self._decline(request)
        if len(self._questions) >= _MOST_WAITING:
            act.close()
            act = self._respond(request.id, permission.Decision(False, reason=_TOO_MANY).response(request))
        before = list(self._questions.values())  # one at a time: an answer does not say which question it is for
        asking = asyncio.create_task(_after(before, act))
        self._questions[request.id] = asking
        asking.add_done_callback(lambda _: self._settled(request.id))

    def _settled(self, request_id: str) -> None:
        self._questions.pop(request_id, None)
        self._alive_at = time.monotonic()  # from now on the program is waited for again

    async def _decline(self, request: permission.Request) -> None:
        answer = {"subtype": "error", "request_id": request.id, "error": "not supported"}
        await self._say({"type": "control_response", "response": answer})

    async def _answer(self, request: permission.Request) -> None:
        try:
            async with asyncio.timeout(self._settings.ask_timeout or None):
                response = await self._decided(request)
        except TimeoutError:
            reason = f"Nobody answered within {self._settings.ask_timeout:g} s, so this is denied. {_GO_ON}"
            response = permission.Decision(False, reason=reason).response(request)
        await self._respond(request.id, response)

    async def _decided(self, request: permission.Request) -> Mapping[str, object]:
        if request.tool == permission.QUESTION_TOOL and (asked := permission.asked_by_model(request)):
            answers: dict[str, str] = {}
            for name, text in asked:
                said = await self._ask(text)
                if said is None:
                    return permission.Decision(False, reason=_NOBODY).response(request)
                answers[name] = said
            return permission.answered(request, answers)
        asked_again = question = permission.question(request)
        for _ in range(_MOST_ASKED):
            said = await self._ask(asked_again)
            if said is None:
                return permission.Decision(False, reason=_NOBODY).response(request)
            decision = permission.decided(said, request)
            if decision is not None:
                if decision.always:
                    self._remember(request)
                return decision.response(request)
            asked_again = f"{question}\n{permission.HINT}"
        return permission.Decision(False, reason=_NOBODY).response(request)

    async def _ask(self, question: str) -> str | None:
        self._watcher.record({"type": "question", "text": question})
        answer = await self._watcher.ask(question)
        self._watcher.record({"type": "answer", "text": answer})
        return answer

    def _remember(self, request: permission.Request) -> None:
        for update in permission.grant(request):
            for rule in permission.rules_in(update) if update.get("type") == "addRules" else ():
                # A comma or a parenthesis inside could be read as the beginning of another rule.
                if len(self._rules) < _MOST_RULES and not any(mark in rule[:-1] for mark in ("),", ") ", ",")):
                    self._rules[rule] = None


_GO_ON = "Do what can be done without it, and say what could not."
_NOBODY = f"Nobody can answer, so this is denied. {_GO_ON}"
_TOO_MANY = "Too many requests wait for an answer. Ask again later."


async def _after(before: list[asyncio.Task[None]], act: Coroutine[object, object, None]) -> None:
    """Do something once what came before it is done."""
    try:
        if before:
            await asyncio.wait(before)
    except asyncio.CancelledError:
        act.close()
        raise
    await act


def _wants_permission(message: Mapping[str, object]) -> bool:
    return (as_object(message.get("request")) or {}).get("subtype") == "can_use_tool"


def _user(text: str) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}


async def _cut(program: Program) -> Said:
    try:
        code = str(await asyncio.wait_for(program.ended(), _PARTING))
    except TimeoutError:
        code = "none yet"
    words = f": {program.last_words}" if program.last_words else ""
    return Said(error=f"its stream broke off without a result (exit code {code}){words}", is_retryable=True)
