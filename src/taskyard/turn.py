"""
A turn of an engine, as every kind of agent takes it: it outlasts rate limits, and counts as completed only if it is.

    before     while the account is rate-limited, nobody begins (`runtime.pace`)
    limited    the limit is noted for all on the account; the turn is taken again when it lifts: no attempt is counted
    cut off    a cut stream or a server error is tried again after a while, where the caller wants that
    ended      an answer that reports a failure (`STATUS: failed: …`) is one
"""

from __future__ import annotations

import asyncio
import random
import re
import time

from taskyard.clock import now_ms
from taskyard.engines.engine import RateLimit, Said
from taskyard.engines.limit_text import limit_in
from taskyard.errors import Busy, StorageError
from taskyard.runtime.pace import Pace, PaceFile, note_limit
from taskyard.runtime.rate_limit import FACT, WAITED, RateLimited
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from taskyard.config import Settings
    from taskyard.engines.provider import Account
    from taskyard.runtime.context import JobContext

#: What `on_rate_limit` can be.
WAIT, STOP = "wait", "stop"

#: The longest pause where a provider names no time, in seconds: overload passes within minutes.
_LONGEST_PAUSE = 300.0

#: How often a turn is taken again on the mere wording of its error: that may be about something else.
_MOST_GUESSES = 8

#: Everybody waits for the same moment: each comes up to this share of the wait later, and at most so many seconds.
_SPREAD, _MOST_SPREAD = 0.1, 30.0

#: Seconds between two looks at the account's record: it may have a later end by then, or somebody set the clock.
_LOOK = 2.0

#: Whoever holds the record does so for microseconds; so soon it is looked at again.
_SOON = 0.02

#: The last lines of an answer, in which a report of failure stands.
_REPORT_LINES = 3
_REPORT = re.compile(r"^[\W_]*status[\W_]*:[\W_]*fail(?:ed|ure)?\b[\W_]*(?P<reason>.*?)[*_`]*$", re.IGNORECASE)

#: What an agent is told to report a failure by.
HOW_TO_FAIL = "If it could not be done, end your answer with one last line: `STATUS: failed: REASON`."

#: What begins the prompt of a conversation that goes on after a limit.
RESUMED = "The rate limit that interrupted you has lifted. Continue where you stopped. What you were asked:"


class Policy(NamedTuple):
    """What a rate limit means for an agent."""

    on_limit: str = WAIT
    longest: float = 86_400.0  #: seconds a turn waits in all
    pause: float = 5.0  #: seconds before the first retry where the provider names no time; doubles each time

    @classmethod
    def of(cls, settings: Settings, on_limit: str | None = None) -> Policy:
        """By the settings, and by what one agent was started with."""
        return cls(on_limit or settings.on_rate_limit, settings.rate_limit_wait, settings.rate_limit_retry)


class Turns:
    """The turns of one agent, on one account."""

    def __init__(
        self,
        home: str,
        account: Account,
        policy: Policy,
        *,
        show: Callable[[RateLimited | None], None],
        retries: Sequence[float] = (),
        record: Callable[[dict[str, object]], None] = lambda _: None,
    ) -> None:
        """Nothing is done yet.

        Args:
            home: Taskyard's, where the record of the account is.
            account: Whose quota the turns use.
            policy: What a rate limit means here.
            show: Gets what the agent waits for, and None when it waits no longer.
            retries: Seconds before each retry of a turn that failed for a passing reason.
            record: Gets a line for the transcript.
        """
        self._home, self._account, self._policy = home, account, policy
        self._show, self._retries, self._record = show, tuple(retries), record
        self._ended = asyncio.Event()
        self._shown: RateLimited | None = None
        self._spread: tuple[float, float] = (0.0, 0.0)  # of which moment, and by how many seconds

    def end(self) -> None:
        """Wait for nothing any more: the agent is to end."""
        self._ended.set()

    async def ended(self) -> None:
        """Return when the agent is to end."""
        await self._ended.wait()

    async def take(self, once: Callable[[bool], Awaitable[Said]]) -> Said:
        """Take one turn by `once`, as often as it is limited or cut off.

        `once(True)` goes on with a turn that was limited. What is returned has a `rate_limit` only if the policy is
        not to wait for it, or the agent is to end.
        """
        first: float | None = None  # when it was limited first
        limits, failures, is_resumed, text = 0, 0, False, ""
        while True:
            if (held := await self.clear(first)) is not None:
                return Said(text, rate_limit=held)
            said = judged(await once(is_resumed))
            limit, is_guess = self._limit_of(said)
            if limit is None:
                self._show(None)
            if limit is not None and not (is_guess and limits >= _MOST_GUESSES):
                first = time.time() if first is None else first
                limits, is_resumed = limits + 1, True
                text = said.text
                self._note(limit, limits)
            elif said.is_retryable and failures < len(self._retries) and not self._ended.is_set():
                delay, failures = self._retries[failures], failures + 1
                self._record({"type": "retry", "text": said.failure, "after": delay})
                await self._sleep(delay)
            else:
                return said

    async def clear(self, first: float | None = None) -> RateLimit | None:
        """Wait until the account may be used; the limit, if it is not to be waited for.

        `first`: since when this turn waits, in epoch seconds; now if not given.
        """
        began = time.time() if first is None else first
        try:
            while (wait := self._wait()).seconds:
                if (limit := wait.limited) is not None:
                    is_too_long = limit.until_ms / 1000 > began + self._policy.longest
                    if self._policy.on_limit == STOP or is_too_long or self._ended.is_set():
                        return self._refusal(limit, is_too_long=is_too_long)
                    self._tell(limit)
                if self._ended.is_set():
                    break
                await self._sleep(min(wait.seconds, _LOOK))
        finally:
            self._shown = None
            self._show(None)
        return None

    def is_limited(self) -> bool:
        """Whether the account is rate-limited now."""
        return self._wait(begin=False).limited is not None

    def note(self, limit: RateLimit) -> None:
        """Hold back everybody on the account."""
        self._note(limit, 1)

    def _wait(self, *, begin: bool = True) -> _Wait:
        """What there is to wait for; with `begin`, a start is counted if that is nothing."""
        try:
            with PaceFile(self._home, self._account.key, timeout=0.05) as file:
                now = time.time()
                pace = file.read(now)
                seconds = max(pace.until(now), self._late(pace, now))
                if not seconds and begin and pace.gap_at(now):
                    file.write(pace.started(now))
                return _Wait(seconds, pace.rate_limited(now) or (self._shown if seconds else None))
        except Busy:
            return _Wait(_SOON, self._shown)
        except StorageError:
            return _Wait()  # a disk that refuses is no reason to begin nothing

    def _late(self, pace: Pace, now: float) -> float:
        """Seconds until our own moment after the reset, which everybody waits for."""
        if self._shown is None and pace.rests_until <= now:
            return 0.0  # we did not wait for it
        if self._spread[0] != pace.rests_until:
            most = min(_MOST_SPREAD, _SPREAD * max(pace.rests_until - pace.limited_at, 0.0))
            self._spread = (pace.rests_until, random.uniform(0.0, most))  # noqa: S311 - spreads load, keeps no secret
        return max(pace.rests_until + self._spread[1] - now, 0.0)

    def _limit_of(self, said: Said) -> tuple[RateLimit | None, bool]:
        """The limit that a turn ended with, and whether its wording alone says so."""
        if said.rate_limit is not None or not said.error:
            return said.rate_limit, False
        return limit_in(said.error, provider=self._account.provider, now=time.time()), True

    def _note(self, limit: RateLimit, times: int) -> None:
        now = time.time()
        pause = min(_LONGEST_PAUSE, self._policy.pause * 2 ** min(times - 1, 16)) * random.uniform(0.8, 1.2)  # noqa: S311
        seconds = pause if limit.until_ms is None else max(limit.until_ms / 1000 - now, 0.0)
        is_over = limit.until_ms is not None and seconds < pause and times > 1  # it lifted, they say, and did not
        try:
            note_limit(
                self._home,
                self._account.key,
                pause if is_over else seconds,
                provider=self._named(limit).provider,
                reason=limit.reason,
                is_estimate=limit.until_ms is None or is_over,
            )
        except (Busy, StorageError):
            pass  # this one waits no shorter: it is limited again at once
        self._record({"type": "limited", "seconds": round(seconds, 3), "text": limit.reason[:500]})

    def _named(self, limit: RateLimit) -> RateLimit:
        return limit if limit.provider else limit._replace(provider=self._account.provider)

    def _refusal(self, limit: RateLimited, *, is_too_long: bool) -> RateLimit:
        """The limit in words that say why it is not waited for."""
        why = f"; longer than rate_limit_wait ({self._policy.longest:g} s)" if is_too_long else ""
        return RateLimit(limit.provider, f"{limit.words()}{why}: {limit.reason}", limit.until_ms)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            pass

    def _tell(self, limit: RateLimited) -> None:
        if limit != self._shown:
            self._shown = limit
            self._show(limit)


class LimitFlag:
    """What a job waits for, in its facts: seen by all who look, and by its keeper, whose timers pause meanwhile."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._waited = 0
        self._since: int | None = None

    def show(self, limit: RateLimited | None, **facts: object) -> None:
        """Set the flag, or take it away if it is set; with other facts that are to be known by then."""
        if limit is None and self._since is None:
            return
        now = now_ms()
        if self._since is not None:
            self._waited += max(now - self._since, 0)
        self._since = None if limit is None else now
        flag = None if limit is None else {**limit.to_json(), "waitsSinceMs": now, "task": facts.pop("task", None)}
        facts.pop("task", None)
        self._context.tell(**{FACT: flag, WAITED: self._waited}, **facts)
        self._context.progress(rate_limited=None if limit is None else limit.state())

    @property
    def is_set(self) -> bool:
        """Whether the job is shown as waiting."""
        return self._since is not None


class _Wait(NamedTuple):
    """What a turn waits for."""

    seconds: float = 0.0
    limited: RateLimited | None = None


def judged(said: Said) -> Said:
    """A turn as its answer judges it: one that reports a failure has failed."""
    if said.is_complete and (reason := reported_failure(said.text)):
        return said._replace(error=f"it reports a failure: {reason}")
    return said


def reported_failure(answer: str) -> str:
    r"""The reason in a last line `STATUS: failed: REASON`, however it is set; empty if the answer reports none.

    >>> reported_failure("I tried.\n\n**STATUS: failed:** the file is read-only")
    'the file is read-only'
    """
    lines = [line.strip() for line in answer.rsplit("\n", 20)[-20:] if line.strip()]
    for line in reversed(lines[-_REPORT_LINES:]):
        if (found := _REPORT.match(line[:2000])) is not None:
            return found["reason"].strip() or "it does not say why"
    return ""
