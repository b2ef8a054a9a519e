"""Recorder of a teammate: writes the transcript and the job record, reports progress to the team."""

from __future__ import annotations

import contextlib
import json
import time

from taskyard.agents.engines.engine import Progress, session_in
from taskyard.agents.teammate import rules
from taskyard.agents.teammate.mail import RecentMessages
from taskyard.agents.turn import LimitFlag
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple
from taskyard.errors import TaskyardError
from taskyard.jobs import query
from taskyard.jobs.rate_limit import RateLimited, record_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from taskyard.agents.engines.provider import Account
    from taskyard.agents.teammate.mail import Inbox
    from taskyard.jobs.context import JobContext

#: Minimum seconds between updates of the record; the final state is always written.
_UPDATE_INTERVAL = 1.0

#: Seconds between heartbeats to the team: well within the minute after which a member counts as stalled.
_HEARTBEAT_INTERVAL = 15.0


class _TurnStart(NamedTuple):
    """Counters at the start of a turn."""

    task: str | None = None
    began: float = 0.0
    progress: Progress = Progress()
    cost: float | None = None


class TeammateRecorder:
    """The recorder of one teammate: see `taskyard.agents.engines.engine.Recorder`."""

    def __init__(
        self, context: JobContext, inbox: Inbox, *, hears: bool, account: Account, heartbeat: Callable[[], None]
    ) -> None:
        """Create a recorder.

        `hears`: its engine takes messages while it works. `heartbeat` reports progress to the team.
        """
        self._context = context
        self._account = account
        self._flag = LimitFlag(context)
        self._engine_waits = False  # its engine waits for a rate limit in the middle of a turn
        self._asked_for: str | None = None  # the current task as `list/id`: release/7
        self.session: str | None = None  #: the engine's id of the conversation about the current task
        self._inbox = inbox
        self._hears = hears
        self._beat = heartbeat
        self._progress = Progress()
        self._recent = RecentMessages()
        self._began = time.monotonic()
        self._cost: float | None = None
        self._cost_before = 0.0  # of earlier engine runs: each one counts from zero
        self._turn = _TurnStart()
        self._updated_at = 0.0
        self._heartbeat_at = time.monotonic()
        self._tool: str | None = None

    def begin(self, prompt: str, task: str | None) -> None:
        """Start a turn, on a task (`release/7`) or something else: a separate conversation."""
        self._progress = self._progress.next_conversation()
        self._turn = _TurnStart(task, time.monotonic(), self._progress, self._cost)
        self._asked_for = task
        if task is not None:
            query.record_part(self._context.home, task, self._context.id, self._part(task))
        self.record({"type": "prompt", "text": prompt, **({"task": task.rpartition("/")[2]} if task else {})})

    def end(self) -> None:
        """End the turn and charge its usage to its task."""
        if (task := self._turn.task) is not None:
            query.record_part(self._context.home, task, self._context.id, self._part(task))
            self._turn = _TurnStart()

    def _part(self, task: str) -> dict[str, object]:
        """Return this teammate's total usage for the task, earlier turns included."""
        turn = self._turn
        before = query.read_part(self._context.home, task, self._context.id) or {}
        took: dict[str, float] = {
            "total_tokens": self._progress.tokens - turn.progress.tokens,
            "tool_uses": self._progress.tools - turn.progress.tools,
            "duration_ms": round((time.monotonic() - turn.began) * 1000),
        }
        if self._cost is not None:
            took["costUsd"] = self._cost - (turn.cost or 0.0)
        known = {name: value for name, value in before.items() if isinstance(value, (int, float))}
        return {name: value + known.get(name, 0) for name, value in {**dict.fromkeys(known, 0), **took}.items()}

    def limited(self, seconds: float, why: str) -> None:
        """Show that the engine waits for a rate limit, and make all others on the account wait."""
        self.record({"type": "limited", "seconds": round(seconds, 3), "text": why[:500]})
        now, provider = now_ms(), self._account.provider
        self._engine_waits = True
        self.show_limit(RateLimited(provider, now + round(seconds * 1000), now, why[:500], is_estimate=not seconds))
        with contextlib.suppress(TaskyardError):
            record_limit(self._context.home, self._account.key, seconds, provider=provider, reason=why)

    def forget_session(self, why: str) -> None:
        """Forget a conversation that the engine's program has lost: the turn starts a new one."""
        self.session = None
        self.record({"type": "note", "text": f"its conversation is lost, a new one starts: {why[:500]}"})

    def end_run(self) -> None:
        """End the engine's run: later waits are not its own."""
        self._engine_waits = False

    @property
    def is_limited(self) -> bool:
        """Whether it is shown as waiting for a rate limit."""
        return self._flag.is_set

    def show_limit(self, limit: RateLimited | None) -> None:
        """Show that it waits for a rate limit, or no longer does."""
        self._flag.show(limit, task=self._turn.task, session=self.session, **self.facts())

    def _goes_on(self) -> None:
        """Clear a rate limit shown in the middle of a turn: the engine works again."""
        if self._engine_waits:
            self._engine_waits = False
            self.show_limit(None)

    def record(self, line: Mapping[str, object]) -> None:
        """Write a line of the transcript."""
        if line.get("type") in ("prompt", "retry"):
            self._cost_before = self._cost or 0.0
        if (session := session_in(line)) is not None:
            self.session = session
        if line.get("type") == "assistant":
            self._goes_on()
        self._context.write(json.dumps({"at": now_ms(), **line}, default=str) + "\n")
        self._recent.add(line)
        self._tell()

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        """Count a tool use."""
        self._goes_on()
        self._progress = self._progress.used_tool(name, given)
        self._tool = name
        self._tell()

    def used_tokens(self, usage: Mapping[str, object]) -> None:
        """Count the tokens of one answer."""
        self._goes_on()
        self._progress = self._progress.used_tokens(usage)
        self._tell()

    def costs(self, usd: float) -> None:
        """Set the cost of this run so far."""
        if 0 <= usd < float("inf"):
            self._cost = self._cost_before + usd
            self._tell()

    async def ask(self, question: str) -> str | None:
        """Set `needs_input` and wait for the next message sent or mailed."""
        about = {"askedAt": now_ms(), "askedFor": self._asked_for}
        self._context.tell(needsInput=True, question=question[-2_000:], **about)
        self._context.ask(question)
        try:
            return await self._inbox.answer()
        finally:
            self._context.tell(needsInput=False, question="", askedAt=None, askedFor=None)

    async def messages(self) -> AsyncIterator[str]:
        """Yield messages sent while it works; if its engine takes none, they wait until it is done."""
        while self._hears:
            letter = await self._inbox.next()
            yield rules.message_prompt(letter.sender, letter.text)

    def tell(self, **facts: object) -> None:
        """Update the record now."""
        self._updated_at = time.monotonic()
        self._context.tell(**facts, **self.facts())

    def facts(self) -> dict[str, object]:
        """Return the facts for the record."""
        cost = {} if self._cost is None else {"costUsd": self._cost}
        return {
            "progress": self._progress.to_json(),
            "usage": self._usage(),
            "messages": self._recent.shown(),
            **cost,
        }

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._heartbeat_at >= _HEARTBEAT_INTERVAL:
            self._heartbeat_at = now
            self._beat()
        if now - self._updated_at >= _UPDATE_INTERVAL:
            self.tell()
            self._context.progress(usage=self._usage(), last_tool_name=self._tool)

    def _usage(self) -> dict[str, int]:
        return self._progress.usage(time.monotonic() - self._began)
