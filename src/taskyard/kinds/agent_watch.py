"""What an engine tells of its work, passed on: to the transcript, the record, those who follow and can answer."""

from __future__ import annotations

import asyncio
import json
import time

from taskyard.clock import now_ms
from taskyard.engines.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from taskyard.runtime.context import JobContext

#: Records and events tell of progress at most this often, in seconds; the last word is always written.
_EVERY = 0.5


class Watch:
    """One agent's watcher: see `taskyard.engines.engine.Watcher`."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._progress = Progress()
        self._began = time.monotonic()
        self._cost: float | None = None
        self._limited: dict[str, object] = {}
        self._told_at = 0.0
        self._tool: str | None = None
        self._later: asyncio.TimerHandle | None = None
        self._asked: asyncio.Future[str | None] | None = None
        self._sent: asyncio.Queue[str | None] = asyncio.Queue()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    def record(self, line: Mapping[str, object]) -> None:
        """Write a line of the transcript."""
        self._context.write(json.dumps({"at": now_ms(), **line}) + "\n")

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        """Count a tool, and remember what it was about."""
        self._progress = self._progress.used_tool(name, given)
        self._tool = name
        self._tell()

    def used_tokens(self, usage: Mapping[str, object]) -> None:
        """Count the tokens of one answer."""
        self._progress = self._progress.used_tokens(usage)
        self._tell()

    def costs(self, usd: float) -> None:
        """Remember what it has cost so far."""
        if 0 <= usd < float("inf"):
            self._cost = usd
            self._tell()

    def limited(self, seconds: float, why: str) -> None:
        """Say that it has to wait, and for whom: in the transcript, and on the record."""
        times = self._limited.get("times")
        times = times + 1 if isinstance(times, int) else 1
        self._limited = {"times": times, "seconds": round(seconds, 3), "why": why[:500], "at": now_ms()}
        self.record({"type": "limited", "seconds": round(seconds, 3), "text": why[:500]})
        self._context.tell(limited=self._limited)

    async def ask(self, question: str) -> str | None:
        """Show that an answer is wanted, and wait for what is sent next."""
        if self._reading.done():
            return None  # nothing can be sent any more
        self._asked = asyncio.get_running_loop().create_future()
        self._context.tell(needsInput=True, question=question[-2_000:])
        try:
            return await self._asked
        finally:
            self._asked = None
            self._context.tell(needsInput=False, question="")

    async def messages(self) -> AsyncIterator[str]:
        """What is sent to the agent and answers no question."""
        while (text := await self._sent.get()) is not None:
            yield text

    def facts(self) -> dict[str, object]:
        """What is known at the end."""
        cost = {} if self._cost is None else {"costUsd": self._cost}
        limited = {"limited": self._limited} if self._limited else {}
        return {"progress": self._progress.to_json(), "usage": self._usage(), **cost, **limited}

    async def _read(self) -> None:
        async for text in self._context.messages():
            if self._asked is not None and not self._asked.done():
                self._asked.set_result(text)
            else:
                await self._sent.put(text)
        await self._sent.put(None)
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)

    def _tell(self) -> None:
        """Bring record and followers up to date, not more often than anybody looks: what comes too soon waits."""
        loop = asyncio.get_running_loop()
        left = self._told_at + _EVERY - time.monotonic()
        if left > 0:
            self._later = self._later or loop.call_later(left, self._tell_now)
        else:
            self._tell_now()

    def _tell_now(self) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later, self._told_at = None, time.monotonic()
        self._context.tell(**self.facts())
        self._context.progress(usage=self._usage(), last_tool_name=self._tool)
        self._tool = None

    def _usage(self) -> dict[str, int]:
        return {
            "total_tokens": self._progress.tokens,
            "tool_uses": self._progress.tools,
            "duration_ms": round((time.monotonic() - self._began) * 1000),
        }
