"""What a teammate's engine tells of its work: to the transcript, the job's record, the team, and those who look on."""

from __future__ import annotations

import contextlib
import json
import time

from taskyard.clock import now_ms
from taskyard.engines.progress import Progress
from taskyard.errors import TaskyardError
from taskyard.kinds.agent_lines import session_in
from taskyard.runtime import families
from taskyard.runtime.pace import note_limit
from taskyard.runtime.rate_limit import RateLimited
from taskyard.teamwork import prompts
from taskyard.teamwork.messages import Recent
from taskyard.turn import LimitFlag
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from taskyard.engines.provider import Account
    from taskyard.runtime.context import JobContext
    from taskyard.teamwork.messages import Inbox

#: The record tells of progress at most this often, in seconds; the last word is always written.
_EVERY = 1.0

#: The team hears that somebody gets on this often, in seconds: well within the minute after which it looks stalled.
_BEAT = 15.0


class _Account(NamedTuple):
    """Where a turn began."""

    task: str | None = None
    began: float = 0.0
    progress: Progress = Progress()
    cost: float | None = None


class Watch:
    """One teammate's watcher: see `taskyard.engines.engine.Watcher`."""

    def __init__(
        self, context: JobContext, inbox: Inbox, *, hears: bool, account: Account, beat: Callable[[], None]
    ) -> None:
        """`hears`: its engine takes messages while it works; `beat` lets the team know that it gets on."""
        self._context = context
        self._account = account
        self._flag = LimitFlag(context)
        self._waits_itself = False  # its engine does, in the middle of a turn
        self._asks_for: str | None = None  # the task in hand, as others know it: release/7
        self.session: str | None = None  #: what its engine calls the conversation about the task in hand
        self._inbox = inbox
        self._hears = hears
        self._beat = beat
        self._progress = Progress()
        self._recent = Recent()
        self._began = time.monotonic()
        self._cost: float | None = None
        self._cost_before = 0.0  # of what its engine was asked before: each time that begins to count anew
        self._turn = _Account()
        self._told_at = 0.0
        self._beat_at = time.monotonic()
        self._tool: str | None = None

    def begin(self, prompt: str, task: str | None) -> None:
        """A turn begins, on a task (`release/7`) or on something else: a conversation of its own."""
        self._progress = self._progress.next_conversation()
        self._turn = _Account(task, time.monotonic(), self._progress, self._cost)
        self._asks_for = task
        if task is not None:
            families.note_part(self._context.home, task, self._context.id, self._part(task))
        self.record({"type": "prompt", "text": prompt, **({"task": task.rpartition("/")[2]} if task else {})})

    def end(self) -> None:
        """The turn is over: what it took is its task's."""
        if (task := self._turn.task) is not None:
            families.note_part(self._context.home, task, self._context.id, self._part(task))
            self._turn = _Account()

    def _part(self, task: str) -> dict[str, object]:
        """What this task took in all, by this teammate: turns before this one included."""
        turn = self._turn
        before = families.part_of(self._context.home, task, self._context.id) or {}
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
        """Its engine waits for its provider: show that, and hold back all others on the account."""
        self.record({"type": "limited", "seconds": round(seconds, 3), "text": why[:500]})
        now, provider = now_ms(), self._account.provider
        self._waits_itself = True
        self.show_limit(RateLimited(provider, now + round(seconds * 1000), now, why[:500], is_estimate=not seconds))
        with contextlib.suppress(TaskyardError):
            note_limit(self._context.home, self._account.key, seconds, provider=provider, reason=why)

    def forget_session(self, why: str) -> None:
        """The engine's program has lost the conversation: the turn starts a new one."""
        self.session = None
        self.record({"type": "note", "text": f"its conversation is lost, a new one starts: {why[:500]}"})

    def end_run(self) -> None:
        """Its engine has ended: whatever is to be waited for now, it does not wait by itself."""
        self._waits_itself = False

    @property
    def is_limited(self) -> bool:
        """Whether it is shown as waiting for its provider."""
        return self._flag.is_set

    def show_limit(self, limit: RateLimited | None) -> None:
        """Show that it waits for its provider, or no longer does."""
        self._flag.show(limit, task=self._turn.task, session=self.session, **self.facts())

    def _goes_on(self) -> None:
        """It is at work again, if it waited in the middle of a turn."""
        if self._waits_itself:
            self._waits_itself = False
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
        """Count a tool, and remember what it was about."""
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
        """Remember what it has cost so far."""
        if 0 <= usd < float("inf"):
            self._cost = self._cost_before + usd
            self._tell()

    async def ask(self, question: str) -> str | None:
        """Show that an answer is wanted, and wait for what is sent or mailed next."""
        about = {"askedAt": now_ms(), "askedFor": self._asks_for}
        self._context.tell(needsInput=True, question=question[-2_000:], **about)
        self._context.ask(question)
        try:
            return await self._inbox.answer()
        finally:
            self._context.tell(needsInput=False, question="", askedAt=None, askedFor=None)

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
        return self._progress.usage(time.monotonic() - self._began)
