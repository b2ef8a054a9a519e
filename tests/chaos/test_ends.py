"""However many jobs end at once, and whoever is killed over it: one end each, one notice of it, acknowledged once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from support.job_chaos import Crowd, faults_of_ends, looking_around, orphans
from support.receivers import Receivers, check_deliveries, read_by
from support.scale import scale
from support.wait import until
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.notices import Outbox

#: Receivers under one name, and those who only look.
RECEIVERS, LOOKERS = 3, 3


@pytest.mark.req("B-05", "B-08", "N-07")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(scale(60)))
def test_200_jobs_that_end_together_are_told_once_each_whoever_is_killed(jobs: Jobs, memory: Path, seed: int) -> None:
    chance = random.Random(seed)
    os.mkfifo(memory / "gate")
    gate = os.open(memory / "gate", os.O_RDWR)
    script = f"exec <{memory}/gate; echo up; read x; exit {seed}"
    started = [jobs.start(Shell(["sh", "-c", script])) for _ in range(scale(200))]
    ids = [job.id for job in started]
    until(lambda: all(os.path.getsize(job.output_file) for job in started), what="all to wait at the gate")
    with (
        Receivers(RECEIVERS, lambda _: Outbox(jobs.home, "ada"), memory / "receivers") as receivers,
        Crowd(LOOKERS, looking_around(jobs), memory / "faults") as lookers,
    ):
        began = time.monotonic()
        os.write(gate, b"\n" * len(ids))  # a line for each
        supervisors = _attack(jobs, ids, lookers, receivers, chance)
        until(lambda: read_by(jobs.home) == len(ids), timeout=60, what="every notice to be acknowledged")
        took = time.monotonic() - began
    os.close(gate)

    assert faults_of_ends(jobs, ids) == []
    assert orphans(jobs.home) == {}
    causes = Counter(end.cause for job_id in ids if (end := jobs.get(job_id).end))
    assert set(causes) <= {"exited", "lost"}, causes
    again = check_deliveries(jobs.home, receivers)
    killed = f"{supervisors} keepers, {lookers.killed} lookers, {len(receivers.deaths) - RECEIVERS} receivers killed"
    print(f"{len(ids)} jobs told in {took:.2f} s, {killed}; {dict(causes)}, {again} delivered again")


def _attack(jobs: Jobs, ids: list[str], lookers: Crowd, receivers: Receivers, chance: random.Random) -> int:
    """Kill keepers, lookers and receivers while the jobs end; how many keepers."""
    killed = 0
    for job_id in chance.sample(ids, len(ids) // 2):
        time.sleep(chance.random() * 0.002)  # the moment of death is the point of it
        if keeper := supervisor_pid(JobPaths(jobs.home, job_id)):
            try:
                os.kill(keeper, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass  # it had ended just now
        if chance.random() < 0.2:
            (lookers if chance.random() < 0.5 else receivers).kill_one(chance)
    return killed
