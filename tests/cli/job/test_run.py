"""`taskyard run`, `ps`, `wait`, `stop`, … as people and scripts use them."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.cli import LONGEST, taskyard
from support.jobs import marked
from support.terminal import shown
from support.wait import until

COMMAND = [sys.executable, "-m", "taskyard"]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    taskyard("stop", "--all", "--grace", "0.1s")


def real(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=LONGEST, check=False)


def started(*words: str) -> str:
    ran = taskyard("run", "-d", "--json", *words)
    assert ran.code == 0, ran.err
    job_id: str = ran.data["id"]
    return job_id


@pytest.mark.req("B-07", "K-01")
def test_a_job_in_the_background_is_listed_waited_for_and_gone() -> None:
    job = started("--name", "A nap", "--", "sleep", "60")

    assert [row["description"] for row in taskyard("ps", "--json").data] == ["A nap"]
    assert taskyard("wait", job, "--timeout", "0.1s").code == 124
    stopped = taskyard("stop", job, "--json")
    assert (stopped.code, stopped.data["outcome"], stopped.data["proof"]) == (0, "stopped", "proved")
    waited = taskyard("wait", job, "--json")
    assert (waited.code, waited.data["status"], waited.data["cause"]) == (143, "killed", "stopped")
    assert taskyard("ps", "--json").data == []
    assert [row["id"] for row in taskyard("ps", "--all", "--json").data] == [job]
    assert taskyard("stop", job).out.startswith("already ended: ")


@pytest.mark.req("K-01")
def test_attached_it_prints_what_the_command_prints_and_ends_as_it_does() -> None:
    ran = real("run", "--", "echo one; sleep 0.05; echo two >&2; exit 3")

    assert (ran.returncode, ran.stdout) == (3, "one\ntwo\n")
    assert real("run", "--", "no-such-command").returncode == 127
    assert real("run", "--timeout", "0.1s", "--", "sleep", "60").returncode == 128 + signal.SIGTERM


@pytest.mark.req("B-09")
@pytest.mark.parametrize("word", ["bnosuch12", "../../x", "", "b\0", "\ud800"])
@pytest.mark.parametrize("verb", ["wait", "stop", "pause", "resume", "send", "logs"])
def test_ids_that_nobody_issued_are_not_found_and_impossible_ones_refused(verb: str, word: str) -> None:
    ran = taskyard(verb, word, *(["x"] if verb == "send" else []), "--json")

    assert (ran.code, ran.error["code"]) == ((4, "job_not_found") if word == "bnosuch12" else (2, "bad_job_id"))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--", ""],
        ["--timeout", "-1", "--", "true"],
        ["--timeout", "0", "--", "true"],
        ["--output-cap", "10", "--", "true"],
        ["--output-cap", "many", "--", "true"],
        ["--cwd", "/no/such/folder", "--", "true"],
        ["--name", "two\nlines", "--", "true"],
        ["--name", "\x1b[31m", "--", "true"],
        ["--retry", "-1", "--", "true"],
        ["--", "echo", "a\0b"],
    ],
)
def test_what_cannot_be_run_is_refused_and_starts_nothing(words: list[str]) -> None:
    assert taskyard("run", "-d", *words).code == 2
    assert taskyard("ps", "--all", "--json").data == []


@pytest.mark.req("B-11")
def test_where_the_background_is_switched_off_nothing_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")

    ran = taskyard("run", "-d", "--json", "--", "true")

    assert (ran.code, ran.error["code"]) == (5, "background_disabled")


def on_a_terminal(*words: str) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "dumb"}
    child = subprocess.Popen(
        [*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
    )
    os.close(theirs)
    return child, ours


@pytest.mark.req("B-11")
def test_ctrl_b_moves_it_to_the_background_and_the_command_does_not_notice() -> None:
    child, terminal = on_a_terminal("run", "--", "echo up; sleep 9381.5")
    try:
        shown(terminal, b"up")
        os.write(terminal, b"\x02")
        seen = shown(terminal, b"It goes on in the background")
        assert child.wait(LONGEST) == 0
    finally:
        child.kill()
        os.close(terminal)
    (job,) = taskyard("ps", "--json").data

    assert job["id"].encode() in seen and job["isBackgrounded"]
    assert len(marked("sleep\x009381.5")) == 1
    assert taskyard("stop", job["id"]).code == 0


@pytest.mark.req("B-09", "B-11")
def test_ctrl_c_stops_it_with_everything_it_started() -> None:
    child, terminal = on_a_terminal("run", "--", "(setsid sleep 9382.5 &); echo up; sleep 9382.5")
    try:
        shown(terminal, b"up")
        child.send_signal(signal.SIGINT)
        assert child.wait(LONGEST) == 128 + signal.SIGTERM
    finally:
        child.kill()
        os.close(terminal)

    assert marked("9382.5") == []
    (job,) = taskyard("ps", "--all", "--json").data
    assert (job["cause"], job["proof"]) == ("stopped", "proved")


@pytest.mark.req("B-09", "B-10")
def test_jobs_inside_a_job_end_with_it_unless_they_are_to_be_kept() -> None:
    inner = f"{sys.executable} -m taskyard run -d"
    outer = started("--", f"{inner} -- sleep 9383.5; {inner} --on-parent-exit keep -- sleep 9384.5; sleep 9385.5")
    until(lambda: bool(marked("sleep\x009385.5")))

    ran = taskyard("stop", outer, "--json")

    assert ran.data["outcome"] == "stopped"
    (kept,) = taskyard("ps", "--json").data
    assert (ran.data["kept"], kept["description"], kept["parent"]) == ([kept["id"]], "sleep 9384.5", outer)
    assert (marked("sleep\x009383.5"), len(marked("sleep\x009384.5"))) == ([], 1)


@pytest.mark.req("B-09")
def test_everything_stops_at_once_and_notices_wait_until_they_are_released() -> None:
    for _ in range(3):
        started("--", "sleep", "60")

    ran = taskyard("stop", "--all", "--hold", "--json")

    assert [each["outcome"] for each in ran.data] == ["stopped"] * 3
    assert taskyard("release", "--json").data == {"released": True}
    assert taskyard("release", "--json").data == {"released": False}


def test_the_answers_are_json_that_scripts_can_rely_on() -> None:
    job = json.loads(real("run", "-d", "--json", "--", "true").stdout)["data"]
    assert {"id", "status", "output"} <= job.keys()
    ended = json.loads(real("wait", job["id"], "--json").stdout)["data"]
    assert (ended["status"], ended["exit_code"], ended["signal"], ended["cause"]) == ("completed", 0, None, "exited")
    both = json.loads(real("wait", job["id"], job["id"], "--json").stdout)["data"]
    assert len(both) == 2
