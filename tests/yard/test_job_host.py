"""Work written in Python, in a process below the job's keeper."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from countdown import Countdown

from support.wait import until
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import JobStatus


@pytest.mark.req("B-01", "B-03")
def test_its_answer_and_what_else_its_kind_says_stand_with_the_job_for_every_process(jobs: Jobs) -> None:
    ended = jobs.run(Countdown(3), timeout=20)

    assert ended.status is JobStatus.COMPLETED
    assert Path(ended.output_file).read_text(encoding="utf-8") == "3\n2\n1\n"
    seen = Jobs(jobs.home).get(ended.id).facts
    assert (seen["result"], seen["usage"], seen["progress"]) == ("lift-off", {"total_tokens": 3}, {"left": 1})


@pytest.mark.req("B-08")
@pytest.mark.parametrize(("error", "said"), [("no fuel", "no fuel"), ("raise", "RuntimeError: the bottom was reached")])
def test_a_failure_is_told_in_its_own_words(jobs: Jobs, error: str, said: str) -> None:
    ended = jobs.run(Countdown(1, error=error), timeout=20)

    assert ended.end is not None
    assert (ended.status, ended.end.cause, ended.end.error) == (JobStatus.FAILED, "error", said)
    assert ("Traceback" in Path(ended.output_file).read_text(encoding="utf-8")) is (error == "raise")


@pytest.mark.req("B-08")
def test_one_that_leaves_without_a_word_did_not_complete(jobs: Jobs) -> None:
    ended = jobs.run(Countdown(1, error="exit"), timeout=20)

    assert ended.end is not None
    assert (ended.status, ended.end.cause, ended.end.exit_code) == (JobStatus.FAILED, "error", 0)
    assert "without reporting a result" in ended.end.error


@pytest.mark.req("B-07", "O-08")
def test_whatever_is_sent_reaches_it_from_any_process(jobs: Jobs) -> None:
    job = jobs.start(Countdown(0, listens=True))

    assert Jobs(jobs.home).send(job.id, "not yet\ngo\n")

    ended = jobs.wait(job.id, timeout=20)
    assert ended.status is JobStatus.COMPLETED
    assert Path(ended.output_file).read_text(encoding="utf-8") == "heard not yet\nheard go\n"


@pytest.mark.req("B-08", "K-08")
def test_a_time_limit_ends_it_and_its_own_words_do_not_hide_that(jobs: Jobs) -> None:
    ended = jobs.run(Countdown(100_000, step=0.05, timeout=0.5), timeout=20)

    assert ended.end is not None
    assert (ended.status, ended.end.cause) == (JobStatus.KILLED, "timeout")


@pytest.mark.req("B-04", "B-08")
def test_a_second_attempt_is_judged_by_its_own_words(jobs: Jobs) -> None:
    ended = jobs.run(Countdown(1, error="first time", retries=1), timeout=20)

    assert (ended.status, ended.attempt, ended.facts.get("error")) == (JobStatus.COMPLETED, 2, None)


@pytest.mark.req("B-01")
def test_a_kind_whose_package_is_not_there_fails_and_says_so(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path and not path.endswith("plugin")))

    ended = jobs.run(Countdown(1), timeout=20)

    assert ended.end is not None
    assert ended.end.cause == "error" and "countdown" in ended.end.error and "installed" in ended.end.error


@pytest.mark.req("B-14")
def test_a_pause_stops_it_whole_and_a_resume_lets_it_go_on(jobs: Jobs) -> None:
    job = jobs.start(Countdown(100_000, step=0.01))
    output = Path(job.output_file)
    until(lambda: output.stat().st_size > 0)

    assert jobs.pause(job.id)
    until(lambda: "T" in _state(jobs.get(job.id).pid))
    assert jobs.resume(job.id)

    size = output.stat().st_size
    until(lambda: output.stat().st_size > size)


def _state(pid: int | None) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]


@pytest.mark.req("B-08", "B-09")
def test_it_ends_with_its_keeper_though_nobody_looks(jobs: Jobs) -> None:
    job = jobs.start(Countdown(100_000, step=0.01))
    until(lambda: Path(job.output_file).stat().st_size > 0)
    pid, keeper = jobs.get(job.id).pid, supervisor_pid(JobPaths(jobs.home, job.id))
    assert pid and keeper

    os.kill(keeper, signal.SIGKILL)

    until(lambda: not Path(f"/proc/{pid}").exists() or _state(pid) == "Z")
    ended = jobs.get(job.id)
    assert ended.end is not None and ended.end.cause == "lost"


@pytest.mark.req("B-01")
def test_its_program_says_what_it_is_for_to_whoever_starts_it_by_hand() -> None:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "taskyard.yard.job_host"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )

    assert (ran.returncode, "started by a job's supervisor" in ran.stderr) == (2, True)
