"""What jobs took, added up."""

from __future__ import annotations

import pytest

from taskyard.jobs.job_text import JobUsage, own_usage, subtree_usage, total_usage
from taskyard.jobs.model import End, Job, JobStatus

pytestmark = pytest.mark.req("U-05")


def job(name: str, parent: str | None = None, *, tokens: int = 0, cost: float | None = None, ms: int = 1000) -> Job:
    facts: dict[str, object] = {"usage": {"total_tokens": tokens, "tool_uses": 1, "duration_ms": 5}}
    if cost is not None:
        facts["costUsd"] = cost
    end = End("exited", 0, duration_ms=ms, at=1)
    return Job(name, "local_agent", JobStatus.COMPLETED, name, parent=parent, end=end, facts=facts)


def test_each_job_takes_what_all_inside_it_take() -> None:
    jobs = [
        job("root", tokens=100),
        job("left", "root", tokens=10, cost=0.5),
        job("leaf", "left", tokens=1, cost=0.25),
        job("right", "root", tokens=1000),
        job("alone", "gone", tokens=7),
    ]
    totals = subtree_usage(jobs, now=0)
    assert totals["root"] == JobUsage(4, 1111, 4, 0.75, 4000)
    assert totals["left"] == JobUsage(2, 11, 2, 0.75, 2000)
    assert totals["right"] == JobUsage(1, 1000, 1, None, 1000)
    assert totals["alone"] == JobUsage(1, 7, 1, None, 1000)


def test_a_circle_that_somebody_wrote_by_hand_ends() -> None:
    totals = subtree_usage([job("a", "b", tokens=1), job("b", "a", tokens=2), job("c", "c", tokens=4)], now=0)
    assert {name: found.tokens for name, found in totals.items()} == {"a": 3, "b": 3, "c": 4}


def test_one_that_is_named_twice_counts_once_and_what_is_no_number_counts_nothing() -> None:
    assert total_usage([job("a", tokens=5), job("a", tokens=5)], now=0) == JobUsage(1, 5, 1, None, 1000)
    odd = job("a")._replace(facts={"usage": {"total_tokens": "many", "tool_uses": -1}, "costUsd": True})
    assert own_usage(odd, now=0) == JobUsage(1, 0, 0, None, 1000)
    assert total_usage([], now=0) == JobUsage()


def test_one_that_runs_has_taken_the_time_since_it_began_without_its_pauses() -> None:
    runs = job("a")._replace(end=None, status=JobStatus.RUNNING, start_time=1000, total_paused_ms=500)
    assert own_usage(runs, now=5000).duration_ms == 3500
    assert own_usage(runs._replace(status=JobStatus.PENDING), now=5000).duration_ms == 0


def test_in_words_only_what_is_known() -> None:
    assert JobUsage(1, 0, 0, None, 41_000).in_words() == "1 job, 41s"
    assert JobUsage(3, 12345, 9, 0.416, 41_000).in_words() == "3 jobs, 12,345 tokens, $0.42, 41s"
