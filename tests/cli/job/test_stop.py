"""`taskyard stop`, `pause`, `resume`, `release`: steering, with the truth about what came of it."""

from __future__ import annotations

import re
import time

import pytest

from support.cli import taskyard
from support.job_cli import ended, is_running, job, prints, started
from support.jobs import kill_keeper, marked
from support.wait import until
from taskyard import config
from taskyard.jobs.jobs import Jobs


@pytest.mark.req("B-09")
def test_stopping_says_what_came_of_it_and_that_nothing_is_left() -> None:
    naps = started("--name", "A nap", "--", "setsid sleep 9392.5 & sleep 9392.5")
    until(lambda: len(marked("sleep\x009392.5")) == 2)

    ran = taskyard("stop", naps, "--by", "ada")

    assert ran.code == 0
    assert re.fullmatch(rf"■ {naps}  A nap  stopped by ada, after \d+s; no process is left\n", ran.out)
    assert marked("9392.5") == []
    mine = started("--", "sleep", "60")
    assert taskyard("stop", mine, "--json").data["stopped_by"] == "me"
    again = taskyard("stop", naps, "--json")
    assert (again.code, again.data["outcome"], again.data["stopped_by"]) == (0, "already_ended", "ada")
    assert "had already ended" in taskyard("stop", naps).out


@pytest.mark.req("B-09")
@pytest.mark.parametrize(("words", "grace"), [(["--grace", "0.3s"], 0.3), (["--grace", "0"], 0.0)])
def test_the_grace_is_as_long_as_asked_for(words: list[str], grace: float) -> None:
    stays = started("--grace", "60s", "--", "trap '' TERM; echo up; while :; do sleep 0.05; done")
    prints(stays, "up")
    began = time.monotonic()

    ran = taskyard("stop", stays, *words, "--json")

    assert (ran.data["outcome"], ran.data["signal"]) == ("stopped", 9)
    assert grace <= time.monotonic() - began < grace + 3


@pytest.mark.req("B-09")
def test_everything_stops_at_once_and_notices_wait_until_they_are_released() -> None:
    for _ in range(3):
        started("--", "sleep", "60")
    started("--by", "ada", "--", "sleep", "60")
    began = time.monotonic()

    ran = taskyard("stop", "--all", "--hold", "--json")

    assert [each["outcome"] for each in ran.data] == ["stopped"] * 4
    assert time.monotonic() - began < 5
    assert taskyard("notices", "take", "--by", "ada", "--json").data == []
    assert taskyard("release", "--json").data == {"released": True}
    assert len(taskyard("notices", "take", "--by", "ada", "--json").data) == 1
    assert taskyard("release", "--json").data == {"released": False}


def test_holding_says_how_it_is_released() -> None:
    started("--", "sleep", "60")

    ran = taskyard("stop", "--all", "--hold")

    assert "`taskyard release`" in ran.err
    assert taskyard("release").out == "Notice delivery resumed.\n"
    assert taskyard("release").out == "No notices were held back.\n"


def test_with_nothing_to_stop_all_says_so_and_is_content() -> None:
    assert taskyard("stop", "--all") == (0, "", "No job is running.\n")
    assert taskyard("stop", "--all", "--json").data == []


@pytest.mark.req("B-09")
def test_all_answers_with_a_list_and_one_id_with_one_job() -> None:
    first = started("--", "sleep", "60")
    assert [each["id"] for each in taskyard("stop", "--all", "--json").data] == [first]
    second, third = started("--", "sleep", "60"), started("--", "sleep", "60")
    assert [each["id"] for each in taskyard("stop", second, third, "--json").data] == [second, third]


@pytest.mark.parametrize("words", [[], ["--all", "b00000000"]])
def test_which_job_is_meant_must_be_clear(words: list[str]) -> None:
    ran = taskyard("stop", *words, "--json")

    assert (ran.code, ran.error["code"]) == (2, "usage")


@pytest.mark.req("B-09")
def test_one_wrong_id_among_several_stops_nothing() -> None:
    naps = started("--", "sleep", "60")

    assert taskyard("stop", naps, "bnosuch12", "--json").error["code"] == "job_not_found"
    assert job(naps)["status"] == "running"


@pytest.mark.req("B-09", "B-12")
def test_a_job_that_waits_for_its_turn_is_stopped_without_running() -> None:
    naps = started("--", "sleep", "60")
    waits = started("--after", naps, "--", "echo ran")
    until(lambda: job(waits)["status"] == "pending")

    ran = taskyard("stop", waits, "--json")

    assert (ran.data["outcome"], ran.data["status"], ran.data["pid"]) == ("stopped", "killed", None)
    assert taskyard("wait", waits).code == 143
    assert taskyard("logs", waits).out == ""


@pytest.mark.req("B-09")
def test_where_a_keeper_was_killed_the_answer_says_that_nobody_can_be_sure() -> None:
    naps = started("--", "sleep", "60")
    jobs = Jobs(config.home())
    until(lambda: is_running(naps))
    kill_keeper(jobs, jobs.get(naps))

    ran = taskyard("stop", naps, "--json")

    assert (ran.code, ran.data["cause"], ran.data["proof"]) == (0, "lost", "best_effort")


@pytest.mark.req("B-14")
def test_a_paused_job_stands_still_until_it_is_resumed_and_its_time_limit_with_it() -> None:
    counts = started("--timeout", "1.5s", "--", "while :; do echo x; sleep 0.02; done")
    prints(counts, "x")

    ran = taskyard("pause", counts, "--json")

    assert (ran.code, ran.data["paused"], ran.data["changed"]) == (0, True, True)
    assert taskyard("pause", counts) == (0, f"{counts} was already paused.\n", "")
    assert taskyard("wait", counts, "--timeout", "1.7s").code == 124
    ran = taskyard("resume", counts, "--json")
    assert (ran.code, ran.data["paused"], ran.data["changed"]) == (0, False, True)
    assert taskyard("resume", counts, "--json").data["changed"] is False
    over = ended(counts)
    assert over["cause"] == "timeout" and over["paused_ms"] >= 1600


@pytest.mark.req("B-14")
@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_is_over_or_has_not_begun_can_be_neither_paused_nor_resumed(verb: str) -> None:
    over, naps = started("--", "true"), started("--", "sleep", "60")
    waits = started("--after", naps, "--", "true")
    ended(over)
    until(lambda: job(waits)["status"] == "pending")

    assert (taskyard(verb, over).code, taskyard(verb, over, "--json").error["code"]) == (5, "job_ended")
    refused = taskyard(verb, waits, "--json")
    assert (refused.code, refused.error["code"]) == (5, "job_not_begun")
    assert refused.error["waits_for"] == f"job {naps}"


@pytest.mark.req("B-08", "B-09")
def test_what_a_command_left_running_is_shown_and_its_stop_is_told() -> None:
    left = started("--leave-children", "--", "sleep 9396.5 & exit 3")
    until(lambda: job(left)["left_running"])
    assert "left running" in taskyard("ps").out
    assert taskyard("wait", left, "--timeout", "0.1s").code == 124

    ran = taskyard("stop", left, "--by", "ada")

    assert ran.code == 0
    assert "failed: exit code 3" in ran.out
    assert ran.out.endswith("a process that its command had left running was stopped; no process is left\n")
    over = job(left)
    assert (over["leftovers"], over["stopped_by"], over["left_running"]) == (1, "ada", False)
