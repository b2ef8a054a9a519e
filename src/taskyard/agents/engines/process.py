"""Run an agent program as a subprocess: lines in and out, bounded, terminated with the engine.

`Program` is the process. `run` does one turn of a program that prints its conversation as lines of JSON: the
prompt on stdin, events on stdout, parsed by an `EventReader` for that program. The prompt is never on the
command line, so nothing in it can be taken for an option.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time

from taskyard import config
from taskyard.agents.engines.engine import AnswerBuffer, RateLimit, TurnResult
from taskyard.agents.engines.provider import parse_rate_limit
from taskyard.core import subprocesses
from taskyard.core.values import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from taskyard.agents.engines.engine import Brief, Recorder


#: Characters of the end of stderr that are kept: it has the reason of a failure.
_STDERR_TAIL = 2_000


#: Seconds for a program to exit after its stdin closes: with the rest, less than the grace period of a job.
_HANG_UP_TIMEOUT = 1.0


#: Seconds until a guard (`Brief.guard`) that does not exit is killed: it bounds itself, and what it guards
#: would survive its kill.
_GUARD_GRACE = 60.0


class Program:
    """One run of a program."""

    def __init__(self, process: asyncio.subprocess.Process, watcher: Recorder, *, is_guarded: bool = False) -> None:
        self._process = process
        self._grace = _GUARD_GRACE if is_guarded else subprocesses.CHILD_TERM_GRACE
        self._last_words = ""
        self.on_stderr: Callable[[str], None] | None = None  #: called with each line of stderr
        self.last_output_at = time.monotonic()  #: when it last printed a line
        self._watcher = watcher
        self._listening = asyncio.create_task(self._listen())
        self._over = asyncio.create_task(subprocesses.wait_exit(process))
        self._parting = asyncio.create_task(subprocesses.close_pipes(process))
        self._feeding: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, argv: Sequence[str], brief: Brief, watcher: Recorder) -> Program:
        """Start a program in the brief's folder and environment; its stderr goes to the transcript.

        Raises:
            OSError: it cannot be started.
        """
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *brief.guard,
            *argv,
            cwd=brief.cwd,
            env=dict(brief.env),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        return cls(process, watcher, is_guarded=bool(brief.guard))

    async def lines(self) -> AsyncIterator[str]:
        """Yield its stdout by line, whatever the bytes."""
        assert self._process.stdout is not None
        async for line in subprocesses.read_lines(self._process.stdout):
            self.last_output_at = time.monotonic()
            yield line

    async def say(self, text: str, *, last: bool = False) -> None:
        """Write to its stdin; with `last`, close it. A program that does not read is no failure."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError):
            stdin.write(text.encode("utf-8", "replace"))
            await stdin.drain()
            if last:
                stdin.close()

    def feed(self, text: str) -> None:
        """Write all of its stdin in the background: it may print a lot before it reads."""
        self._feeding = asyncio.create_task(self.say(text, last=True))

    async def hang_up(self) -> None:
        """Close stdin and wait briefly: a program that depends on it exits cleanly by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _HANG_UP_TIMEOUT)

    async def ended(self) -> int:
        """Return its exit code; below 0, the signal that killed it."""
        code = await self._process.wait()
        await self._listening
        return code

    async def over(self) -> None:
        """Wait until it has exited, though other processes may still have its pipes open."""
        await asyncio.shield(self._over)

    @property
    def stderr_tail(self) -> str:
        """The end of its stderr."""
        return self._last_words.strip()

    async def close(self) -> None:
        """Terminate it with its process group, if it still runs. What else it started ends with the job."""
        for task in (self._listening, self._over, self._parting):
            task.cancel()
        if self._feeding is not None:
            self._feeding.cancel()
        await subprocesses.terminate(self._process, grace=self._grace)

    async def __aenter__(self) -> Program:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        async for line in subprocesses.read_lines(self._process.stderr):
            self.last_output_at = time.monotonic()
            self._last_words = f"{self._last_words}{line}\n"[-_STDERR_TAIL:]
            self._watcher.record({"type": "stderr", "text": line})
            if self.on_stderr is not None:
                self.on_stderr(line)


#: Maximum characters of a tool result in the transcript.
_LONGEST_RESULT = 4_000

#: Server errors and broken connections: the same request may succeed later.
TRANSIENT_ERROR = re.compile(
    r"(?<![\w.])50[0234](?![\w.]*\d)|stream disconnected|high demand|temporar|terminated|socket|connection|network"
    r"|timed? ?out|internal (?:server )?error|unavailable|ECONNRE|fetch failed|database is (?:locked|busy)",
    re.IGNORECASE,
)

#: How Gemini CLI, Codex, opencode and Claude Code report an unknown conversation id.
_SESSION_LOST = re.compile(
    r"error resuming session|no rollout found|session not found|no conversation found", re.IGNORECASE
)


class EventReader:
    """Common event handling for all programs; one per turn."""

    #: Provider of the model, by its common name.
    provider = ""

    def __init__(self, watcher: Recorder) -> None:
        self.watcher = watcher
        self.answer_buffer = AnswerBuffer(watcher)
        self.refused: list[str] = []
        self.error = ""
        self.rate_limit: RateLimit | None = None
        self.passes = False  #: the program itself treats the error as retryable
        self.is_over = False  #: the program reported the end of the turn
        self.has_begun = False  #: the program reported its conversation id
        self.abort_event = asyncio.Event()  #: set: the program would continue silently; terminate it

    def event(self, event: Mapping[str, object]) -> None:
        """Handle one event from stdout."""
        raise NotImplementedError

    def log(self, line: str) -> None:
        """Handle one line from stderr."""

    def begins(self, session: str) -> None:
        """Record the conversation id."""
        self.has_begun = True
        self.watcher.record({"type": "system", "subtype": "init", "session_id": session})

    def uses(self, tool: str, given: Mapping[str, object], call: str) -> None:
        """Record a tool call."""
        self.answer_buffer.acts()
        self.watcher.record({"type": "tool_use", "id": call, "name": tool, "input": dict(given)})
        self.watcher.used_tool(tool, given)

    def result(self, call: str, status: str, text: str) -> None:
        """Record a tool result."""
        self.watcher.record({"type": "tool_result", "id": call, "status": status, "text": text[:_LONGEST_RESULT]})

    def refuses(self, tool: str) -> None:
        """Note a tool refused for lack of permission."""
        if tool not in self.refused:
            self.refused.append(tool)

    def fails(self, error: str) -> None:
        """Note that the turn failed, or is about to."""
        self.error = error
        self.rate_limit = parse_rate_limit(error, provider=self.provider, now=time.time())

    def said(self, code: int, stderr_tail: str) -> TurnResult:
        """Return the result, once the program exited with `code`."""
        self.answer_buffer.pause()
        if not self.error and (code != 0 or not self.is_over):
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            self.fails(f"it ended with {how} before its turn was over{f': {stderr_tail}' if stderr_tail else ''}")
        is_killed = code < 0  # by a user, or out of memory: the task is not at fault
        is_passing = bool(self.error) and (is_killed or self.passes or TRANSIENT_ERROR.search(self.error) is not None)
        is_retryable = self.rate_limit is not None or is_passing
        is_lost = not self.has_begun and is_session_lost(self.error)
        return TurnResult(
            self.answer_buffer.answer, self.error, is_retryable, self.rate_limit, tuple(self.refused), is_lost
        )


async def run(argv: Sequence[str], brief: Brief, reader: EventReader) -> TurnResult:
    """Run a program for one turn; cancellation terminates it."""
    try:
        program = await Program.start(argv, brief, reader.watcher)
    except OSError as error:
        return TurnResult(error=f"{argv[0]} cannot be started: {error.strerror}")
    program.on_stderr = reader.log
    patience = config.load_settings().agent_silence
    async with program:
        program.feed(brief.prompt)
        reading = asyncio.create_task(_read(program, reader))
        giving_up = asyncio.create_task(reader.abort_event.wait())
        try:
            while (left := program.last_output_at + patience - time.monotonic()) > 0:
                done, _ = await asyncio.wait({reading, giving_up}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    break
            else:
                return TurnResult(
                    reader.answer_buffer.answer, f"it produced no output for {patience:g} s", is_retryable=True
                )
            if not reading.done():
                return reader.said(0, "")
            return reader.said(reading.result(), program.stderr_tail)
        finally:
            reading.cancel()
            giving_up.cancel()


async def _read(program: Program, reader: EventReader) -> int:
    async for line in program.lines():
        event = _parse_event(line)
        if event is None:
            if line.strip():
                reader.watcher.record({"type": "stdout", "text": line})
        else:
            reader.event(event)
    return await program.ended()


def _parse_event(line: str) -> dict[str, object] | None:
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None


def is_session_lost(error: str) -> bool:
    """Return whether a program's error means that it does not know the conversation to continue.

    Gemini CLI saves a conversation only after its first answer: one that a rate limit refused at once does
    not exist.

    >>> is_session_lost("Error: Session not found")
    True
    """
    return _SESSION_LOST.search(error) is not None


def token_count(value: object) -> int:
    """Return a number of tokens; anything else counts 0."""
    return value if type(value) is int and value > 0 else 0


def quiet_libraries() -> None:
    """Discard log records and warnings of libraries, unless configured: an agent's stderr is its transcript."""
    import logging
    import warnings

    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
