"""
How fast agents may begin on one provider: as fast as they like, until it says that it has too much to do.

Each time it does (429, 529), the gap between two starts doubles; while it does not, the gap halves every minute until
it is gone. Where it says for how long to leave it alone, nobody begins before. It holds for all processes of a user:
the state is one small record in `slots/pace-<provider>`, changed under a lock of the kernel's.
"""

from __future__ import annotations

import os
import struct

from taskyard.clock import elapsed
from taskyard.disk.files import make_private_folder
from taskyard.disk.kernel_lock import RangeLock
from taskyard.typed import NamedTuple

#: The first gap between two starts, and the longest, in seconds.
FIRST, LONGEST = 1.0, 60.0

#: A gap below this is none, in seconds.
_LEAST = 0.25

#: Seconds in which a gap halves.
HALVES = 60.0

#: Many agents hear of the same limit at once: within so many seconds it counts as one.
_BURST = 2.0

#: Nobody is left alone for longer, whatever it says, in seconds.
LONGEST_REST = 3600.0

_STATE = struct.Struct("<4d")
_LOCK = 1 << 62


class Pace(NamedTuple):
    """What is known of one provider; moments in seconds since the machine's own."""

    gap: float = 0.0  #: between two starts, as it was at `limited_at`
    limited_at: float = 0.0
    rests_until: float = 0.0
    started_at: float = 0.0

    def gap_at(self, now: float) -> float:
        """The gap as it is now."""
        gap = self.gap * 0.5 ** ((now - self.limited_at) / HALVES)
        return gap if gap >= _LEAST else 0.0

    def until(self, now: float) -> float:
        """Seconds until somebody may begin; 0: now."""
        gap = self.gap_at(now)
        after_gap = self.started_at + gap if gap else now
        return max(self.rests_until - now, after_gap - now, 0.0)

    def limited(self, now: float, seconds: float) -> Pace:
        """After the provider said that it has too much to do, for so many seconds as far as it knows."""
        rest = max(self.rests_until, now + min(max(seconds, 0.0), LONGEST_REST))
        if self.gap and now - self.limited_at < _BURST:
            return self._replace(rests_until=rest)
        gap = min(max(FIRST, 2 * self.gap_at(now)), LONGEST)
        return self._replace(gap=gap, limited_at=now, rests_until=rest)

    def started(self, now: float) -> Pace:
        """After a start."""
        return self._replace(started_at=now)


class PaceFile:
    """The pace of one provider, in the hands of one process for a moment."""

    def __init__(self, home: str, provider: str, *, timeout: float) -> None:
        """Wait for it at most `timeout` seconds.

        Raises:
            Busy: it was not free in time.
            StorageError: it cannot be opened.
        """
        make_private_folder(f"{home}/slots")
        self._lock = RangeLock(f"{home}/slots/pace-{provider}")
        try:
            self._lock.take(_LOCK, timeout=timeout, what=f"the pace of {provider}")
        except BaseException:
            self._lock.close()
            raise

    def read(self, now: float) -> Pace:
        """What is known; what cannot be true, or was before the machine's last start, counts for nothing."""
        data = os.pread(self._lock.fd, _STATE.size, 0)
        if len(data) < _STATE.size:
            return Pace()
        pace = Pace(*_STATE.unpack(data))
        is_sound = (
            0.0 <= pace.gap <= LONGEST
            and 0.0 <= pace.limited_at <= now
            and 0.0 <= pace.started_at <= now
            and 0.0 <= pace.rests_until <= now + LONGEST_REST
        )
        return pace if is_sound else Pace()

    def write(self, pace: Pace) -> None:
        """Put it in place."""
        os.pwrite(self._lock.fd, _STATE.pack(*pace), 0)

    def __enter__(self) -> PaceFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()


def note_limit(home: str, provider: str, seconds: float) -> None:
    """Have everybody begin more slowly there."""
    with PaceFile(home, provider, timeout=1.0) as file:
        now = elapsed()
        file.write(file.read(now).limited(now, seconds))
