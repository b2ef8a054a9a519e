"""A program that an engine talks to: lines out, lines in, bounded, and gone when the engine is."""

from __future__ import annotations

import asyncio
import contextlib
import time

from taskyard import children

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from taskyard.engines.engine import Brief, Watcher

#: Of a longer line the rest is left out, in bytes: a program may print anything.
LONGEST_LINE = 4 * 1024 * 1024

#: What a program says last on stderr, in characters: why it failed is there.
_LAST_WORDS = 2_000

_CHUNK = 65_536


#: Seconds in which one that nobody talks to any more ends by itself: with the rest, less than the grace of a job.
_HANGING_UP = 1.0


#: Seconds until a guard (`Brief.guard`) is killed that does not end: it bounds itself, and what it guards outlives it.
_GUARD_GRACE = 60.0


class Program:
    """One run of it."""

    def __init__(self, process: asyncio.subprocess.Process, watcher: Watcher, *, is_guarded: bool = False) -> None:
        self._process = process
        self._grace = _GUARD_GRACE if is_guarded else children.GRACE
        self._last_words = ""
        self.on_stderr: Callable[[str], None] | None = None  #: gets each line of stderr as it comes
        self.heard_at = time.monotonic()  #: when it last printed a line
        self._watcher = watcher
        self._listening = asyncio.create_task(self._listen())
        self._over = asyncio.create_task(children.over(process))
        self._parting = asyncio.create_task(children.part_with(process))
        self._feeding: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, argv: Sequence[str], brief: Brief, watcher: Watcher) -> Program:
        """Start it where the brief says; what it prints on stderr is in the transcript.

        Raises:
            OSError: it cannot be.
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
        """What it prints, a line each, whatever bytes they are."""
        assert self._process.stdout is not None
        async for line in lines_of(self._process.stdout):
            self.heard_at = time.monotonic()
            yield line

    async def say(self, text: str, *, last: bool = False) -> None:
        """Give it something to read; with `last`, nothing more follows. One that does not read is no failure."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError):
            stdin.write(text.encode("utf-8", "replace"))
            await stdin.drain()
            if last:
                stdin.close()

    def feed(self, text: str) -> None:
        """Give it all it will ever read, while it is listened to: it may print a lot before it reads."""
        self._feeding = asyncio.create_task(self.say(text, last=True))

    async def hang_up(self) -> None:
        """Nothing more is said to it: one that lives from that ends by itself, in good order."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _HANGING_UP)

    async def ended(self) -> int:
        """Its exit code; below 0, the signal that ended it."""
        code = await self._process.wait()
        await self._listening
        return code

    async def over(self) -> None:
        """Wait until it has ended, though others may still hold its pipes."""
        await asyncio.shield(self._over)

    @property
    def last_words(self) -> str:
        """The end of what it said on stderr."""
        return self._last_words.strip()

    async def close(self) -> None:
        """Have it end, if it has not, with its group. Whatever else it started is ended with the job."""
        for task in (self._listening, self._over, self._parting):
            task.cancel()
        if self._feeding is not None:
            self._feeding.cancel()
        await children.end(self._process, grace=self._grace)

    async def __aenter__(self) -> Program:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        async for line in lines_of(self._process.stderr):
            self.heard_at = time.monotonic()
            self._last_words = f"{self._last_words}{line}\n"[-_LAST_WORDS:]
            self._watcher.record({"type": "stderr", "text": line})
            if self.on_stderr is not None:
                self.on_stderr(line)


async def lines_of(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Whole lines of any length, each cut where it is too long; the last need not end with a line break."""
    held, is_cut = b"", False
    while chunk := await stream.read(_CHUNK):
        *whole, rest = (held + chunk).split(b"\n")
        for line in whole:
            if not is_cut:
                yield line.decode("utf-8", "replace").rstrip("\r")
            is_cut = False
        held = b"" if is_cut else rest
        if len(held) > LONGEST_LINE:
            yield held[:LONGEST_LINE].decode("utf-8", "replace")
            held, is_cut = b"", True
    if held and not is_cut:
        yield held.decode("utf-8", "replace").rstrip("\r")
