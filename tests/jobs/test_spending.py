"""What agents use up together, counted over all processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from taskyard.jobs.budget import (
    Budget,
    TokenUsage,
    add_usage,
    day_key,
    read_usage,
    seconds_to_midnight,
    tree_key,
)
from taskyard.jobs.gc import collect

pytestmark = pytest.mark.req("B-12")


def test_what_many_processes_spend_is_counted_whole(tmp_path: Path) -> None:
    script = "import sys; from taskyard.jobs.budget import TokenUsage; from taskyard.jobs.budget import add_usage\n"
    script += "for _ in range(100): add_usage(sys.argv[1], 'x', TokenUsage(3, 0.01))"
    racing = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(4)]
    assert [process.wait(timeout=60) for process in racing] == [0] * 4
    assert read_usage(str(tmp_path), "x") == TokenUsage(1200, 4.0)
    assert read_usage(str(tmp_path), "y") == TokenUsage()


def test_a_budget_says_what_of_it_is_used_up() -> None:
    assert not Budget().is_set and Budget().over(TokenUsage(10**9, 1e6)) == ""
    assert Budget(1000).over(TokenUsage(999)) == ""
    assert Budget(1000).over(TokenUsage(1500)) == "1,500 of 1,000 tokens"
    assert Budget(0, 2.0).over(TokenUsage(10**9, 2.5)) == "$2.50 of $2.00"


def test_what_is_no_sum_counts_as_nothing_and_is_written_over(tmp_path: Path) -> None:
    add_usage(str(tmp_path), day_key(), TokenUsage(1))
    path = tmp_path / "slots" / f"spent-{day_key()}"
    path.write_bytes(b"\xff" * 16)
    assert read_usage(str(tmp_path), day_key()) == TokenUsage()
    path.write_bytes(b"junk" * 100)
    assert read_usage(str(tmp_path), day_key()) == TokenUsage()
    add_usage(str(tmp_path), tree_key("a12345678"), TokenUsage(-5, -1.0))
    assert read_usage(str(tmp_path), tree_key("a12345678")) == TokenUsage()
    assert 0 < seconds_to_midnight() <= 86_400


def test_what_nobody_draws_on_any_more_is_collected(tmp_path: Path) -> None:
    home = str(tmp_path)
    os.makedirs(tmp_path / "jobs", 0o700)
    for name in ("day-2020-01-01", day_key()):
        add_usage(home, name, TokenUsage(1))
    os.utime(tmp_path / "slots" / "spent-day-2020-01-01", (0, 0))
    collect(home, quota=1 << 40, age_limit=60.0)
    assert os.listdir(tmp_path / "slots") == [f"spent-{day_key()}"]
