"""What an engine tells of its work, passed on: to the transcript, the record, those who follow and can answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque

from taskyard.clock import now_ms
from taskyard.engines.progress import Progress
from taskyard.errors import TaskyardError
from taskyard.kinds.agent_lines import session_in, spoken
from taskyard.kinds.agent_messages import received
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output import Output
from taskyard.runtime.pace import note_limit
from taskyard.runtime.rate_limit import RateLimited
from taskyard.runtime.spending import Spent
from taskyard.turn import LimitFlag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from taskyard.engines.provider import Account
    from taskyard.kinds.agent_budget import Budgets
    from taskyard.kinds.agent_messages import Received
    from taskyard.runtime.context import JobContext

#: Records and events tell of progress at most this often, in seconds; the last word is always written.
_EVERY = 0.5

#: Characters of what it said last that are kept for a summary.
_KEPT = 2_000

#: Messages to the agent that its record keeps, and characters of each; the transcript has what it was told.
_MESSAGES, _LONGEST_MESSAGE = 50, 2_000


class Watch:
    """One agent's watcher: see `taskyard.engines.engine.Watcher`."""

    def __init__(self, context: JobContext, budgets: Budgets, account: Account) -> None:
        self._context = context
        self._budgets = budgets
        self._account = account
        self._flag = LimitFlag(context)
        self._waits_itself = False  # its engine does, in the middle of a turn
        self._progress = Progress()
        self._began = time.monotonic()
        self._cost: float | None = None
        self._cost_before = 0.0  # of turns that are over
        self._cost_beside = 0.0  # of summaries
        self._said = ""
        self.session: str | None = None  #: what its engine calls the conversation, where one can go on with it
        self._limited: dict[str, object] = {}
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()  #: why it may not go on
        self._told_at = 0.0
        self._tool: str | None = None  # that was used last, and is not told yet
        self._telling: asyncio.TimerHandle | None = None
        self._asked: asyncio.Future[str | None] | None = None
        self._messages: deque[dict[str, object]] = deque(maxlen=_MESSAGES)
        self._sent: asyncio.Queue[tuple[str, dict[str, object]] | None] = asyncio.Queue()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @property
    def home(self) -> str:
        """Where the job is."""
        return self._context.home

    def begin(self, prompt: str) -> None:
        """A turn of the engine begins: what it costs comes on top of those before."""
        self._cost_before = self._cost or 0.0
        self.record({"type": "prompt", "text": prompt})

    def record(self, line: Mapping[str, object]) -> None:
        """Write a line of the transcript."""
        if (session := session_in(line)) is not None:
            self.session = session
        if said := spoken(line):
            self._said = said[-_KEPT:]
            self._goes_on()
        self._context.write(json.dumps({"at": now_ms(), **line}) + "\n")

    def forget_session(self, why: str) -> None:
        """The engine's program has lost the conversation: the turn starts a new one."""
        self.session = None
        self.record({"type": "note", "text": f"its conversation is lost, a new one starts: {why[:500]}"})

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        """Count a tool, and remember what it was about."""
        self._goes_on()
        self._progress = self._progress.used_tool(name, given)
        self._tell(name)

    def used_tokens(self, usage: Mapping[str, object]) -> None:
        """Count the tokens of one answer."""
        self._goes_on()
        self._progress = self._progress.used_tokens(usage)
        self._draw()
        self._tell()

    def costs(self, usd: float) -> None:
        """Remember what it has cost so far."""
        if 0 <= usd < float("inf"):
            self._cost = self._cost_before + usd
            self._draw()
            self._tell()

    def costs_beside(self, usd: float) -> None:
        """Count what a summary of its work has cost."""
        if 0 <= usd < float("inf"):
            self._cost_beside += usd
            self._cost = self._cost or 0.0
            self._draw()

    def news(self) -> tuple[tuple[Mapping[str, object], ...], str, int]:
        """What it did and said last, and how many tools it used: what a summary is made from."""
        return self._progress.recent, self._said, self._progress.tools

    def summarise(self, text: str) -> None:
        """Say what it is doing; progress leaves that as it is."""
        if text:
            self._context.tell(summary=text)

    def transcript_end(self, most: int) -> str:
        """The end of the transcript, from a whole line on."""
        text = Output(JobFolder(self._context.home, self._context.id)).tail_bytes(most).text.decode("utf-8", "replace")
        return text.partition("\n")[2] if len(text) >= most else text

    def limited(self, seconds: float, why: str) -> None:
        """Its engine waits for its provider: show that, and hold back all others on the account."""
        self.record({"type": "limited", "seconds": round(seconds, 3), "text": why[:500]})
        now, provider = now_ms(), self._account.provider
        self._waits_itself = True
        self.show_limit(RateLimited(provider, now + round(seconds * 1000), now, why[:500], is_estimate=not seconds))
        with contextlib.suppress(TaskyardError):
            note_limit(self._context.home, self._account.key, seconds, provider=provider, reason=why)

    def show_limit(self, limit: RateLimited | None) -> None:
        """Show that it waits for its provider, or no longer does; its session is on the record from then on."""
        if limit is not None:
            times = self._limited.get("times")
            times = times + 1 if isinstance(times, int) else 1
            seconds = max(limit.until_ms - now_ms(), 0) / 1000
            self._limited = {"times": times, "seconds": round(seconds, 3), "why": limit.reason[:500], "at": now_ms()}
        self._flag.show(limit, **self.facts())

    def end_turn(self) -> None:
        """The engine has ended: whatever is to be waited for now, it does not wait by itself."""
        self._waits_itself = False

    def _goes_on(self) -> None:
        """It is at work again, if it waited in the middle of a turn."""
        if self._waits_itself:
            self._waits_itself = False
            self.show_limit(None)

    async def ask(self, question: str) -> str | None:
        """Show that an answer is wanted, and wait for what is sent next."""
        if self._reading.done():
            return None  # nothing can be sent any more
        self._asked = asyncio.get_running_loop().create_future()
        self._context.tell(needsInput=True, question=question[-2_000:], askedAt=now_ms())
        self._context.ask(question)
        try:
            return await self._asked
        finally:
            self._asked = None
            self._context.tell(needsInput=False, question="", askedAt=None)

    async def messages(self) -> AsyncIterator[str]:
        """What is sent to the agent and answers no question."""
        while (sent := await self._sent.get()) is not None:
            self._told_messages(sent[1])
            yield sent[0]
        self._sent.put_nowait(None)  # for whoever asks in the next turn

    def unread(self) -> list[str]:
        """What was sent and nobody took: the engine was done, or cannot be told anything while it works."""
        found: list[tuple[str, dict[str, object]] | None] = []
        while not self._sent.empty():
            found.append(self._sent.get_nowait())
        if None in found:
            self._sent.put_nowait(None)
        sent = [each for each in found if each is not None]
        self._told_messages(*(message for _, message in sent))
        return [text for text, _ in sent]

    def _received(self, message: Received, *, is_queued: bool) -> dict[str, object]:
        """Put a message on the record; `queued` until the agent gets it."""
        text = message.text.rstrip("\n")
        text = text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
        found: dict[str, object] = {"at": now_ms(), "from": message.sender, "text": text, "queued": is_queued}
        self._messages.append(found)
        self._show_messages()
        return found

    def _told_messages(self, *messages: dict[str, object]) -> None:
        for message in messages:
            message["queued"] = False
        if messages:
            self._show_messages()

    def _show_messages(self) -> None:
        self._context.tell(messages=[dict(message) for message in self._messages])

    def facts(self) -> dict[str, object]:
        """What is known at the end."""
        cost = {} if self._cost is None else {"costUsd": self._cost + self._cost_beside}
        more = {"limited": self._limited, "session": self.session}
        known = {name: value for name, value in more.items() if value}
        return {"progress": self._progress.to_json(), "usage": self._usage(), **cost, **known}

    def _draw(self) -> None:
        """Draw what it used on its budgets; the first that is used up ends it."""
        reason = self._budgets.used(Spent(self._progress.tokens, (self._cost or 0.0) + self._cost_beside))
        if reason and not self.over.done():
            self.over.set_result(reason)

    async def _read(self) -> None:
        async for line in self._context.messages():
            message = received(line)
            if self._asked is not None and not self._asked.done():
                self._received(message, is_queued=False)
                self._asked.set_result(message.text)
            else:
                await self._sent.put((str(message), self._received(message, is_queued=True)))
        await self._sent.put(None)
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)

    def _tell(self, tool: str | None = None) -> None:
        """Bring record and followers up to date, not more often than anybody looks, and not later either."""
        self._tool = tool or self._tool
        wait = self._told_at + _EVERY - time.monotonic()
        if wait <= 0:
            self._tell_now()
        elif self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(wait, self._tell_now)

    def _tell_now(self) -> None:
        self._hold_back()
        self._told_at = time.monotonic()
        self._context.tell(**self.facts())
        self._context.progress(usage=self._usage(), last_tool_name=self._tool)
        self._tool = None

    def _hold_back(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None

    def close(self) -> None:
        """Tell and read nothing more: whoever works has the last word."""
        self._hold_back()
        self._reading.cancel()

    def _usage(self) -> dict[str, int]:
        return self._progress.usage(time.monotonic() - self._began)
