"""Recorder of a background agent: transcript, job record, budgets, questions and messages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque

from taskyard.agents.engines.engine import Progress, assistant_text, session_in
from taskyard.agents.turn import LimitFlag
from taskyard.core.system import now_ms
from taskyard.errors import TaskyardError
from taskyard.jobs.agent_reports import parse_message
from taskyard.jobs.budget import TokenUsage
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.output import Output
from taskyard.jobs.rate_limit import RateLimited, record_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from taskyard.agents.agent.run import Budgets
    from taskyard.agents.engines.provider import Account
    from taskyard.jobs.agent_reports import AgentMessage
    from taskyard.jobs.context import JobContext

#: Minimum seconds between updates of record and events; the final state is always written.
_UPDATE_INTERVAL = 0.5

#: Characters of the last text kept for a summary.
_LONGEST_LAST_TEXT = 2_000

#: Messages to the agent kept in its record, and characters of each; the transcript has what was delivered.
_MOST_MESSAGES, _LONGEST_MESSAGE = 50, 2_000


class AgentRecorder:
    """The recorder of one agent: see `taskyard.agents.engines.engine.Recorder`."""

    def __init__(self, context: JobContext, budgets: Budgets, account: Account) -> None:
        self._context = context
        self._budgets = budgets
        self._account = account
        self._flag = LimitFlag(context)
        self._engine_waits = False  # its engine waits for a rate limit in the middle of a turn
        self._progress = Progress()
        self._began = time.monotonic()
        self._cost: float | None = None
        self._cost_before = 0.0  # of earlier turns
        self._summary_cost = 0.0  # of summaries
        self._said = ""
        self.session: str | None = None  #: the engine's conversation id, where it can be continued
        self._limited: dict[str, object] = {}
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()  #: set when over budget
        self._updated_at = 0.0
        self._tool: str | None = None  # last tool used, not reported yet
        self._pending_update: asyncio.TimerHandle | None = None
        self._asked: asyncio.Future[str | None] | None = None
        self._messages: deque[dict[str, object]] = deque(maxlen=_MOST_MESSAGES)
        self._sent: asyncio.Queue[tuple[str, dict[str, object]] | None] = asyncio.Queue()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @property
    def home(self) -> str:
        """`$TASKYARD_HOME` of the job."""
        return self._context.home

    def begin(self, prompt: str) -> None:
        """Start a turn of the engine: its cost is added to that of earlier turns."""
        self._cost_before = self._cost or 0.0
        self.record({"type": "prompt", "text": prompt})

    def record(self, line: Mapping[str, object]) -> None:
        """Write a line of the transcript."""
        if (session := session_in(line)) is not None:
            self.session = session
        if said := assistant_text(line):
            self._said = said[-_LONGEST_LAST_TEXT:]
            self._goes_on()
        self._context.write(json.dumps({"at": now_ms(), **line}) + "\n")

    def forget_session(self, why: str) -> None:
        """Forget a conversation that the engine's program has lost: the turn starts a new one."""
        self.session = None
        self.record({"type": "note", "text": f"its conversation is lost, a new one starts: {why[:500]}"})

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        """Count a tool use."""
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
        """Set the cost of this turn so far."""
        if 0 <= usd < float("inf"):
            self._cost = self._cost_before + usd
            self._draw()
            self._tell()

    def add_summary_cost(self, usd: float) -> None:
        """Add the cost of a summary."""
        if 0 <= usd < float("inf"):
            self._summary_cost += usd
            self._cost = self._cost or 0.0
            self._draw()

    def news(self) -> tuple[tuple[Mapping[str, object], ...], str, int]:
        """Return the last actions, the last text and the tool count, as input of a summary."""
        return self._progress.recent, self._said, self._progress.tools

    def set_summary(self, text: str) -> None:
        """Set the summary in the record; progress updates do not change it."""
        if text:
            self._context.tell(summary=text)

    def transcript_end(self, most: int) -> str:
        """Return the end of the transcript, starting at a whole line."""
        text = Output(JobPaths(self._context.home, self._context.id)).tail_bytes(most).text.decode("utf-8", "replace")
        return text.partition("\n")[2] if len(text) >= most else text

    def limited(self, seconds: float, why: str) -> None:
        """Show that the engine waits for a rate limit, and make all others on the account wait."""
        self.record({"type": "limited", "seconds": round(seconds, 3), "text": why[:500]})
        now, provider = now_ms(), self._account.provider
        self._engine_waits = True
        self.show_limit(RateLimited(provider, now + round(seconds * 1000), now, why[:500], is_estimate=not seconds))
        with contextlib.suppress(TaskyardError):
            record_limit(self._context.home, self._account.key, seconds, provider=provider, reason=why)

    def show_limit(self, limit: RateLimited | None) -> None:
        """Show that it waits for a rate limit, or no longer does; this also records its session."""
        if limit is not None:
            times = self._limited.get("times")
            times = times + 1 if isinstance(times, int) else 1
            seconds = max(limit.until_ms - now_ms(), 0) / 1000
            self._limited = {"times": times, "seconds": round(seconds, 3), "why": limit.reason[:500], "at": now_ms()}
        self._flag.show(limit, **self.facts())

    def end_turn(self) -> None:
        """End the engine's turn: later waits are not its own."""
        self._engine_waits = False

    def _goes_on(self) -> None:
        """Clear a rate limit shown in the middle of a turn: the engine works again."""
        if self._engine_waits:
            self._engine_waits = False
            self.show_limit(None)

    async def ask(self, question: str) -> str | None:
        """Set `needs_input` and wait for the next message sent."""
        if self._reading.done():
            return None  # the job's input is closed
        self._asked = asyncio.get_running_loop().create_future()
        self._context.tell(needsInput=True, question=question[-2_000:], askedAt=now_ms())
        self._context.ask(question)
        try:
            return await self._asked
        finally:
            self._asked = None
            self._context.tell(needsInput=False, question="", askedAt=None)

    async def messages(self) -> AsyncIterator[str]:
        """Yield messages sent to the agent that answer no question."""
        while (sent := await self._sent.get()) is not None:
            self._mark_delivered(sent[1])
            yield sent[0]
        self._sent.put_nowait(None)  # for the reader in the next turn

    def unread(self) -> list[str]:
        """Return messages sent but not read: the engine was done, or takes none while it works."""
        found: list[tuple[str, dict[str, object]] | None] = []
        while not self._sent.empty():
            found.append(self._sent.get_nowait())
        if None in found:
            self._sent.put_nowait(None)
        sent = [each for each in found if each is not None]
        self._mark_delivered(*(message for _, message in sent))
        return [text for text, _ in sent]

    def _received(self, message: AgentMessage, *, is_queued: bool) -> dict[str, object]:
        """Add a message to the record; `queued` until it is delivered."""
        text = message.text.rstrip("\n")
        text = text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
        found: dict[str, object] = {"at": now_ms(), "from": message.sender, "text": text, "queued": is_queued}
        self._messages.append(found)
        self._show_messages()
        return found

    def _mark_delivered(self, *messages: dict[str, object]) -> None:
        for message in messages:
            message["queued"] = False
        if messages:
            self._show_messages()

    def _show_messages(self) -> None:
        self._context.tell(messages=[dict(message) for message in self._messages])

    def facts(self) -> dict[str, object]:
        """Return the facts for the record."""
        cost = {} if self._cost is None else {"costUsd": self._cost + self._summary_cost}
        more = {"limited": self._limited, "session": self.session}
        known = {name: value for name, value in more.items() if value}
        return {"progress": self._progress.to_json(), "usage": self._usage(), **cost, **known}

    def _draw(self) -> None:
        """Charge usage to its budgets; the first that is used up ends the agent."""
        reason = self._budgets.used(TokenUsage(self._progress.tokens, (self._cost or 0.0) + self._summary_cost))
        if reason and not self.over.done():
            self.over.set_result(reason)

    async def _read(self) -> None:
        async for line in self._context.messages():
            message = parse_message(line)
            if self._asked is not None and not self._asked.done():
                self._received(message, is_queued=False)
                self._asked.set_result(message.text)
            else:
                await self._sent.put((str(message), self._received(message, is_queued=True)))
        await self._sent.put(None)
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)

    def _tell(self, tool: str | None = None) -> None:
        """Update record and events, at most once per interval, and never later than one interval."""
        self._tool = tool or self._tool
        wait = self._updated_at + _UPDATE_INTERVAL - time.monotonic()
        if wait <= 0:
            self._tell_now()
        elif self._pending_update is None:
            self._pending_update = asyncio.get_running_loop().call_later(wait, self._tell_now)

    def _tell_now(self) -> None:
        self._cancel_update()
        self._updated_at = time.monotonic()
        self._context.tell(**self.facts())
        self._context.progress(usage=self._usage(), last_tool_name=self._tool)
        self._tool = None

    def _cancel_update(self) -> None:
        if self._pending_update is not None:
            self._pending_update.cancel()
            self._pending_update = None

    def close(self) -> None:
        """Stop updating and reading."""
        self._cancel_update()
        self._reading.cancel()

    def _usage(self) -> dict[str, int]:
        return self._progress.usage(time.monotonic() - self._began)
