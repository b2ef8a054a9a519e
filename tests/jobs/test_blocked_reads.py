"""A command that prints a prompt without a newline and reads its input needs an answer, whatever the prompt says."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from support.cli import taskyard
from support.job_cli import ended, job, started
from support.wait import until

#: The prompt is looked at this many seconds after the last output; the pattern's time never comes in these tests.
SOON = "0.3"

PYTHON = shlex.quote(sys.executable)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_PROMPT_AFTER", SOON)
    monkeypatch.setenv("TASKYARD_STALL_AFTER", "600")


@pytest.mark.req("Q-10", "O-08")
@pytest.mark.parametrize(
    ("how", "command", "answer"),
    [
        ("--pty", "printf 'Your name: '; read -r x; echo \"got $x\"", "ada"),
        ("--stdin", "printf 'Your name: '; read -r x; echo \"got $x\"", "ada"),
        ("--pty", f'{PYTHON} -c \'import getpass; print("got", getpass.getpass("Password: "))\'', "ada"),
        ("--pty", f'{PYTHON} -c \'print("got", input("package name: (a) "))\'', "ada"),
        ("--stdin", f'{PYTHON} -uc \'print("got", input("Token> "))\'', "ada"),
    ],
)
def test_a_prompt_without_a_newline_needs_input_and_can_be_answered(how: str, command: str, answer: str) -> None:
    job_id = started(how, "--", command)

    until(lambda: job(job_id)["needs_input"])
    (notice,) = taskyard("notices", "--json").data
    assert "waiting for interactive input" in notice["summary"]
    assert taskyard("send", job_id, answer).code == 0

    assert ended(job_id)["status"] == "completed"
    assert "got ada" in taskyard("logs", job_id).out


@pytest.mark.req("Q-10")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_prompt_of_a_program_that_waits_by_epoll_is_seen(tmp_path: Path) -> None:
    script = tmp_path / "ask.js"
    script.write_text(
        "const r = require('readline').createInterface({input: process.stdin, output: process.stdout});"
        "r.question('package name: (app) ', (a) => { console.log('got ' + a); r.close(); });",
        encoding="utf-8",
    )
    job_id = started("--pty", "--", f"node {shlex.quote(str(script))}")

    until(lambda: job(job_id)["needs_input"])
    assert taskyard("send", job_id, "ada").code == 0
    assert ended(job_id)["status"] == "completed"


@pytest.mark.req("Q-10")
@pytest.mark.parametrize(
    ("how", "command"),
    [
        ("--pty", "printf 'Working: '; sleep 600"),  # unfinished line, but nobody reads
        ("--stdin", "echo 'Ready'; cat"),  # reads, but asked nothing
    ],
)
def test_a_job_that_does_not_prompt_is_left_alone(how: str, command: str) -> None:
    job_id = started(how, "--", command)
    asks = started("--pty", "--", "printf 'Your name: '; read -r x")  # later, so looked at after the first
    until(lambda: job(asks)["needs_input"])

    assert job(job_id)["needs_input"] is False
    taskyard("stop", job_id, asks)
