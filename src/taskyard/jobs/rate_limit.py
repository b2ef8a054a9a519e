"""Provider rate limits: shared state per account with backoff, and the fact of a job that waits.

The status of a waiting job does not change (`running` once it has begun: B-03 allows no way back); every
view shows `pending: rate-limited by anthropic until 04:50`, worded here.

Each refusal without a time (429, 529) doubles the gap between two starts on the account; without refusals
the gap halves every minute until it is gone. If the provider states when its limit ends, no agent starts
before. This applies to all processes of a user, and outlives them: the state is one small record in
`slots/pace-<account>`, changed under a kernel lock. Its times are wall clock times, as a provider's are.
"""

from __future__ import annotations

import json
import os
import time

from taskyard.core.files import make_private_folder, storage_error
from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple, as_object, as_text
from taskyard.storage.locks import RangeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


#: Waits below the first are shown with seconds, above the second with the day; in milliseconds.
_SHORT_WAIT, _LONG_WAIT = 600_000, 20 * 3_600_000

#: Job facts: the current rate limit, and the total wait in milliseconds.
LIMIT_FACT, WAITED_FACT = "rateLimited", "rateLimitedMs"

#: Fact of a job that ended because it was not to wait, or not for so long.
STOPPED_FACT = "stoppedByRateLimit"

_MAX_INT = 1 << 53


class RateLimited(NamedTuple):
    """The rate limit a job waits for."""

    provider: str
    until_ms: int  #: epoch ms
    since_ms: int  #: epoch ms: when the limit was hit
    reason: str = ""  #: the provider's message
    is_estimate: bool = False  #: the provider stated no time: this is the next attempt

    def words(self) -> str:
        """Return it in words: `rate-limited by anthropic until 04:50`."""
        when = ", next try at" if self.is_estimate else " until"
        return f"rate-limited by {escape_control(self.provider) or 'its provider'}{when} {self._moment()}"

    def state(self) -> str:
        """Return it as a state: `pending: rate-limited by anthropic until 04:50`."""
        return f"pending: {self.words()}"

    def to_json(self) -> dict[str, object]:
        """Return it as stored in records and facts."""
        return {
            "provider": self.provider,
            "untilMs": self.until_ms,
            "sinceMs": self.since_ms,
            "reason": self.reason,
            "isEstimate": self.is_estimate,
        }

    def _moment(self) -> str:
        """Format the end in the local time zone: with seconds for a short wait, with the day for a long one."""
        wait = self.until_ms - self.since_ms
        form = "%H:%M:%S" if wait < _SHORT_WAIT else "%H:%M" if wait < _LONG_WAIT else "%a %d %b %H:%M"
        try:
            return time.strftime(form, time.localtime(-(-self.until_ms // 1000)))
        except (OverflowError, ValueError, OSError):
            return "?"


def parse_rate_limit(raw: object) -> RateLimited | None:
    """Return the rate limit in a record or in facts, which may have any content; None if there is none."""
    found: Mapping[str, object] | None = as_object(raw)
    if found is None:
        return None
    until, since = found.get("untilMs"), found.get("sinceMs")
    if type(until) is not int or type(since) is not int or not 0 <= since <= _MAX_INT or not 0 <= until <= _MAX_INT:
        return None
    provider, reason = as_text(found.get("provider"))[:100], as_text(found.get("reason"))[:500]
    return RateLimited(provider, until, since, reason, found.get("isEstimate") is True)


#: First and longest gap between two starts, in seconds.
FIRST_GAP, MAX_GAP = 1.0, 60.0

#: Gaps below this are ignored, in seconds.
_MIN_GAP = 0.25

#: Seconds in which a gap halves.
HALF_LIFE = 60.0

#: Seconds within which several refusals count as one: many agents hit the same limit at once.
_BURST = 2.0

#: Longest rate limit in seconds; longer ones are cut: the longest of any provider is a month.
MAX_LIMIT = 31 * 86_400.0

#: Bytes of a record, padded: one write replaces it.
_SIZE = 1024
_LOCK = 1 << 62

_PREFIX = "pace-"


class RateState(NamedTuple):
    """The rate limit state of one account; times in epoch seconds."""

    gap: float = 0.0  #: between two starts, as of `limited_at`
    limited_at: float = 0.0
    rests_until: float = 0.0
    started_at: float = 0.0
    provider: str = ""  #: name of the provider that refused
    reason: str = ""  #: its message
    is_estimate: bool = False  #: it stated no time: `rests_until` is our estimate

    def gap_at(self, now: float) -> float:
        """Return the gap as it is now."""
        gap = self.gap * 0.5 ** ((now - self.limited_at) / HALF_LIFE)
        return gap if gap >= _MIN_GAP else 0.0

    def until(self, now: float) -> float:
        """Return the seconds until the next turn may begin; 0: now."""
        gap = self.gap_at(now)
        after_gap = self.started_at + gap if gap else now
        return max(self.rests_until - now, after_gap - now, 0.0)

    def limited(
        self, now: float, seconds: float, *, provider: str = "", reason: str = "", is_estimate: bool = True
    ) -> RateState:
        """Return the state after the provider refused a request for `seconds`, stated or estimated."""
        rest = now + min(max(seconds, 0.0), MAX_LIMIT)
        pace = self
        if rest > self.rests_until or not self.provider:
            rest = max(rest, self.rests_until)
            pace = self._replace(rests_until=rest, provider=provider, reason=reason, is_estimate=is_estimate)
        if not is_estimate:
            return pace._replace(limited_at=now)  # its end is known: no backoff needed
        if self.gap and now - self.limited_at < _BURST:
            return pace
        gap = min(max(FIRST_GAP, 2 * self.gap_at(now)), MAX_GAP)
        return pace._replace(gap=gap, limited_at=now)

    def started(self, now: float) -> RateState:
        """Return the state after a start."""
        return self._replace(started_at=now)

    def rate_limited(self, now: float) -> RateLimited | None:
        """Return the active rate limit to show; None if there is none, or only the gap delays a start."""
        if self.rests_until <= now:
            return None
        since = round(self.limited_at * 1000)
        return RateLimited(self.provider, round(self.rests_until * 1000), since, self.reason, self.is_estimate)


class RateStateFile:
    """The locked rate limit state of one account."""

    def __init__(self, home: str, account: str, *, timeout: float) -> None:
        """Lock it, waiting at most `timeout` seconds.

        Raises:
            Busy: it was not free in time.
            StorageError: it cannot be opened.
        """
        make_private_folder(f"{home}/slots")
        self._lock = RangeLock(f"{home}/slots/{_PREFIX}{account}")
        try:
            self._lock.take(_LOCK, timeout=timeout, what=f"the rate limit of {account}")
        except BaseException:
            self._lock.close()
            raise

    def read(self, now: float) -> RateState:
        """Return the stored state; an implausible one, as after a change of the clock, counts as empty."""
        try:
            found = as_object(json.loads(os.pread(self._lock.fd, _SIZE, 0) or b"{}")) or {}
        except (ValueError, RecursionError):
            return RateState()
        kept = {name: found[name] for name, kind in _TYPES.items() if isinstance(found.get(name), kind)}
        pace = RateState(**kept)  # type: ignore[arg-type]  # each of its own type
        is_sound = (
            0.0 <= pace.gap <= MAX_GAP
            and 0.0 <= pace.limited_at <= now
            and 0.0 <= pace.started_at <= now
            and 0.0 <= pace.rests_until <= now + MAX_LIMIT
        )
        return pace if is_sound else RateState()

    def write(self, pace: RateState) -> None:
        """Write the state."""
        kept = pace._replace(provider=pace.provider[:40], reason=_to_ascii(pace.reason)[:300])
        os.pwrite(self._lock.fd, json.dumps(kept._asdict()).encode().ljust(_SIZE)[:_SIZE], 0)

    def __enter__(self) -> RateStateFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()


_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("gap", "limited_at", "rests_until", "started_at"), (int, float)),
    "provider": str,
    "reason": str,
    "is_estimate": bool,
}


def _to_ascii(text: str) -> str:
    """Return text of which every character takes one byte, so that a record has its size."""
    return "".join(char if " " <= char <= "~" and char not in '"\\' else "?" for char in text)


def record_limit(
    home: str, account: str, seconds: float, *, provider: str = "", reason: str = "", is_estimate: bool = False
) -> None:
    """Delay every turn on the account for `seconds` from now.

    Raises:
        Busy, StorageError: it could not be recorded.
    """
    with RateStateFile(home, account, timeout=1.0) as file:
        now = time.time()
        noted = file.read(now).limited(now, seconds, provider=provider, reason=reason, is_estimate=is_estimate)
        file.write(noted)


def active_limits(home: str) -> dict[str, RateLimited]:
    """Return the active rate limits by account.

    Raises:
        Busy, StorageError: one of them cannot be read.
    """
    found: dict[str, RateLimited] = {}
    for account in _accounts(home):
        with RateStateFile(home, account, timeout=1.0) as file:
            now = time.time()
            limit = file.read(now).rate_limited(now)
        if limit is not None:
            found[account] = limit
    return found


def lift_limit(home: str, account: str) -> bool:
    """Clear the rate limit of an account, and the gap after it; return whether there was one.

    Waiting agents check again within two seconds. A provider that still refuses sets a new limit.

    Raises:
        Busy, StorageError: it cannot be changed.
    """
    if account not in _accounts(home):
        return False
    with RateStateFile(home, account, timeout=1.0) as file:
        now = time.time()
        was_limited = file.read(now).until(now) > 0
        file.write(RateState())
    return was_limited


def _accounts(home: str) -> list[str]:
    try:
        names = os.listdir(f"{home}/slots")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(f"{home}/slots", error) from error
    return sorted(name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))
