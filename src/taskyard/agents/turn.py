"""Run one engine turn for any kind of agent: wait for rate limits, retry, detect reported failures.

How a turn is handled:

    before     while the account is rate-limited, no turn starts (`jobs.rate_limit`)
    limited    the limit is recorded for all on the account; the turn is retried when it lifts: no attempt is counted
    cut off    a cut stream or a server error is retried with backoff, where the caller wants that
    ended      an answer that reports a failure (`STATUS: failed: …`) is one
"""

from __future__ import annotations

import asyncio
import random
import re
import time

from taskyard.agents.engines.engine import RateLimit, TurnResult
from taskyard.agents.engines.provider import parse_rate_limit
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple
from taskyard.errors import Busy, StorageError
from taskyard.jobs.rate_limit import (
    LIMIT_FACT,
    WAITED_FACT,
    RateLimited,
    RateState,
    RateStateFile,
    record_limit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from taskyard.agents.engines.provider import Account
    from taskyard.config import Settings
    from taskyard.jobs.context import JobContext

#: Values of `on_rate_limit`.
WAIT, STOP = "wait", "stop"

#: Maximum backoff in seconds where a provider names no time: overload passes within minutes.
_LONGEST_PAUSE = 300.0

#: Maximum retries based only on the wording of an error: it may be about something else.
_MOST_GUESSES = 8

#: Jitter after a shared reset time: up to this share of the wait, and at most so many seconds.
_JITTER, _MOST_JITTER = 0.1, 30.0

#: Seconds between reads of the account's record: its end may have moved, or the clock was set.
_POLL_INTERVAL = 2.0

#: Seconds before the record is read again when it is locked; it is locked for microseconds.
_LOCK_RETRY = 0.02

#: Number of last lines of an answer that may contain a failure report.
_REPORT_LINES = 3
_REPORT = re.compile(r"^[\W_]*status[\W_]*:[\W_]*fail(?:ed|ure)?\b[\W_]*(?P<reason>.*?)[*_`]*$", re.IGNORECASE)

#: Instruction for agents to report a failure.
FAILURE_INSTRUCTION = "If it could not be done, end your answer with one last line: `STATUS: failed: REASON`."

#: Start of the prompt that resumes a conversation after a rate limit.
RESUME_PROMPT = "The rate limit that interrupted you has lifted. Continue where you stopped. What you were asked:"


class RateLimitPolicy(NamedTuple):
    """How an agent handles a rate limit."""

    on_limit: str = WAIT
    longest: float = 86_400.0  #: maximum seconds a turn waits in all
    pause: float = 5.0  #: seconds before the first retry where the provider names no time; doubles each time

    @classmethod
    def of(cls, settings: Settings, on_limit: str | None = None) -> RateLimitPolicy:
        """Return the policy from the settings; `on_limit` overrides for one agent."""
        return cls(on_limit or settings.on_rate_limit, settings.rate_limit_wait, settings.rate_limit_retry)


class TurnRunner:
    """The turns of one agent, on one account."""

    def __init__(
        self,
        home: str,
        account: Account,
        policy: RateLimitPolicy,
        *,
        show: Callable[[RateLimited | None], None],
        retries: Sequence[float] = (),
        record: Callable[[dict[str, object]], None] = lambda _: None,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            home: `$TASKYARD_HOME`, which has the record of the account.
            account: The account whose quota the turns use.
            policy: How to handle a rate limit.
            show: Called with the limit the agent waits for, and None when it no longer waits.
            retries: Seconds before each retry of a turn that failed for a transient reason.
            record: Called with a line for the transcript.
        """
        self._home, self._account, self._policy = home, account, policy
        self._show, self._retries, self._record = show, tuple(retries), record
        self._ended = asyncio.Event()
        self._shown: RateLimited | None = None
        self._spread: tuple[float, float] = (0.0, 0.0)  # reset time, and our jitter in seconds

    def end(self) -> None:
        """Stop waiting: the agent must end."""
        self._ended.set()

    async def ended(self) -> None:
        """Return when the agent must end."""
        await self._ended.wait()

    async def take(self, once: Callable[[bool], Awaitable[TurnResult]]) -> TurnResult:
        """Run one turn by `once`, repeated while it is limited or cut off.

        `once(True)` resumes a turn that was limited. The result has a `rate_limit` only if the policy is not
        to wait for it, or the agent must end.
        """
        first: float | None = None  # when it was limited first
        limits, failures, is_resumed, text = 0, 0, False, ""
        while True:
            if (held := await self.clear(first)) is not None:
                return TurnResult(text, rate_limit=held)
            said = apply_reported_failure(await once(is_resumed))
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
        """Wait until the account may be used; return the limit if it is not to be waited for.

        `first`: since when this turn waits, in epoch seconds; default: now.
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
                await self._sleep(min(wait.seconds, _POLL_INTERVAL))
        finally:
            self._shown = None
            self._show(None)
        return None

    def is_limited(self) -> bool:
        """Return whether the account is rate-limited now."""
        return self._wait(begin=False).limited is not None

    def note(self, limit: RateLimit) -> None:
        """Record a limit, so that all on the account wait."""
        self._note(limit, 1)

    def _wait(self, *, begin: bool = True) -> _Wait:
        """Return what to wait for; with `begin`, count a start if that is nothing."""
        try:
            with RateStateFile(self._home, self._account.key, timeout=0.05) as file:
                now = time.time()
                pace = file.read(now)
                seconds = max(pace.until(now), self._jitter_left(pace, now))
                if not seconds and begin and pace.gap_at(now):
                    file.write(pace.started(now))
                return _Wait(seconds, pace.rate_limited(now) or (self._shown if seconds else None))
        except Busy:
            return _Wait(_LOCK_RETRY, self._shown)
        except StorageError:
            return _Wait()  # a failing disk must not block all starts

    def _jitter_left(self, pace: RateState, now: float) -> float:
        """Return seconds until our own jittered moment after the shared reset."""
        if self._shown is None and pace.rests_until <= now:
            return 0.0  # we did not wait for it
        if self._spread[0] != pace.rests_until:
            most = min(_MOST_JITTER, _JITTER * max(pace.rests_until - pace.limited_at, 0.0))
            self._spread = (pace.rests_until, random.uniform(0.0, most))  # noqa: S311 - spreads load, keeps no secret
        return max(pace.rests_until + self._spread[1] - now, 0.0)

    def _limit_of(self, said: TurnResult) -> tuple[RateLimit | None, bool]:
        """Return the limit that a turn ended with, and whether that is only inferred from its wording."""
        if said.rate_limit is not None or not said.error:
            return said.rate_limit, False
        return parse_rate_limit(said.error, provider=self._account.provider, now=time.time()), True

    def _note(self, limit: RateLimit, times: int) -> None:
        now = time.time()
        pause = min(_LONGEST_PAUSE, self._policy.pause * 2 ** min(times - 1, 16)) * random.uniform(0.8, 1.2)  # noqa: S311
        seconds = pause if limit.until_ms is None else max(limit.until_ms / 1000 - now, 0.0)
        is_over = limit.until_ms is not None and seconds < pause and times > 1  # reported as lifted, but limited again
        try:
            record_limit(
                self._home,
                self._account.key,
                pause if is_over else seconds,
                provider=self._named(limit).provider,
                reason=limit.reason,
                is_estimate=limit.until_ms is None or is_over,
            )
        except (Busy, StorageError):
            pass  # no shorter wait follows: it is limited again at once
        self._record({"type": "limited", "seconds": round(seconds, 3), "text": limit.reason[:500]})

    def _named(self, limit: RateLimit) -> RateLimit:
        return limit if limit.provider else limit._replace(provider=self._account.provider)

    def _refusal(self, limit: RateLimited, *, is_too_long: bool) -> RateLimit:
        """Return the limit with the reason why it is not waited for."""
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
    """The rate limit a job waits for, in its facts.

    Viewers read it, and so does the job's supervisor, which pauses its timers meanwhile.
    """

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._waited = 0
        self._since: int | None = None

    def show(self, limit: RateLimited | None, **facts: object) -> None:
        """Set the flag, or clear it if it is set; write other facts with it."""
        if limit is None and self._since is None:
            return
        now = now_ms()
        if self._since is not None:
            self._waited += max(now - self._since, 0)
        self._since = None if limit is None else now
        flag = None if limit is None else {**limit.to_json(), "waitsSinceMs": now, "task": facts.pop("task", None)}
        facts.pop("task", None)
        self._context.tell(**{LIMIT_FACT: flag, WAITED_FACT: self._waited}, **facts)
        self._context.progress(rate_limited=None if limit is None else limit.state())

    @property
    def is_set(self) -> bool:
        """Whether the job is shown as waiting."""
        return self._since is not None


class _Wait(NamedTuple):
    """What a turn waits for."""

    seconds: float = 0.0
    limited: RateLimited | None = None


def apply_reported_failure(said: TurnResult) -> TurnResult:
    """Return the turn as failed if its answer reports a failure."""
    if said.is_complete and (reason := reported_failure(said.text)):
        return said._replace(error=f"it reports a failure: {reason}")
    return said


def reported_failure(answer: str) -> str:
    r"""Return the reason in a last line `STATUS: failed: REASON`, in any markup; empty if there is none.

    >>> reported_failure("I tried.\n\n**STATUS: failed:** the file is read-only")
    'the file is read-only'
    """
    lines = [line.strip() for line in answer.rsplit("\n", 20)[-20:] if line.strip()]
    for line in reversed(lines[-_REPORT_LINES:]):
        if (found := _REPORT.match(line[:2000])) is not None:
            return found["reason"].strip() or "it gives no reason"
    return ""
