"""The pill: one sentence about what runs in the background."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.model import Job, JobStatus
from taskyard.ui.jobs import (
    FLASH_MS,
    StatusSummary,
    kind_name,
    next_summary_change,
    running_label,
    status_summary,
)

NOW = 1_000_000
KINDS = ("local_bash", "monitor_mcp", "local_agent", "local_workflow", "in_process_teammate", "remote_agent", "dream")


def job(kind: str = "local_bash", number: int = 0, **more: object) -> Job:
    values: dict[str, object] = {"status": JobStatus.RUNNING, "description": "npm test", "start_time": NOW}
    return Job(f"b{number:08d}", kind, **values | more)  # type: ignore[arg-type]


def several(kind: str, count: int, **facts: object) -> list[Job]:
    return [job(kind, number, facts=facts) for number in range(count)]


def ultraplans(count: int, phase: str) -> list[Job]:
    return several("remote_agent", count, remoteTaskType="ultraplan", ultraplanPhase=phase)


def mate(number: int, team: str) -> Job:
    return job("in_process_teammate", number, facts={"identity": {"teamName": team, "agentName": f"a{number}"}})


@pytest.mark.req("U-02")
@pytest.mark.parametrize(
    ("jobs", "text"),
    [
        ([], ""),
        (several("local_bash", 1), "1 shell"),
        ([*several("local_bash", 3), *several("monitor_mcp", 2)], "3 shells, 2 monitors"),
        (several("monitor_mcp", 1), "1 monitor"),
        ([mate(1, "a"), mate(2, "a"), mate(3, "b"), mate(4, "b"), mate(5, "b")], "2 teams"),
        ([mate(1, "a")], "1 team"),
        (several("dream", 1), "dreaming"),
        (several("remote_agent", 2), "◇ 2 cloud sessions"),
        (several("remote_agent", 1), "◇ 1 cloud session"),
        (ultraplans(1, "needs_input"), "◇ ultraplan needs your input"),
        (ultraplans(1, "plan_ready"), "◆ ultraplan ready"),
        (ultraplans(1, ""), "◇ 1 cloud session"),
        (ultraplans(2, "plan_ready"), "◇ 2 cloud sessions"),
        (several("local_agent", 2), "2 agents"),
        (several("local_workflow", 1), "1 workflow"),
        ([*several("local_bash", 2), *several("local_agent", 1)], "3 background tasks"),
        (several("somebody's kind", 1), "1 background task"),
    ],
)
def test_it_says_what_runs_in_the_words_of_its_table(jobs: list[Job], text: str) -> None:
    found = status_summary(jobs, now=NOW)

    assert (found.text, found.running) == (text, len(jobs))
    assert bool(found.hint) == text.startswith(("◇ ultraplan", "◆"))
    assert found.in_words() == text
    assert found.hint_with("2") == (" · 2 to view" if found.hint else "")


@pytest.mark.req("U-02")
def test_what_waits_for_its_turn_counts_and_what_somebody_watches_does_not() -> None:
    jobs = [job(status=JobStatus.PENDING), job(number=1), job(number=2, is_backgrounded=False)]

    assert status_summary(jobs, now=NOW).text == "2 shells"
    assert status_summary(jobs[2:], now=NOW) == StatusSummary()


@pytest.mark.req("U-02")
def test_it_hides_when_only_teammates_run_and_they_are_seen_elsewhere() -> None:
    jobs = [mate(1, "a"), mate(2, "b")]

    shown = {one.id for one in jobs}

    assert status_summary(jobs, now=NOW, in_tree=shown).text == ""
    assert status_summary(jobs, now=NOW).text == "2 teams"
    assert status_summary([*jobs, job()], now=NOW, in_tree=shown).text == "3 background tasks"


@pytest.mark.req("U-02")
def test_it_counts_teammates_of_another_list_that_have_no_row_here() -> None:
    jobs = [mate(1, "a"), mate(2, "b")]

    assert status_summary(jobs, now=NOW, in_tree={jobs[0].id}).text == "2 teams"


@pytest.mark.req("U-02")
def test_whoever_waits_for_an_answer_is_counted_beside_it() -> None:
    jobs = [job(number=number, needs_input=number < 2) for number in range(3)]

    assert status_summary(jobs[1:], now=NOW).in_words() == "2 shells   ! 1 waits"
    assert status_summary(jobs, now=NOW).in_words() == "3 shells   ! 2 wait"


@pytest.mark.req("U-02")
def test_an_end_is_told_for_five_seconds_unless_somebody_saw_it() -> None:
    over = [
        job(number=1, status=JobStatus.COMPLETED, end_time=NOW - 10),
        job(number=2, status=JobStatus.FAILED, end_time=NOW, description="make lint\x1b[2J"),
    ]

    assert status_summary(over, now=NOW).flash == "✗ make lint\\x1b[2J"
    assert status_summary(over, now=NOW, seen=frozenset({"b00000002"})).flash == "✓ npm test"
    assert status_summary(over, now=NOW + FLASH_MS) == StatusSummary()
    assert next_summary_change(over, NOW) == NOW - 10 + FLASH_MS
    assert next_summary_change(over, NOW + FLASH_MS) is None


@pytest.mark.req("U-02")
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(list(JobStatus)), st.booleans())))
def test_its_count_is_that_of_the_living_in_the_background(made: list[tuple[str, JobStatus, bool]]) -> None:
    jobs = [
        job(kind, number, status=status, is_backgrounded=back, end_time=1 if status.is_final else None)
        for number, (kind, status, back) in enumerate(made)
    ]
    living = [one for one in jobs if not one.is_final and one.is_backgrounded]
    found = status_summary(jobs, now=NOW)

    assert found.running == len(living)
    assert bool(found.text) == bool(living) == bool(running_label(living)[0])


def test_a_job_is_called_by_its_kind() -> None:
    assert [kind_name(job(kind)) for kind in KINDS] == [
        "shell", "monitor", "agent", "workflow", "teammate", "cloud session", "dream",
    ]  # fmt: skip
