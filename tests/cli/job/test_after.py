"""`taskyard run --after` and `--after-any`: one job after another, and what becomes of it if that one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli import taskyard
from support.job_cli import ended, job, started
from support.job_outputs import ended_by_hand
from support.jobs import kill_keeper
from support.wait import until
from taskyard import config
from taskyard.core.system import now_ms
from taskyard.jobs.gc import collect
from taskyard.jobs.jobs import Jobs

pytestmark = pytest.mark.req("B-12")


def test_a_job_begins_when_those_before_it_have_completed(tmp_path: Path) -> None:
    book = tmp_path / "book"
    gate = tmp_path / "gate"
    gate.mkdir()
    first = started("--", f"until test -e {gate}/open; do sleep 0.02; done; echo first >> {book}")
    second = started("--", f"until test -e {gate}/open; do sleep 0.02; done; sleep 0.1; echo second >> {book}")
    third = started("--after", first, "--after", second, "--", f"echo third >> {book}")
    until(lambda: job(third)["status"] == "pending")
    assert job(third)["waits_for"] == f"job {first}"
    (gate / "open").touch()

    assert ended(third)["status"] == "completed"
    assert book.read_text(encoding="utf-8") == "first\nsecond\nthird\n"


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (["--", "sleep 0.2; exit 3"], "failed"),
        (["--timeout", "0.2s", "--", "sleep", "60"], "was stopped"),
        (["--", "no-such-command"], "failed"),
    ],
)
def test_a_job_does_not_run_if_the_one_before_it_did_not_complete(words: list[str], how: str) -> None:
    first = started(*words)
    second = started("--after", first, "--", "echo ran")
    third = started("--after", second, "--", "echo ran")

    over = ended(second)

    assert (over["status"], over["cause"], over["pid"]) == ("failed", "error", None)
    assert over["error"] == f"it was to run after job {first}, which {how}"
    assert taskyard("wait", second).code == 125
    assert taskyard("logs", second).out == ""
    assert ended(third)["error"] == f"it was to run after job {second}, which failed"
    told = {notice["task_id"]: notice["summary"] for notice in taskyard("notices", "--json").data}
    assert told[second].endswith(f'"echo ran" failed: it was to run after job {first}, which {how}')


@pytest.mark.parametrize("script", ["true", "exit 3"])
def test_after_any_end_it_runs_however_the_one_before_ended(script: str) -> None:
    first = started("--", f"sleep 0.2; {script}")

    assert ended(started("--after-any", first, "--", "echo ran"))["status"] == "completed"


def test_a_job_that_was_stopped_or_lost_did_not_complete() -> None:
    stopped, lost = started("--", "sleep", "60"), started("--", "sleep", "60")
    after_stopped, after_lost = started("--after", stopped, "--", "true"), started("--after", lost, "--", "true")
    until(lambda: job(after_lost)["status"] == "pending")
    taskyard("stop", stopped)
    jobs = Jobs(config.home())
    kill_keeper(jobs, jobs.get(lost))

    assert ended(after_stopped)["error"].endswith("which was stopped")
    assert ended(after_lost)["error"].endswith("which failed")


def test_one_that_is_over_already_counts_also_when_gc_took_it() -> None:
    fine, bad = started("--", "true"), started("--", "false")
    ended(fine), ended(bad)
    old = ended_by_hand(config.home(), at=now_ms() - 100_000, size=0)
    collect(config.home(), quota=1 << 40, age_limit=50)

    assert ended(started("--after", fine, "--after", old.id, "--", "true"))["status"] == "completed"
    assert ended(started("--after", bad, "--", "true"))["status"] == "failed"
    assert ended(started("--after-any", bad, "--", "true"))["status"] == "completed"
