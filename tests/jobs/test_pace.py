"""How fast agents begin on a provider that has too much to do: slower for all processes, and faster again in time."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taskyard.jobs.rate_limit import (
    FIRST_GAP,
    HALF_LIFE,
    MAX_GAP,
    MAX_LIMIT,
    RateState,
    RateStateFile,
    record_limit,
)

pytestmark = pytest.mark.req("B-12")


def test_nobody_waits_where_nobody_complained() -> None:
    assert RateState().until(1000.0) == 0.0
    assert RateState().started(1000.0).until(1000.0) == 0.0


def test_each_limit_doubles_the_gap_and_time_halves_it_until_it_is_gone() -> None:
    pace = RateState().limited(1000.0, 0.0)
    assert pace.gap_at(1000.0) == FIRST_GAP
    pace = pace.limited(1010.0, 0.0)
    assert pace.gap_at(1010.0) == pytest.approx(2 * FIRST_GAP, rel=0.2)
    for step in range(20):
        pace = pace.limited(1100.0 + 10 * step, 0.0)
    assert pace.gap_at(1290.0) == MAX_GAP
    assert pace.gap_at(1290.0 + HALF_LIFE) == MAX_GAP / 2
    assert pace.gap_at(1290.0 + 20 * HALF_LIFE) == 0.0


def test_many_who_hear_of_the_same_limit_count_as_one() -> None:
    pace = RateState()
    for agent in range(20):
        pace = pace.limited(1000.0 + agent / 100, 5.0)
    assert pace.gap_at(1000.2) == pytest.approx(FIRST_GAP, rel=0.01)
    assert pace.until(1000.2) == pytest.approx(4.99, abs=0.01)


def test_between_two_starts_there_is_the_gap_and_a_provider_is_left_alone_as_long_as_it_asks() -> None:
    pace = RateState().limited(1000.0, 0.0).started(1000.0)
    assert 0.9 < pace.until(1000.05) < 1.0
    assert pace.until(1001.0) == 0.0
    assert RateState().limited(1000.0, 30.0).until(1000.0) == 30.0
    assert RateState().limited(1000.0, 1e300).until(1000.0) == MAX_LIMIT


def test_what_cannot_be_true_counts_for_nothing(tmp_path: Path) -> None:
    nan, future = float("nan"), time.time() + 1e8
    os.mkdir(tmp_path / "slots", 0o700)
    for values in ((nan,) * 4, (1, future, 0, 0), (1e9, 0, 0, 0), (0, 0, future, 0), (-1, -1, -1, -1)):
        (tmp_path / "slots" / "pace-x").write_text(json.dumps(dict(zip(RateState._fields, values, strict=False))))
        with RateStateFile(str(tmp_path), "x", timeout=1.0) as file:
            assert file.read(time.time()) == RateState()
    for data in (b"", b"half of it", b"[1]", b'{"gap": "x"}', b"[" * 1024, os.urandom(32), os.urandom(2000)):
        (tmp_path / "slots" / "pace-x").write_bytes(data)
        with RateStateFile(str(tmp_path), "x", timeout=1.0) as file:
            assert file.read(time.time()) == RateState()


@pytest.mark.req("Q-01")
def test_what_is_noted_is_what_others_read_whatever_the_provider_said(tmp_path: Path) -> None:
    record_limit(str(tmp_path), "x", 3600, provider="anthropic", reason='"5-hour" limit · ' + "é" * 5000)
    record_limit(str(tmp_path), "x", 10, provider="other", reason="shorter")
    with RateStateFile(str(tmp_path), "x", timeout=1.0) as file:
        limit = file.read(time.time()).rate_limited(time.time())
    assert limit is not None
    assert (limit.provider, limit.is_estimate) == ("anthropic", False)
    assert limit.reason.startswith("?5-hour? limit")
    assert 3590 < limit.until_ms / 1000 - time.time() <= 3600
    assert (tmp_path / "slots" / "pace-x").stat().st_size == 1024


def test_processes_that_race_hear_of_each_others_limits(tmp_path: Path) -> None:
    script = "import sys; from taskyard.jobs.rate_limit import record_limit as note_limit\n"
    script += "for _ in range(20): note_limit(sys.argv[1], 'x', float(sys.argv[2]))"
    rests = [random.randrange(10, 500) for _ in range(4)]
    racing = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(rest)]) for rest in rests]
    assert [process.wait(timeout=60) for process in racing] == [0] * 4
    record_limit(str(tmp_path), "y", 1.0)
    with RateStateFile(str(tmp_path), "x", timeout=1.0) as file:
        now = time.time()
        assert max(rests) - 60 < file.read(now).until(now) <= max(rests)
