"""Anybody may be killed at any time: every job ends as itself or is lost, is told once, and nothing of it runs on."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from support.job_chaos import Crowd, children_of, faults_of_ends, kill, orphans, supervisors
from support.scale import scale
from support.wait import until
from taskyard.errors import StorageError
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import Job

#: All of them short: who is still there at the end is there by mistake.
WORK = [
    Shell(["true"]),
    Shell("exit 7"),
    Shell(["sleep", "0.1"]),
    Shell("(setsid sleep 0.3 &); nohup sleep 0.2 >/dev/null 2>&1 & sleep 0.1", grace=0.05),
    Shell("trap '' TERM; sleep 0.2; sleep 0.1", timeout=0.1, grace=0.05),
    Shell("yes | head -c 3000000", output_cap=1_000_000),
    Shell("echo hello; sleep 0.1", pty=True),
    Shell("sleep 0.05; exit 1", retries=2, retry_delay=0.01),
    Shell("sleep 0.2", on_parent_exit="keep"),
]

#: Killed by somebody (signal), ended with its starter (stopped), never started (error).
CAUSES = {"exited", "signal", "lost", "stopped", "timeout", "error"}

STARTERS = 4


@pytest.mark.req("B-08", "B-05", "B-09")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(scale(20)))
def test_whoever_is_killed_every_job_ends_and_is_told_once_and_nothing_runs_on(memory: Path, seed: int) -> None:
    chance = random.Random(seed)
    jobs = Jobs(str(memory / "home"), agent="ada")

    def start() -> None:
        try:
            jobs.start(random.Random(os.urandom(8)).choice(WORK))
        except StorageError:
            pass  # its server was killed again and again: no job, and the answer says so
        time.sleep(0.02)

    began = time.monotonic()
    with Crowd(STARTERS, start, memory / "faults") as starters:
        deaths = _attack(jobs, starters, chance, count=scale(200))
    until(lambda: not jobs.list(), timeout=60, what="every job to end")

    started = [job.id for job in jobs.list(ended=True)]
    assert faults_of_ends(jobs, started) == []
    assert orphans(jobs.home) == {}
    until(lambda: supervisors(jobs.home) == {}, what="every keeper to be gone")
    causes = Counter(job.end.cause for job in jobs.list(ended=True) if job.end)
    assert set(causes) <= CAUSES
    took = time.monotonic() - began
    print(f"{len(started)} jobs, killed {dict(deaths)}, in {took:.1f} s: {dict(causes)}")


def _attack(jobs: Jobs, starters: Crowd, chance: random.Random, *, count: int) -> Counter[str]:
    """Kill somebody every few milliseconds until so many jobs were started; who, and how often."""

    def a_job() -> Job | None:
        living = jobs.list()
        return chance.choice(living) if living else None

    def starter() -> bool:
        starters.kill_one(chance)
        return True

    victims: dict[str, Callable[[], bool]] = {
        "keeper": lambda: kill((job := a_job()) and supervisor_pid(JobPaths(jobs.home, job.id))),
        "command": lambda: kill((job := a_job()) and job.pid),
        "server": lambda: kill(next(iter(children_of(chance.choice(starters.pids))), None)),
        "starter": starter,
    }
    deaths: Counter[str] = Counter()
    until(lambda: len(jobs.list(ended=True)) >= STARTERS, what="all to start jobs")
    deadline = time.monotonic() + 120
    while len(os.listdir(f"{jobs.home}/jobs")) < count:
        assert time.monotonic() < deadline, "the jobs were never started"
        who = chance.choices(list(victims), weights=[12, 8, 1, 1])[0]
        deaths[who] += victims[who]()
        time.sleep(chance.random() * 0.02)
    return deaths
