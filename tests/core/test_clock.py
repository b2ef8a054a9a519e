"""Time, in the two forms that records and durations need."""

from __future__ import annotations

import time

from taskyard.core.system import boottime, iso, now_ms


def test_a_moment_reads_as_iso_in_utc_with_milliseconds() -> None:
    assert iso(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"


def test_now_is_now_and_elapsed_only_grows() -> None:
    assert abs(now_ms() - time.time() * 1000) < 1000
    assert boottime() <= boottime()
