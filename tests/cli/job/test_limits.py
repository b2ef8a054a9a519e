"""How many jobs run at once, how deep and how fast they start: what is over a limit waits and says for what."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.cli import process, taskyard
from support.job_cli import ended, is_running, job, started
from support.wait import until

pytestmark = pytest.mark.req("B-12")

TASKYARD = f"{sys.executable} -m taskyard"


@pytest.mark.parametrize(("setting", "what"), [("JOB_LIMIT", "jobs"), ("SHELL_LIMIT", "shell commands")])
def test_one_more_than_may_run_at_once_waits_and_says_for_what(
    setting: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"TASKYARD_{setting}", "2")
    first, second = started("--", "sleep", "60"), started("--", "sleep", "60")
    until(lambda: is_running(first) and is_running(second))
    third = started("--", "echo ran")

    until(lambda: job(third)["status"] == "pending")
    assert job(third)["waits_for"] == f"a slot (at most 2 {what} at once)"
    assert f"waits for a slot (at most 2 {what} at once)" in taskyard("ps").out
    taskyard("stop", first)
    assert ended(third)["status"] == "completed"


def test_a_slot_is_free_again_when_its_keeper_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    from support.jobs import kill_keeper
    from taskyard import config
    from taskyard.jobs.jobs import Jobs

    monkeypatch.setenv("TASKYARD_JOB_LIMIT", "1")
    first, second = started("--", "sleep", "60"), started("--", "true")
    jobs = Jobs(config.home())
    kill_keeper(jobs, jobs.get(first))

    assert ended(second)["status"] == "completed"


def test_a_depth_of_one_means_that_no_job_may_start_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_JOB_DEPTH", "1")
    outer = started("--", f"{TASKYARD} run -d --json -- echo inner; {TASKYARD} run -- echo inner")

    assert ended(outer)["exit_code"] == 5
    told = taskyard("logs", outer).out
    assert '"code": "too_deep"' in told and f'"parent": "{outer}"' in told and '"limit": 1' in told
    assert f"Error: Job {outer} may start no other" in told and "job_depth" in told
    assert [row["id"] for row in taskyard("ps", "--all", "--json").data] == [outer]


def test_jobs_start_jobs_as_deep_as_is_allowed_and_no_deeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_JOB_DEPTH", "3")
    deepest = f"{TASKYARD} run -- echo four"
    outer = started("--", f"{TASKYARD} run -- '{TASKYARD} run -- \"{deepest}\"'")

    assert ended(outer)["exit_code"] == 5
    assert [row["depth"] for row in taskyard("ps", "--all", "--json").data] == [0, 1, 2]
    assert "jobs may be 3 deep" in taskyard("logs", outer).out


def test_over_so_many_starts_a_minute_a_job_waits_and_says_until_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_JOB_STARTS_PER_MINUTE", "2")
    assert ended(started("--", "true"))["status"] == "completed"
    assert ended(started("--", "true"))["status"] == "completed"

    third = started("--", "true")
    until(lambda: job(third)["status"] == "pending")

    words = job(third)["waits_for"]
    assert re.fullmatch(r"a start \(at most 2 a minute\), until \d\d:\d\d:\d\d", words)
    assert words in taskyard("ps").out
    assert taskyard("stop", third, "--json").data["outcome"] == "stopped"
    monkeypatch.setenv("TASKYARD_JOB_STARTS_PER_MINUTE", "0")
    assert ended(started("--", "true"))["status"] == "completed"


def test_of_many_that_start_at_once_exactly_as_many_begin_as_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_JOB_STARTS_PER_MINUTE", "4")

    with ThreadPoolExecutor(6) as pool:
        started_ones = [
            ran.data["id"] for ran in pool.map(lambda _: process("run", "-d", "--json", "--", "true"), range(9))
        ]
    until(lambda: len([row for row in taskyard("ps", "--json").data if "a start" in (row["waits_for"] or "")]) == 5)

    over = [row for row in taskyard("ps", "--all", "--json").data if row["status"] == "completed"]
    assert (len(started_ones), len(over)) == (9, 4)


@pytest.mark.parametrize("name", ["JOB_LIMIT", "SHELL_LIMIT", "JOB_DEPTH", "JOB_STARTS_PER_MINUTE"])
@pytest.mark.parametrize("value", ["-1", "many", "0"])
def test_a_limit_that_makes_no_sense_is_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"TASKYARD_{name}", value)

    ran = taskyard("run", "-d", "--json", "--", "true")

    if (name, value) == ("JOB_STARTS_PER_MINUTE", "0"):
        assert ran.code == 0
    else:
        assert (ran.code, ran.error["field"]) == (2, name.lower())
