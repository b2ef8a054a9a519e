"""Jobs as every screen shows them."""

from __future__ import annotations

import time

import pytest

from taskyard.jobs.job_text import status_line
from taskyard.jobs.model import End, Job, JobStatus
from taskyard.jobs.rate_limit import RateLimited
from taskyard.ui.jobs import UNSEEN_MS, JobView, job_views, steps

NOW = 100_000_000


def job(number: int = 0, **more: object) -> Job:
    values: dict[str, object] = {"status": JobStatus.RUNNING, "description": "npm test", "start_time": NOW - 9_000}
    return Job(f"b{number:08d}", "local_bash", **values | more)  # type: ignore[arg-type]


def ended(number: int, code: int, *, ago: int = 0) -> Job:
    end = End("exited", code, at=NOW - ago)
    return job(number, status=end.status, end=end, end_time=NOW - ago)


def views(*jobs: Job, seen: tuple[str, ...] = (), lines: dict[str, str] | None = None) -> list[JobView]:
    return list(job_views(jobs, now=NOW, last_lines=lines or {}, seen=frozenset(seen)))


@pytest.mark.req("U-01")
def test_what_waits_comes_first_then_what_runs_what_failed_unseen_and_what_is_over() -> None:
    jobs = [
        ended(1, 0, ago=50),
        ended(2, 2, ago=400),
        job(3, start_time=5),
        job(4, start_time=9),
        job(5, start_time=1, needs_input=True),
        ended(6, 0, ago=20),
        ended(7, 1, ago=UNSEEN_MS),
    ]

    assert [view.id[-1] for view in views(*jobs)] == ["5", "4", "3", "2", "6", "1", "7"]
    assert [view.id[-1] for view in views(*jobs, seen=("b00000002",))] == ["5", "4", "3", "6", "1", "2", "7"]
    assert [view.id[-1] for view in views(*jobs) if view.is_unseen] == ["2"]


@pytest.mark.req("U-01")
@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (job(status=JobStatus.PENDING, waits_for="a slot"), ("pending", "○", "pending", "warn")),
        (job(), ("running", "◐", "running", "accent")),
        (job(needs_input=True), ("waits", "!", "needs input", "warn")),
        (job(is_paused=True), ("running", "!", "paused", "warn")),
        (job(is_disconnected=True), ("running", "!", "disconnected", "warn")),
        (ended(0, 0), ("completed", "✓", "done", "pass")),
        (ended(0, 2), ("failed", "✗", "exit 2", "fail")),
        (job(status=JobStatus.KILLED, end=End("stopped", by="ada"), end_time=NOW), ("killed", "■", "stopped", "muted")),
    ],
)
def test_every_state_has_a_glyph_a_word_and_a_colour(made: Job, shown: tuple[str, ...]) -> None:
    (view,) = views(made)

    assert (view.state, view.glyph, view.word, view.token) == shown
    assert view.is_over == made.is_final


@pytest.mark.req("U-01")
def test_how_it_came_to_its_state_is_told_step_by_step() -> None:
    failed = job(status=JobStatus.FAILED, end=End("exited", 2), end_time=NOW)

    assert [(step.word, step.token, step.at) for step in steps(failed)] == [
        ("pending", "muted", None),
        ("running", "muted", NOW - 9_000),
        ("failed (exit 2)", "fail", NOW),
    ]
    assert [step.word for step in steps(job())] == ["pending", "running"]
    assert [step.word for step in steps(job(needs_input=True))] == ["pending", "running", "waits"]
    assert [step.word for step in steps(job(status=JobStatus.PENDING))] == ["pending"]


@pytest.mark.req("U-01")
def test_the_line_below_says_what_it_waits_for_does_or_printed_last() -> None:
    agent = job(1, facts={"summary": "Reading src"})._replace(type="local_agent")
    pending = job(2, status=JobStatus.PENDING, waits_for="a slot")

    shown = {view.id[-1]: view.last_line for view in views(job(), agent, pending, lines={"b00000000": "18 passed"})}

    assert shown == {"0": "18 passed", "1": "Reading src", "2": "waits for a slot"}


@pytest.mark.req("U-05")
def test_what_was_started_inside_it_is_counted_with_it() -> None:
    usage = {"usage": {"total_tokens": 5, "tool_uses": 1}, "costUsd": 0.25}
    outer, inner = views(job(0, facts=usage), job(1, parent="b00000000", facts=usage))

    assert (outer.total.tokens, outer.total.cost_usd, inner.total.tokens, inner.depth) == (10, 0.5, 5, 1)


def test_what_runs_looks_the_same_at_the_next_look() -> None:
    again = job_views([job()], now=NOW + 60_000, last_lines={}, seen=frozenset())

    assert views(job()) == list(again)


def test_nothing_a_job_says_of_itself_can_act_on_a_screen() -> None:
    bad = "x\x1b[2J\u202ey"
    (view,) = views(job(description=bad, command=bad, agent_id=bad, needs_input=True, facts={"question": bad}))

    assert all("\x1b" not in str(value) and "\u202e" not in str(value) for value in view)


@pytest.mark.req("Q-01", "U-01")
def test_a_job_that_waits_for_a_rate_limit_is_pending_on_every_screen_and_says_until_when() -> None:
    since = 1_763_355_000_000
    limit = RateLimited("anthropic", since + 4 * 3_600_000, since, "5-hour limit")
    waits = job(1, status=JobStatus.RUNNING, facts={"rateLimited": limit.to_json()})
    [view] = job_views([waits], now=since, last_lines={})
    assert (view.state, view.word, view.glyph) == ("pending", "pending", "○")
    assert view.last_line == limit.words()
    assert limit.words() == f"rate-limited by anthropic until {time.strftime('%H:%M', time.localtime(1_763_369_400))}"
    assert status_line(waits).endswith(limit.state())
    damaged: list[object] = [{}, {"untilMs": "x", "sinceMs": 1}, {"untilMs": -1, "sinceMs": 1}, [], "x", {"untilMs": 9}]
    for broken in damaged:
        [view] = job_views([waits._replace(facts={"rateLimited": broken})], now=since, last_lines={})
        assert view.state == "running"
