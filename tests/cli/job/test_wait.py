"""`taskyard wait`: until jobs are over, ending as they did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from support.cli import LONGEST, process, taskyard
from support.job_cli import ended, job, started
from support.job_outputs import ended_by_hand
from support.jobs import kill_keeper
from support.wait import until
from taskyard import config
from taskyard.core.system import now_ms
from taskyard.jobs.gc import collect
from taskyard.jobs.jobs import Jobs


@pytest.mark.req("B-08", "B-13")
@pytest.mark.parametrize(
    ("words", "code", "status", "cause"),
    [
        (["--", "true"], 0, "completed", "exited"),
        (["--", "exit 3"], 3, "failed", "exited"),
        (["--", "kill -KILL $$"], 137, "failed", "signal"),
        (["--timeout", "0.1s", "--", "sleep", "60"], 143, "killed", "timeout"),
        (["--timeout", "0.1s", "--", "trap 'exit 0' TERM; sleep 60 & wait"], 143, "killed", "timeout"),
        (["--timeout", "0.1s", "--", "trap 'exit 9' TERM; sleep 60 & wait"], 9, "killed", "timeout"),
        (["--", "no-such-command"], 127, "failed", "error"),
    ],
)
def test_it_ends_as_the_job_did(words: list[str], code: int, status: str, cause: str) -> None:
    one = started(*words)

    ran = taskyard("wait", one, "--json")

    assert (ran.code, ran.data["status"], ran.data["cause"]) == (code, status, cause)
    assert (ran.data["exit_code"], ran.data["signal"]) == ((code, None) if code < 128 and cause != "timeout" else
                                                          (ran.data["exit_code"], ran.data["signal"]))  # fmt: skip


@pytest.mark.req("B-13")
def test_of_several_it_waits_for_all_and_ends_with_the_first_code_that_is_not_0() -> None:
    fine, bad, worse = started("--", "true"), started("--", "sleep 0.3; exit 3"), started("--", "exit 4")

    ran = taskyard("wait", fine, bad, worse, "--json")

    assert (ran.code, [one["exit_code"] for one in ran.data]) == (3, [0, 3, 4])
    assert [line.split()[1] for line in taskyard("wait", fine, worse).lines] == [fine, worse]
    assert isinstance(taskyard("wait", fine, fine, "--json").data, list)


@pytest.mark.req("B-13")
def test_at_the_time_limit_it_answers_with_how_the_job_stands_and_124() -> None:
    naps = started("--name", "A nap", "--", "sleep", "60")
    began = time.monotonic()

    ran = taskyard("wait", naps, "--timeout", "0.2s", "--json")

    assert (ran.code, ran.data["status"], ran.data["exit_code"]) == (124, "running", None)
    assert time.monotonic() - began < 5
    assert taskyard("wait", naps, "--timeout", "0.1s").out == f"◐ {naps}  A nap  running\n"


@pytest.mark.req("B-13")
def test_interrupting_it_leaves_the_job_alone() -> None:
    naps = started("--", "sleep", "60")
    waits = subprocess.Popen([sys.executable, "-m", "taskyard", "wait", naps], stdout=subprocess.DEVNULL)
    until(lambda: sleeps_on_a_keeper(waits.pid))

    waits.send_signal(signal.SIGINT)

    assert waits.wait(LONGEST) == 130
    assert job(naps)["status"] == "running"


def sleeps_on_a_keeper(pid: int) -> bool:
    """Whether a process holds the pipe by which the kernel tells it of a keeper's end."""
    folder = f"/proc/{pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{fd}").endswith("/control") for fd in os.listdir(folder))
    except FileNotFoundError:
        return False  # closed while we looked


@pytest.mark.req("B-08")
def test_a_lost_job_ends_it_with_125_and_says_what_happened() -> None:
    naps = started("--", "sleep", "60")
    jobs = Jobs(config.home())
    kill_keeper(jobs, jobs.get(naps))

    ran = taskyard("wait", naps)

    assert (ran.code, "lost: its supervisor is gone and left no record of how it ended" in ran.out) == (125, True)


@pytest.mark.req("B-06")
def test_how_a_job_ended_that_gc_took_is_still_told() -> None:
    folder = ended_by_hand(config.home(), at=now_ms() - 10_000, size=10)
    collect(config.home(), quota=0, age_limit=0)

    ran = taskyard("wait", folder.id, "--json")

    assert (ran.code, ran.data["status"], ran.data["output"]) == (0, "completed", None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--timeout=-1"], "no less than nothing"),
        (["--timeout", "-5s"], "no less than nothing"),
        (["--timeout", "99999d"], "at most 3,650d"),
        (["--timeout", "soon"], "seconds, or a number with s, m, h or d"),
    ],
)
def test_a_time_limit_that_is_none_is_refused_with_the_reason(words: list[str], says: str) -> None:
    naps = started("--", "sleep", "60")

    error = taskyard("wait", naps, *words, "--json").error

    assert error["code"] == "bad_value"
    assert says in error["message"]


@pytest.mark.req("B-13")
def test_without_any_time_to_wait_it_only_looks() -> None:
    naps, over = started("--", "sleep", "60"), started("--", "exit 3")
    ended(over)

    ran = taskyard("wait", naps, "--timeout", "0", "--json")

    assert (ran.code, ran.data["status"] in ("pending", "running")) == (124, True)
    assert taskyard("wait", over, "--timeout", "0s").code == 3


@pytest.mark.req("B-13")
def test_who_waits_costs_no_time_while_nothing_happens() -> None:
    naps = started("--", "sleep", "1")
    script = f"""
import resource
from taskyard.cli.main import main
before = resource.getrusage(resource.RUSAGE_SELF)
main(["wait", {naps!r}, "-q"])
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_nvcsw - before.ru_nvcsw)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONGEST, check=True)

    assert int(ran.stdout.split()[-1]) < 60  # it went to sleep so often: a look every 10 ms would be 100


def test_the_answers_are_json_that_scripts_can_rely_on() -> None:
    one = json.loads(process("run", "-d", "--json", "--", "true").out)["data"]
    assert {"id", "status", "output"} <= one.keys()
    over = ended(one["id"])
    assert (over["status"], over["exit_code"], over["signal"], over["cause"]) == ("completed", 0, None, "exited")


@pytest.mark.req("N-07", "O-07")
def test_with_its_output_a_wait_shows_what_a_model_gets_and_the_notice_counts_as_read() -> None:
    one = started("--", "seq 3; exit 3")

    ran = taskyard("wait", one, "--output", "--json")

    assert (ran.code, ran.data["exit_code"], ran.data["text"], ran.data["was_truncated"]) == (3, 3, "1\n2\n3\n", False)
    assert taskyard("notices", "--json").data == []
    assert taskyard("wait", one, "--output").lines[1:] == ["1", "2", "3"]


@pytest.mark.req("N-07")
def test_a_wait_alone_leaves_the_notice_to_whoever_it_is_for() -> None:
    one = started("--", "true")

    taskyard("wait", one)

    assert [notice["task_id"] for notice in taskyard("notices", "--json").data] == [one]
