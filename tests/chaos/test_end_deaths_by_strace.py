"""The same deaths by the kernel's own count: strace kills real starters and keepers at their nth call of each kind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.job_chaos import faults_of_ends, orphans
from support.strace import strace_works
from support.wait import until
from taskyard.jobs.jobs import Jobs

#: Calls that change something, or start somebody, or come between such.
CALLS = "openat,write,rename,link,unlink,mkdir,mknodat,fcntl,fallocate,setsid,prctl,vfork,clone3,wait4,memfd_create"

#: A job's start and end have fewer than this of each.
MOST = 300


@pytest.mark.req("B-05", "B-08")
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_whoever_is_killed_at_any_call_that_changes_something_leaves_one_end_and_one_notice(memory: Path) -> None:
    if not strace_works():
        pytest.skip("strace cannot trace here")
    began, deaths, lost = time.monotonic(), 0, 0
    for call in CALLS.split(","):
        for number in range(1, MOST):
            jobs = Jobs(str(memory / f"{call}-{number}"))
            killed = _run_and_kill(call, number, jobs.home)
            until(lambda jobs=jobs: not jobs.list(), what="all to be over")  # type: ignore[misc]  # of this round
            started = jobs.list(ended=True)
            assert len(started) <= 1, f"{call} {number}"
            assert faults_of_ends(jobs, [job.id for job in started]) == [], f"{call} {number}"
            assert orphans(jobs.home) == {}, f"{call} {number}"
            if not killed:
                break
            deaths += killed
            lost += any(job.end and job.end.cause == "lost" for job in started)
    assert deaths > len(CALLS.split(","))
    print(f"{deaths} deaths by strace, {lost} jobs lost, in {time.monotonic() - began:.1f} s")


def _run_and_kill(call: str, number: int, home: str) -> int:
    """`taskyard run -d`, each process of which dies at its nth such call; how many did."""
    log = f"{home}.log"
    command = [sys.executable, "-m", "taskyard", "run", "-d", "--", "true"]
    trace = ["strace", "-f", "-q", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
    env = {**os.environ, "TASKYARD_HOME": home, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([*trace, *command], capture_output=True, env=env, timeout=60, check=False)
    return Path(log).read_text(encoding="utf-8").count("killed by SIGKILL")
