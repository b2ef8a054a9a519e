"""Time: wall clock for records people read, boot time for durations that must survive a suspend."""

from __future__ import annotations

import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_ms() -> int:
    """The wall clock in epoch milliseconds, as stored in records."""
    return time.time_ns() // 1_000_000


def elapsed() -> float:
    """Seconds since some fixed moment, counting suspended time; only differences mean anything."""
    return time.clock_gettime(_BOOT)


def iso(epoch_ms: int) -> str:
    """`epoch_ms` as ISO 8601 in UTC with milliseconds, the form mail and exports use."""
    seconds, ms = divmod(epoch_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03d}Z"
