"""Machines that lack something: each command says what is missing and what to do, and nothing that is not true."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from support.cli import taskyard
from support.job_cli import ended, is_running, job, started
from support.wait import until

_PROGRAM = [sys.executable, "-m", "taskyard"]

_NO_PROC = 'mount -t tmpfs none /proc && exec "$@"'


def _run(
    words: Sequence[str], *, env: Mapping[bytes, bytes] | None = None, most_files: int = 0
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if most_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))

    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False, env=env, preexec_fn=limit)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def _unshared(*options: str) -> list[str]:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root has namespaces of its own")
    return ["unshare", "--mount", "--propagation", "private", *options, "--"]


def test_a_job_gets_an_environment_of_960_kilobytes_that_is_no_utf_8() -> None:
    env: dict[bytes, bytes] = {**os.environb, **{b"BIG%d" % number: b"\xff" * 120_000 for number in range(8)}}

    ran = _run([*_PROGRAM, "run", "-d", "--json", "--", "echo ${#BIG0} ${#BIG7}"], env=env)

    job_id = json.loads(ran.stdout)["data"]["id"]
    assert ended(job_id)["exit_code"] == 0
    assert taskyard("logs", job_id).out == "120000 120000\n"


@pytest.mark.parametrize("most", [8, 10, 20])
@pytest.mark.parametrize("words", [["run", "-d"], ["run"]], ids=["background", "foreground"])
def test_too_few_open_files_are_refused_before_a_job_is_made(most: int, words: list[str]) -> None:
    ran = _run([*_PROGRAM, *words, "--", "echo hi"], most_files=most)

    assert ran.returncode in (1, 125) and not ran.stdout
    assert f"at most {most} files may be open" in ran.stderr and "ulimit -n" in ran.stderr
    assert taskyard("ps", "--all", "--json").data == []


def test_without_proc_no_job_is_started_and_the_answer_says_what_to_do() -> None:
    ran = _run([*_unshared(), "sh", "-c", _NO_PROC, "sh", *_PROGRAM, "run", "-d", "--", "echo hi"])

    assert ran.returncode == 1
    assert "/proc: it is not mounted" in ran.stderr and "mount -t proc proc /proc" in ran.stderr
    assert taskyard("ps", "--all", "--json").data == []


@pytest.mark.req("B-07", "B-09")
def test_a_job_is_seen_and_stopped_with_proof_from_another_pid_namespace() -> None:
    job_id = started("--", "sleep", "60")
    until(lambda: is_running(job_id))
    inside = _unshared("--pid", "--fork", "--mount-proc")

    seen = json.loads(_run([*inside, *_PROGRAM, "ps", "--json"]).stdout)["data"]
    stopped = json.loads(_run([*inside, *_PROGRAM, "stop", job_id, "--json"]).stdout)["data"]

    assert [(each["id"], each["status"]) for each in seen] == [(job_id, "running")]
    assert (stopped["outcome"], stopped["proof"]) == ("stopped", "proved")


@pytest.mark.req("B-07", "B-09")
def test_a_job_of_another_pid_namespace_is_stopped_with_proof_from_here() -> None:
    inside = _unshared("--pid", "--fork", "--mount-proc")
    command = " ".join([*_PROGRAM, "run", "-d", "--json", "--", "sleep", "60"])
    with subprocess.Popen([*inside, "sh", "-c", f"{command}; exec cat"], stdin=-1, stdout=-1, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        try:
            job_id = json.loads(other.stdout.readline())["data"]["id"]
            until(lambda: is_running(job_id))

            stopped = taskyard("stop", job_id, "--json").data

            assert (stopped["outcome"], stopped["proof"]) == ("stopped", "proved")
            assert job(job_id)["status"] == "killed"
        finally:
            other.stdin.close()
