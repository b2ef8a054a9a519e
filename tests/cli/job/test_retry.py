"""`taskyard run --retry`: tried again after a failure, with what became of each attempt."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from support.cli import process, taskyard
from support.job_cli import ended, job, started
from support.wait import until
from taskyard import config
from taskyard.jobs.job_dir import JobPaths, supervisor_pid

pytestmark = pytest.mark.req("K-01")


def until_the(nth: int, book: Path, *, else_: str = "exit 3") -> str:
    """A script that succeeds at its nth attempt."""
    return f"echo try >> {book}; echo attempt $(wc -l < {book}); test $(wc -l < {book}) -ge {nth} || {else_}"


def test_a_failure_is_tried_again_until_it_succeeds_and_each_attempt_is_told(tmp_path: Path) -> None:
    tries = started("--retry", "5", "--retry-delay", "0", "--", until_the(3, tmp_path / "book"))

    over = ended(tries)

    assert (over["status"], over["exit_code"], over["attempt"], over["retries"]) == ("completed", 0, 3, 5)
    assert [(one["cause"], one["exit_code"]) for one in over["earlier"]] == [("exited", 3), ("exited", 3)]
    assert taskyard("logs", tries).lines == ["attempt 1", "attempt 2", "attempt 3"]
    first = over["earlier"][0]["output_size"]
    assert taskyard("logs", tries, "--from", str(first)).lines == ["attempt 2", "attempt 3"]
    assert "completed, after 0s, attempt 3" in taskyard("wait", tries).out
    assert len(taskyard("notices", "--json").data) == 1


def test_after_the_last_attempt_it_has_failed() -> None:
    tries = started("--retry", "2", "--retry-delay", "0", "--", "exit 4")

    over = ended(tries)

    assert (over["status"], over["exit_code"], over["attempt"], len(over["earlier"])) == ("failed", 4, 3, 2)
    assert taskyard("wait", tries).code == 4


def test_a_command_that_cannot_be_started_is_tried_again_too(tmp_path: Path) -> None:
    tries = started("--retry", "1", "--retry-delay", "0", "--", str(tmp_path / "missing"))

    over = ended(tries)

    assert (over["attempt"], over["earlier"][0]["cause"], over["earlier"][0]["exit_code"]) == (2, "error", 127)


@pytest.mark.parametrize("words", [["--timeout", "0.1s", "--", "sleep", "60"], ["--", "true"]])
def test_what_succeeded_or_was_ended_on_purpose_is_not_tried_again(words: list[str]) -> None:
    over = ended(started("--retry", "3", "--retry-delay", "0", *words))

    assert (over["attempt"], over["earlier"]) == (1, [])


def test_each_rest_is_twice_as_long_as_the_one_before(tmp_path: Path) -> None:
    began = time.monotonic()

    ended(started("--retry", "2", "--retry-delay", "0.2s", "--", "exit 1"))

    assert 0.6 <= time.monotonic() - began < 20


@pytest.mark.req("B-09")
def test_between_two_attempts_it_can_be_stopped_and_not_paused() -> None:
    rests = started("--retry", "3", "--retry-delay", "60s", "--", "exit 5")
    until(lambda: job(rests)["attempt"] == 2)

    assert "[attempt 2 of 4]" in taskyard("ps").out
    assert taskyard("pause", rests, "--json").error["code"] == "conflict"
    ran = taskyard("stop", rests, "--json")
    assert (ran.data["outcome"], ran.data["status"], ran.data["proof"]) == ("stopped", "killed", "proved")


@pytest.mark.req("O-01")
def test_a_terminal_and_an_input_are_new_at_each_attempt(tmp_path: Path) -> None:
    book = tmp_path / "book"
    script = until_the(3, book, else_="{ printf 'last words'; exit 3; }")

    words = [
        "--pty",
        "--retry",
        "3",
        "--retry-delay",
        "0",
        "--on-parent-exit",
        "kill",
    ]  # the old terminal's end is not ours
    tries = started(*words, "--", f"tty >/dev/null && {{ {script}; }}")

    assert ended(tries)["attempt"] == 3
    assert taskyard("logs", tries).out.count("last words") == 2
    reads = started("--stdin", "--retry", "1", "--retry-delay", "0", "--", "read -r line; echo got $line; exit 1")
    taskyard("send", reads, "one")
    until(lambda: job(reads)["attempt"] == 2 and job(reads)["pid"] is not None)
    until(lambda: taskyard("send", reads, "two").code == 0)
    ended(reads)
    assert taskyard("logs", reads).lines == ["got one", "got two"]


@pytest.mark.req("O-01")
@pytest.mark.parametrize("how", ["--stdin", "--pty"])
def test_attempts_leave_no_descriptor_open(how: str, tmp_path: Path) -> None:
    first = started(how, "--", "echo up; sleep 60")
    tries = started(how, "--retry", "9", "--retry-delay", "0", "--", until_the(8, tmp_path / "book") + " && sleep 60")
    until(lambda: "attempt 8" in taskyard("logs", tries).out and "up" in taskyard("logs", first).out)

    assert open_in_keeper(tries) == open_in_keeper(first)


def open_in_keeper(job_id: str) -> int:
    keeper = supervisor_pid(JobPaths(config.home(), job_id))
    return len(os.listdir(f"/proc/{keeper}/fd"))


def test_attached_it_ends_as_the_last_attempt_did(tmp_path: Path) -> None:
    ran = process("run", "--retry", "1", "--retry-delay", "0", "--", until_the(2, tmp_path / "book"))

    assert ran == (0, "attempt 1\nattempt 2\n", "")
