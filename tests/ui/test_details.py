"""Everything about one task or job."""

from __future__ import annotations

import time

import pytest

from support.tui import JOBS, NOW, RELEASE, scene
from taskyard.jobs.job_text import JobUsage
from taskyard.tasks.model import Act, Change, Task
from taskyard.ui.details import (
    MOST_CHANGES,
    DetailData,
    DetailRow,
    format_steps,
    job_detail_rows,
    task_detail_rows,
)
from taskyard.ui.snapshot import ViewInput, build_snapshot

SHOWN = build_snapshot(scene())
TASKS = {task.id: task for task in SHOWN.tasks}
BY_ID = {job.id: job for job in SHOWN.jobs}


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def task_of(task_id: str, known: DetailData = DetailData()) -> list[DetailRow]:  # noqa: B008  (immutable)
    jobs = [job for job in SHOWN.jobs if job.task == f"release-2/{task_id}"]
    return task_detail_rows(TASKS[task_id], known, tasks=TASKS, jobs=jobs, now=NOW)


def told(facts: list[DetailRow]) -> dict[str, str]:
    return {fact.name: fact.value for fact in facts if fact.name}


def test_a_task_says_whose_it_is_and_what_it_waits_for_and_leads_there() -> None:
    facts = task_of("16")

    assert told(facts) == {"state": "blocked", "waits for": "#12 Migrate the schema"}
    assert [fact.link_id for fact in facts if fact.link_id] == ["12", "13"]
    assert told(task_of("12"))["owner"] == "@ada (you)"
    assert told(task_of("12"))["waited for"] == "#11 Freeze the API"


@pytest.mark.parametrize(("extra", "told_as"), [({}, None), ({"priority": 5}, "5"), ({"priority": "high"}, None)])
def test_a_priority_is_told_where_somebody_set_one(extra: dict[str, object], told_as: str | None) -> None:
    [task] = build_snapshot(ViewInput("release", (Task("1", "Notes", metadata={"taskyard": extra}),), now=NOW)).tasks

    assert task.priority == (None if told_as is None else int(told_as))
    assert told(task_detail_rows(task, DetailData(), tasks={}, jobs=[], now=NOW)).get("priority") == told_as


@pytest.mark.req("U-05")
def test_a_task_says_its_jobs_and_what_they_took_together() -> None:
    facts = told(task_of("14", DetailData(took=JobUsage(2, 12_345, 3, 0.42, 200_000))))

    assert facts["jobs"] == "b7k2m3x0q npm test"
    assert facts["took"] == "2 jobs, 12,345 tokens, $0.42, 3m"


def test_a_description_and_the_latest_of_its_history_come_last() -> None:
    history = [Change(at, NOW - 1_000 * at, Act("ada", f"act {at}", note="why"), {}) for at in range(80, 0, -1)]
    values = [fact.value for fact in task_of("12", DetailData(RELEASE[2], history))]

    assert "Keep the old one until readers have switched." in values
    assert values[-MOST_CHANGES] == "2025-10-09 14:02:32  ada  act 1 (why)"
    assert sum("act " in value for value in values) == MOST_CHANGES


def test_a_blocker_that_is_not_there_leads_nowhere() -> None:
    facts = task_detail_rows(TASKS["16"], DetailData(), tasks={}, jobs=(), now=NOW)

    assert [fact.link_id for fact in facts if "not on the list" in fact.value] == ["", ""]


@pytest.mark.req("U-01", "U-05")
def test_a_job_says_how_it_came_to_where_it_is_and_what_it_took() -> None:
    job = BY_ID["b5dd81k2j"]
    facts = told(job_detail_rows(job, DetailData(cwd="/home/ada/app"), now=NOW))

    assert format_steps(job) == "pending ─▶ running ─▶ failed (exit 2)"
    assert facts["when"] == "running 13:57:33 · failed 13:58:33 · 1m"
    assert (facts["in"], facts["notified"], facts["took"]) == ("/home/ada/app", "yes", "1 job, 1m")
    assert facts["output"] == JOBS[3].output_file


def test_a_job_that_asks_says_what() -> None:
    facts = told(job_detail_rows(BY_ID["b9qx4t7za"], DetailData(), now=NOW))

    assert (facts["asks"], facts["process"]) == ("package name: (app)", "4711")


def test_what_came_from_outside_acts_on_nothing() -> None:
    hostile = "\x1b]0;x\x07\u202e"
    task = RELEASE[2]._replace(description=hostile)
    facts = task_of("12", DetailData(task, [Change(1, NOW, Act(hostile, hostile, note=hostile), {})], cwd=hostile))

    assert all(fact.value.isprintable() for fact in facts)
