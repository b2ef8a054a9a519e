"""
A job that waits for its provider: a flag beside its status, and the one place that puts it into words. Pure.

The status of such a job stays what it is (`running` once it has begun: B-03 knows no way back); everybody who shows it
says `pending: rate-limited by anthropic until 04:50`.
"""

from __future__ import annotations

import time

from taskyard.harmless import safe
from taskyard.shapes import as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Below this wait seconds matter, above that one the day does; in milliseconds.
_SHORT, _LONG = 600_000, 20 * 3_600_000

#: Names of facts of a job: what it waits for now, and how long it waited in all, in milliseconds.
FACT, WAITED = "rateLimited", "rateLimitedMs"

#: The fact of a job that ended since it was not to wait, or not for so long.
STOPPED = "stoppedByRateLimit"

_LARGEST = 1 << 53


class RateLimited(NamedTuple):
    """What a job waits for."""

    provider: str
    until_ms: int  #: epoch ms
    since_ms: int  #: epoch ms: when the limit was hit
    reason: str = ""  #: what the provider said
    is_estimate: bool = False  #: the provider named no time: this is the next try

    def words(self) -> str:
        """`rate-limited by anthropic until 04:50`."""
        when = ", next try at" if self.is_estimate else " until"
        return f"rate-limited by {safe(self.provider) or 'its provider'}{when} {self._moment()}"

    def state(self) -> str:
        """The same, as a state: `pending: rate-limited by anthropic until 04:50`."""
        return f"pending: {self.words()}"

    def to_json(self) -> dict[str, object]:
        """As records and facts have it."""
        return {
            "provider": self.provider,
            "untilMs": self.until_ms,
            "sinceMs": self.since_ms,
            "reason": self.reason,
            "isEstimate": self.is_estimate,
        }

    def _moment(self) -> str:
        """In this machine's zone: with seconds if it is soon, with the day if it is far."""
        wait = self.until_ms - self.since_ms
        form = "%H:%M:%S" if wait < _SHORT else "%H:%M" if wait < _LONG else "%a %d %b %H:%M"
        try:
            return time.strftime(form, time.localtime(-(-self.until_ms // 1000)))
        except (OverflowError, ValueError, OSError):
            return "?"


def rate_limited(raw: object) -> RateLimited | None:
    """The flag in a record or in facts, which may hold anything; None if there is none."""
    found: Mapping[str, object] | None = as_object(raw)
    if found is None:
        return None
    until, since = found.get("untilMs"), found.get("sinceMs")
    if type(until) is not int or type(since) is not int or not 0 <= since <= _LARGEST or not 0 <= until <= _LARGEST:
        return None
    provider, reason = as_text(found.get("provider"))[:100], as_text(found.get("reason"))[:500]
    return RateLimited(provider, until, since, reason, found.get("isEstimate") is True)
