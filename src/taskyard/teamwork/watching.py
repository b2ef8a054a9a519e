"""What a teammate's engine tells of its work: to the transcript, the job's record, the team, and those who look on."""

from __future__ import annotations

import json
import time

from taskyard.clock import now_ms
from taskyard.engines.progress import Progress
from taskyard.teamwork import prompts
from taskyard.teamwork.messages import Recent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from taskyard.runtime.context import JobContext
    from taskyard.teamwork.messages import Inbox

#: The record tells of progress at most this often, in seconds; the last word is always written.
_EVERY = 1.0

#: The team hears that somebody gets on this often, in seconds: well within the minute after which it looks stalled.
_BEAT = 15.0


class Watch:
    """One teammate's watcher: see `taskyard.engines.engine.Watcher`."""

    def __init__(self, context: JobContext, inbox: Inbox, *, hears: bool, beat: Callable[[], None]) -> None:
        """`hears`: its engine takes messages while it works; `beat` lets the team know that it gets on."""
        self._context = context
        self._inbox = inbox
        self._hears = hears
        self._beat = beat
        self._progress = Progress()
        self._recent = Recent()
        self._began = time.monotonic()
        self._cost: float | None = None
        self._limits = 0
        self._told_at = 0.0
        self._beat_at = time.monotonic()
        self._tool: str | None = None

    def record(self, line: Mapping[str, object]) -> None:
        """Write a line of the transcript."""
        self._context.write(json.dumps({"at": now_ms(), **line}, default=str) + "\n")
        self._recent.add(line)
        self._tell()

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
        self._limits += 1
        told = {"seconds": round(seconds, 3), "why": why[:500]}
        self.record({"type": "limited", "seconds": told["seconds"], "text": told["why"]})
        self._context.tell(limited={"times": self._limits, **told, "at": now_ms()})

    async def ask(self, question: str) -> str | None:
        """Show that an answer is wanted, and wait for what is sent or mailed next."""
        self._context.tell(needsInput=True, question=question[-2_000:])
        try:
            return await self._inbox.answer()
        finally:
            self._context.tell(needsInput=False, question="")

    async def messages(self) -> AsyncIterator[str]:
        """What is said to it while it works; if its engine cannot hear, that waits until it is done."""
        while self._hears:
            letter = await self._inbox.next()
            yield prompts.from_somebody(letter.sender, letter.text)

    def tell(self, **facts: object) -> None:
        """Bring the record up to date now."""
        self._told_at = time.monotonic()
        self._context.tell(**facts, **self.facts())

    def facts(self) -> dict[str, object]:
        """What is known of the work by now."""
        cost = {} if self._cost is None else {"costUsd": self._cost}
        return {
            "progress": self._progress.to_json(),
            "usage": self._usage(),
            "messages": self._recent.shown(),
            **cost,
        }

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._beat_at >= _BEAT:
            self._beat_at = now
            self._beat()
        if now - self._told_at >= _EVERY:
            self.tell()
            self._context.progress(usage=self._usage(), last_tool_name=self._tool)

    def _usage(self) -> dict[str, int]:
        return {
            "total_tokens": self._progress.tokens,
            "tool_uses": self._progress.tools,
            "duration_ms": round((time.monotonic() - self._began) * 1000),
        }
