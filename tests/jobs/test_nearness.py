"""A keeper whose job writes faster than it could be called back from afar is on the writer's processor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.wait import until
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell

ALL = os.sched_getaffinity(0)

pytestmark = pytest.mark.skipif(len(ALL) < 2, reason="where there is one processor, everybody is on it")

CAP = 20_000_000


def keeper(jobs: Jobs, job_id: str) -> int:
    pid = supervisor_pid(JobPaths(jobs.home, job_id))
    assert pid is not None
    return pid


@pytest.mark.req("O-04")
def test_it_is_beside_a_fast_writer_and_anywhere_once_that_is_quiet(tmp_path: Path) -> None:
    jobs = Jobs(f"{tmp_path}/home")
    go_quiet = tmp_path / "quiet"
    os.mkfifo(go_quiet)
    job = jobs.start(Shell(f"yes & read line < {go_quiet}; kill $!; sleep 60", output_cap=CAP, grace=0.1))
    pid = keeper(jobs, job.id)

    until(lambda: len(os.sched_getaffinity(pid)) == 1)
    go_quiet.write_text("now\n")

    until(lambda: os.sched_getaffinity(pid) == ALL)
    jobs.stop(job.id)
    jobs.close()


@pytest.mark.req("O-04")
def test_those_it_starts_next_may_be_anywhere(tmp_path: Path) -> None:
    jobs = Jobs(f"{tmp_path}/home")
    seen = tmp_path / "seen"
    command = f"grep Cpus_allowed_list /proc/self/status >> {seen}; yes | head -c 300000000; exit 1"

    job = jobs.run(Shell(command, output_cap=CAP, retries=2, retry_delay=0.001), timeout=50)

    assert job.end is not None
    assert job.end.exit_code == 1
    assert len(set(seen.read_text().splitlines())) == 1
    assert seen.read_text().count("Cpus_allowed_list") == 3
    jobs.close()


@pytest.mark.req("B-08")
def test_a_quiet_job_s_keeper_is_left_where_the_kernel_puts_it(tmp_path: Path) -> None:
    jobs = Jobs(f"{tmp_path}/home")
    job = jobs.start(Shell("echo hello; sleep 60", grace=0.1))
    until(lambda: Path(job.output_file).read_text(encoding="utf-8") == "hello\n")

    assert os.sched_getaffinity(keeper(jobs, job.id)) == ALL
    jobs.stop(job.id)
    jobs.close()
