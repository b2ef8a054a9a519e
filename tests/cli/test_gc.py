"""`taskyard gc`: says what it freed and what it would free."""

from __future__ import annotations

import os

import pytest

from support.cli import taskyard
from support.job_outputs import ended_by_hand
from taskyard import config
from taskyard.core.system import now_ms

pytestmark = pytest.mark.req("O-04")

DAY = 86_400_000


def old(days: float, size: int = 100_000) -> str:
    return ended_by_hand(config.home(), at=now_ms() - int(days * DAY), size=size).id


def test_it_says_what_it_freed() -> None:
    ancient, fresh = old(40), old(1)

    ran = taskyard("gc")

    assert ran.code == 0
    assert ran.lines[0].startswith(f"{ancient}  completed") and "40d ago" in ran.lines[0]
    assert ran.lines[1].startswith("Removed 1 ended job, freed 1")
    assert os.listdir(f"{config.home()}/jobs").count(fresh) == 1


def test_a_dry_run_only_says_what_would_go() -> None:
    ancient = old(40)

    ran = taskyard("gc", "--dry-run")

    assert "Would remove 1 ended job" in ran.out
    assert os.path.exists(f"{config.home()}/jobs/{ancient}")


def test_the_age_limit_can_be_given_for_once() -> None:
    older, _ = old(8), old(6)

    assert taskyard("gc", "--older-than", "7d", "-q").lines == [older]


def test_json_has_the_numbers() -> None:
    ancient, _ = old(40), old(1)

    data = taskyard("gc", "--json").data

    [removed] = data["removed"]
    assert (removed["id"], removed["status"], data["dry_run"]) == (ancient, "completed", False)
    assert data["freed"] == removed["bytes"] >= 100_000
    assert data["left"] >= 100_000 and data["quota"] == 10_000_000_000
    assert (data["running"], data["unread"], data["not_understood"], data["half_made"]) == (0, 0, 0, 0)


def test_quota_and_age_limit_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    oldest, newer = old(3), old(2)
    monkeypatch.setenv("TASKYARD_JOB_STORE_QUOTA", "150000")
    assert taskyard("gc", "-q").lines == [oldest]

    monkeypatch.setenv("TASKYARD_JOB_AGE_LIMIT", "86400")
    assert taskyard("gc", "-q").lines == [newer]


def test_a_description_cannot_act_on_the_terminal() -> None:
    job_id = old(40)
    path = f"{config.home()}/jobs/{job_id}/job.json"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("made by hand", "\\u001b[2Jevil\\nline"))

    ran = taskyard("gc")

    assert "\x1b" not in ran.out and len(ran.lines) == 3


def test_without_jobs_nothing_is_done() -> None:
    ran = taskyard("gc")

    assert (ran.code, ran.lines[0]) == (0, "Removed 0 ended jobs, freed 0 B. 0 B of 10 GB are used.")


@pytest.mark.parametrize("words", [("--older-than", "x"), ("--older-than", "-1"), ("--older-than", "0")])
def test_a_duration_that_is_none_is_refused(words: tuple[str, ...]) -> None:
    assert taskyard("gc", *words).code == 2
