"""
One turn of an agent program that prints its conversation as lines of JSON: the prompt on stdin, events on stdout.

A `Reader` knows the events of one program. The prompt never is one of the program's words, so nothing in it can be
taken for an option.
"""

from __future__ import annotations

import asyncio
import json
import re
import time

from taskyard import config
from taskyard.engines.engine import RateLimit, Said
from taskyard.engines.limit_text import limit_in
from taskyard.engines.process import Program
from taskyard.engines.speech import Speech
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.engines.engine import Brief, Watcher

#: Characters of a tool's result in the transcript.
_LONGEST_RESULT = 4_000

#: Server errors and broken connections: the same request may succeed later.
PASSING = re.compile(
    r"(?<![\w.])50[0234](?![\w.]*\d)|stream disconnected|high demand|temporar|terminated|socket|connection|network"
    r"|timed? ?out|internal (?:server )?error|unavailable|ECONNRE|fetch failed|database is (?:locked|busy)",
    re.IGNORECASE,
)

#: How Gemini CLI, Codex, opencode and Claude Code report that they have no conversation of the given name.
_LOST = re.compile(r"error resuming session|no rollout found|session not found|no conversation found", re.IGNORECASE)


class Reader:
    """What is common to the events of all programs; one per turn."""

    #: Who serves the model, as people know it.
    provider = ""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.speech = Speech(watcher)
        self.refused: list[str] = []
        self.error = ""
        self.rate_limit: RateLimit | None = None
        self.passes = False  #: the program itself treats the error as one that a retry may resolve
        self.is_over = False  #: the program said that the turn is over
        self.has_begun = False  #: the program named its conversation
        self.gives_up = asyncio.Event()  #: set: the program would go on without a word; end it

    def event(self, event: Mapping[str, object]) -> None:
        """Take in one event from stdout."""
        raise NotImplementedError

    def log(self, line: str) -> None:
        """Take in one line from stderr."""

    def begins(self, session: str) -> None:
        """The program named its conversation."""
        self.has_begun = True
        self.watcher.record({"type": "system", "subtype": "init", "session_id": session})

    def uses(self, tool: str, given: Mapping[str, object], call: str) -> None:
        """A tool was called."""
        self.speech.acts()
        self.watcher.record({"type": "tool_use", "id": call, "name": tool, "input": dict(given)})
        self.watcher.used_tool(tool, given)

    def result(self, call: str, status: str, text: str) -> None:
        """A tool answered."""
        self.watcher.record({"type": "tool_result", "id": call, "status": status, "text": text[:_LONGEST_RESULT]})

    def refuses(self, tool: str) -> None:
        """A tool was refused for want of permission."""
        if tool not in self.refused:
            self.refused.append(tool)

    def fails(self, error: str) -> None:
        """The turn failed, or is about to."""
        self.error = error
        self.rate_limit = limit_in(error, provider=self.provider, now=time.time())

    def said(self, code: int, last_words: str) -> Said:
        """The outcome, once the program ended with `code`."""
        self.speech.pause()
        if not self.error and (code != 0 or not self.is_over):
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            self.fails(f"it ended with {how} before its turn was over{f': {last_words}' if last_words else ''}")
        is_killed = code < 0  # by somebody, or for want of memory: the task is not at fault
        is_passing = bool(self.error) and (is_killed or self.passes or PASSING.search(self.error) is not None)
        is_retryable = self.rate_limit is not None or is_passing
        is_lost = not self.has_begun and is_session_lost(self.error)
        return Said(self.speech.answer, self.error, is_retryable, self.rate_limit, tuple(self.refused), is_lost)


async def run(argv: Sequence[str], brief: Brief, reader: Reader) -> Said:
    """Run a program for one turn; being cancelled ends it."""
    try:
        program = await Program.start(argv, brief, reader.watcher)
    except OSError as error:
        return Said(error=f"{argv[0]} cannot be started: {error.strerror}")
    program.on_stderr = reader.log
    patience = config.load().agent_silence
    async with program:
        program.feed(brief.prompt)
        reading = asyncio.create_task(_read(program, reader))
        giving_up = asyncio.create_task(reader.gives_up.wait())
        try:
            while (left := program.heard_at + patience - time.monotonic()) > 0:
                done, _ = await asyncio.wait({reading, giving_up}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    break
            else:
                return Said(reader.speech.answer, f"it said nothing for {patience:g} s", is_retryable=True)
            if not reading.done():
                return reader.said(0, "")
            return reader.said(reading.result(), program.last_words)
        finally:
            reading.cancel()
            giving_up.cancel()


async def _read(program: Program, reader: Reader) -> int:
    async for line in program.lines():
        event = _event(line)
        if event is None:
            if line.strip():
                reader.watcher.record({"type": "stdout", "text": line})
        else:
            reader.event(event)
    return await program.ended()


def _event(line: str) -> dict[str, object] | None:
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None


def is_session_lost(error: str) -> bool:
    """Whether an error of a program that was to continue a conversation means that it has none of that name.

    Gemini CLI saves a conversation only after its first answer: one that a rate limit refused at once is not there.

    >>> is_session_lost("Error: Session not found")
    True
    """
    return _LOST.search(error) is not None


def count(value: object) -> int:
    """A number of tokens; what is none counts 0."""
    return value if type(value) is int and value > 0 else 0
