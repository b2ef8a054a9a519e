"""Jobs are named by id, the beginning of an id, name or `last`; views show this project's, without dismissed ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cli import taskyard
from support.job_cli import ended, is_running, started
from support.wait import until


@pytest.mark.req("Q-11")
def test_a_job_is_named_by_its_name_the_beginning_of_its_id_or_last() -> None:
    job_id = started("--name", "All tests", "--stdin", "--", "read -r x; echo $x; exit 3")
    until(lambda: is_running(job_id))

    assert taskyard("send", "All tests", "hello").code == 0
    assert taskyard("wait", job_id[:5], "--json").data["id"] == job_id
    assert taskyard("logs", "last").out == "hello\n"
    assert taskyard("wait", "last").code == 3


@pytest.mark.req("B-02")
def test_the_id_of_a_job_is_the_letter_of_its_kind_and_eight_random_characters() -> None:
    ids = [started("--", "true") for _ in range(3)]

    assert len(set(ids)) == 3
    assert all(re.fullmatch("b[0-9a-z]{8}", job_id) for job_id in ids)


@pytest.mark.req("Q-11")
def test_a_name_means_the_job_that_runs_before_one_that_ended() -> None:
    ended(started("--name", "build", "--", "true"))
    running = started("--name", "build", "--", "sleep 60")
    ended(started("--name", "other", "--", "true"))

    assert taskyard("stop", "build", "--json").data["id"] == running


@pytest.mark.req("Q-11")
@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("twice", 2, "fits 2 jobs"),
        ("b", 4, "No job b"),
        ("nothing-like-it", 2, "is not a job id"),
        ("zzzz", 4, "No job zzzz"),
        ("", 2, "is not a job id"),
    ],
)
def test_what_names_no_job_or_several_is_refused(text: str, code: int, words: str) -> None:
    both = [started("--name", "twice", "--", "sleep 60") for _ in range(2)]

    ran = taskyard("stop", text, "--json")

    assert (ran.code, words in ran.error["message"]) == (code, True), ran
    assert not any(job["status"] == "killed" for job in taskyard("ps", "--all", "--json").data)
    taskyard("stop", *both)


@pytest.mark.req("Q-11")
def test_ps_shows_the_jobs_of_this_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    here = started("--", "sleep 60")
    monkeypatch.chdir(tmp_path / "two")
    there = started("--", "sleep 60")

    ran = taskyard("ps")
    assert there in ran.out and here not in ran.out and "1 more in other projects" in ran.err
    assert [job["id"] for job in taskyard("ps", "--json").data] == [there]
    assert {job["id"] for job in taskyard("ps", "--everywhere", "--json").data} == {here, there}
    taskyard("stop", here, there)
    monkeypatch.chdir(tmp_path)
    assert taskyard("wait", "last").code == 4


@pytest.mark.req("Q-11")
def test_an_ended_job_is_dismissed_with_its_notice_and_keeps_its_output() -> None:
    done = started("--", "echo kept; exit 1")
    ended(done)
    running = started("--", "sleep 60")

    assert taskyard("dismiss", running).code == 5
    assert taskyard("dismiss", "--ended", "--json").data[0]["id"] == done
    assert [job["id"] for job in taskyard("ps", "--all", "--json").data] == [running]
    assert [job["dismissed"] for job in taskyard("ps", "--all", "--dismissed", "--json").data] == [True, False]
    assert (taskyard("notices", "-q").out, taskyard("logs", done).out) == ("", "kept\n")
    taskyard("stop", running)


@pytest.mark.req("Q-11")
def test_a_command_is_run_for_a_task() -> None:
    taskyard("task", "add", "Measure")
    job_id = started("--task", "1", "--", "true")

    assert ended(job_id)["task"].endswith("/1")
    assert "1 job" in taskyard("task", "show", "1").out
    assert taskyard("run", "-d", "--task", "x", "--", "true").code == 2
