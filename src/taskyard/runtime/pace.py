"""
When agents on one account may begin a turn: at once, unless its provider refused a request a while ago.

Each refusal without a time (429, 529) doubles the gap between two starts; while there is none, the gap halves every
minute until it is gone. Where the provider says when its limit lifts, nobody begins before. It holds for all processes
of a user, and outlives them: the state is one small record in `slots/pace-<account>`, changed under a kernel lock.
Its moments are those of the wall clock, as a provider's are.
"""

from __future__ import annotations

import json
import os
import time

from taskyard.disk.files import make_private_folder, storage_error
from taskyard.disk.kernel_lock import RangeLock
from taskyard.runtime.rate_limit import RateLimited
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

#: The first gap between two starts, and the longest, in seconds.
FIRST, LONGEST = 1.0, 60.0

#: A gap below this is none, in seconds.
_LEAST = 0.25

#: Seconds in which a gap halves.
HALVES = 60.0

#: Many agents hit the same limit at once: within so many seconds it counts as one.
_BURST = 2.0

#: A limit for longer than this counts as one for so long, in seconds: the longest that providers have is a month.
LONGEST_REST = 31 * 86_400.0

#: Bytes of a record, padded: one write replaces the one before.
_SIZE = 1024
_LOCK = 1 << 62

_PREFIX = "pace-"


class Pace(NamedTuple):
    """What is known of one account; moments in epoch seconds."""

    gap: float = 0.0  #: between two starts, as it was at `limited_at`
    limited_at: float = 0.0
    rests_until: float = 0.0
    started_at: float = 0.0
    provider: str = ""  #: who refused, as people know it
    reason: str = ""  #: what it said
    is_estimate: bool = False  #: it named no time: `rests_until` is ours

    def gap_at(self, now: float) -> float:
        """The gap as it is now."""
        gap = self.gap * 0.5 ** ((now - self.limited_at) / HALVES)
        return gap if gap >= _LEAST else 0.0

    def until(self, now: float) -> float:
        """Seconds until the next turn may begin; 0: now."""
        gap = self.gap_at(now)
        after_gap = self.started_at + gap if gap else now
        return max(self.rests_until - now, after_gap - now, 0.0)

    def limited(
        self, now: float, seconds: float, *, provider: str = "", reason: str = "", is_estimate: bool = True
    ) -> Pace:
        """After the provider refused a request, for so many seconds as far as anybody knows."""
        rest = now + min(max(seconds, 0.0), LONGEST_REST)
        pace = self
        if rest > self.rests_until or not self.provider:
            rest = max(rest, self.rests_until)
            pace = self._replace(rests_until=rest, provider=provider, reason=reason, is_estimate=is_estimate)
        if not is_estimate:
            return pace._replace(limited_at=now)  # its end is known: nobody need feel the way
        if self.gap and now - self.limited_at < _BURST:
            return pace
        gap = min(max(FIRST, 2 * self.gap_at(now)), LONGEST)
        return pace._replace(gap=gap, limited_at=now)

    def started(self, now: float) -> Pace:
        """After a start."""
        return self._replace(started_at=now)

    def rate_limited(self, now: float) -> RateLimited | None:
        """What to show while nobody may begin; None if the gap alone is in the way, or nothing."""
        if self.rests_until <= now:
            return None
        since = round(self.limited_at * 1000)
        return RateLimited(self.provider, round(self.rests_until * 1000), since, self.reason, self.is_estimate)


class PaceFile:
    """The pace of one account, in the hands of one process for a moment."""

    def __init__(self, home: str, account: str, *, timeout: float) -> None:
        """Wait for it at most `timeout` seconds.

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

    def read(self, now: float) -> Pace:
        """What is known; what cannot be true, as after a change of the clock, counts for nothing."""
        try:
            found = as_object(json.loads(os.pread(self._lock.fd, _SIZE, 0) or b"{}")) or {}
        except (ValueError, RecursionError):
            return Pace()
        kept = {name: found[name] for name, kind in _TYPES.items() if isinstance(found.get(name), kind)}
        pace = Pace(**kept)  # type: ignore[arg-type]  # each of its own type
        is_sound = (
            0.0 <= pace.gap <= LONGEST
            and 0.0 <= pace.limited_at <= now
            and 0.0 <= pace.started_at <= now
            and 0.0 <= pace.rests_until <= now + LONGEST_REST
        )
        return pace if is_sound else Pace()

    def write(self, pace: Pace) -> None:
        """Put it in place."""
        kept = pace._replace(provider=pace.provider[:40], reason=_plain(pace.reason)[:300])
        os.pwrite(self._lock.fd, json.dumps(kept._asdict()).encode().ljust(_SIZE)[:_SIZE], 0)

    def __enter__(self) -> PaceFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()


_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("gap", "limited_at", "rests_until", "started_at"), (int, float)),
    "provider": str,
    "reason": str,
    "is_estimate": bool,
}


def _plain(text: str) -> str:
    """Text of which every character takes one byte, so that a record has its size."""
    return "".join(char if " " <= char <= "~" and char not in '"\\' else "?" for char in text)


def note_limit(
    home: str, account: str, seconds: float, *, provider: str = "", reason: str = "", is_estimate: bool = False
) -> None:
    """Hold back every turn on the account, for so many seconds from now.

    Raises:
        Busy, StorageError: it could not be noted.
    """
    with PaceFile(home, account, timeout=1.0) as file:
        now = time.time()
        noted = file.read(now).limited(now, seconds, provider=provider, reason=reason, is_estimate=is_estimate)
        file.write(noted)


def limits(home: str) -> dict[str, RateLimited]:
    """The rate limits that hold now, by account.

    Raises:
        Busy, StorageError: one of them cannot be read.
    """
    found: dict[str, RateLimited] = {}
    for account in _accounts(home):
        with PaceFile(home, account, timeout=1.0) as file:
            now = time.time()
            limit = file.read(now).rate_limited(now)
        if limit is not None:
            found[account] = limit
    return found


def lift(home: str, account: str) -> bool:
    """Forget the rate limit of an account, and the gap after it; whether there was one.

    Those that wait look again within two seconds. A provider that still refuses makes a new limit.

    Raises:
        Busy, StorageError: it cannot be changed.
    """
    if account not in _accounts(home):
        return False
    with PaceFile(home, account, timeout=1.0) as file:
        now = time.time()
        was_limited = file.read(now).until(now) > 0
        file.write(Pace())
    return was_limited


def _accounts(home: str) -> list[str]:
    try:
        names = os.listdir(f"{home}/slots")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(f"{home}/slots", error) from error
    return sorted(name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))
