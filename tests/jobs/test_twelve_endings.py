"""Every way in which a job can end, and what is said of it then: status, cause, exit code, signal, proof."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from support.cgroups import little_memory
from support.disks import mounted
from support.jobs import kill_keeper
from support.wait import until
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import Job

DEAF = "trap '' TERM; echo up; sleep 60 & wait; wait"


class Truth(NamedTuple):
    status: str
    cause: str
    exit_code: int | None = None
    signal: int | None = None
    proof: str = "proved"


def ran(command: str | list[str], **how: float) -> Callable[[Jobs], Job]:
    return lambda jobs: jobs.run(Shell(command, **how), timeout=20)  # type: ignore[arg-type]


def stopped(command: str) -> Callable[[Jobs], Job]:
    def end(jobs: Jobs) -> Job:
        job = jobs.start(Shell(command))
        until(lambda: os.path.getsize(job.output_file))
        return jobs.stop(job.id, grace=0.2)[0].job

    return end


def above_its_cap_where_nothing_is_freed(_: Jobs) -> Job:
    """A file system in memory that frees no part of a file."""
    with mounted("mode=700", kind="ramfs") as disk:
        jobs = Jobs(str(disk))
        try:
            return jobs.run(Shell("yes", output_cap=1_000_000), timeout=20)
        finally:
            jobs.close()


def out_of_memory(jobs: Jobs) -> Job:
    hog = [sys.executable, "-c", "bytearray(400_000_000)"]
    starter = f"""
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.jobs import Jobs
print(Jobs({jobs.home!r}, alone=True).run(Shell({hog}), timeout=20).id)
"""
    with little_memory() as limited:
        done = subprocess.run(
            [*limited, sys.executable, "-c", starter], capture_output=True, text=True, timeout=30, check=True
        )
        return jobs.get(done.stdout.strip())


def with_its_keeper_killed(jobs: Jobs) -> Job:
    job = jobs.start(Shell("sleep 60"))
    until(lambda: jobs.get(job.id).pid is not None)
    kill_keeper(jobs, job)
    return jobs.wait(job.id, timeout=10)


def with_the_machine_restarted(jobs: Jobs) -> Job:
    job = jobs.start(Shell("sleep 60"))
    until(lambda: jobs.get(job.id).pid is not None)
    kill_keeper(jobs, job)
    path = Path(JobPaths(jobs.home, job.id).record)
    record = json.loads(path.read_text(encoding="utf-8"))
    machine, _, _ = record["host"].partition("/")
    path.write_text(json.dumps({**record, "host": f"{machine}/an-earlier-boot"}), encoding="utf-8")
    try:
        return jobs.wait(job.id, timeout=10)
    finally:
        os.kill(record["pid"], 9)


TRUTHS: dict[str, tuple[Callable[[Jobs], Job], Truth]] = {
    "exit 0": (ran("true"), Truth("completed", "exited", 0)),
    "exit 3": (ran("exit 3"), Truth("failed", "exited", 3)),
    "command not found": (ran(["no-such-command"]), Truth("failed", "error", 127)),
    "not executable": (ran(["/etc/passwd"]), Truth("failed", "error", 126)),
    "killed by SIGSEGV": (ran("kill -SEGV $$"), Truth("failed", "signal", None, 11)),
    "stopped in time": (stopped("echo up; exec sleep 60"), Truth("killed", "stopped", None, 15)),
    "stopped, deaf to TERM": (stopped(DEAF), Truth("killed", "stopped", None, 9)),
    "timeout": (ran("sleep 60", timeout=0.05), Truth("killed", "timeout", None, 15)),
    "output cap": (above_its_cap_where_nothing_is_freed, Truth("killed", "output_cap", None, 15)),
    "out of memory": (out_of_memory, Truth("failed", "oom", None, 9)),
    "keeper killed": (with_its_keeper_killed, Truth("failed", "lost", None, None, "best_effort")),
    "machine restarted": (with_the_machine_restarted, Truth("failed", "lost", None, None, "best_effort")),
}


@pytest.mark.req("B-08", "B-09", "O-04")
@pytest.mark.parametrize(("end", "truth"), TRUTHS.values(), ids=TRUTHS)
def test_how_a_job_ended_is_the_truth(jobs: Jobs, end: Callable[[Jobs], Job], truth: Truth) -> None:
    job = end(jobs)

    assert job.end is not None
    assert Truth(job.status.value, job.end.cause, job.end.exit_code, job.end.signal, job.end.proof) == truth
