"""Jobs with a terminal of their own: their keeper copies what it shows, all of it, and hears wishes meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from support.scale import scale
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell


@pytest.mark.req("O-01", "B-08")
def test_what_a_terminal_showed_last_is_kept_and_counted(jobs: Jobs) -> None:
    for number in range(scale(100)):
        job = jobs.run(Shell(f"seq {number} 9999; echo the end", pty=True), timeout=20)

        text = Path(job.output_file).read_bytes()
        assert job.end is not None
        assert text.split() == [b"%d" % line for line in range(number, 10_000)] + [b"the", b"end"]
        assert job.end.size == len(text)


@pytest.mark.req("O-04", "B-08")
def test_what_a_terminal_showed_last_is_kept_also_where_the_first_is_not(jobs: Jobs) -> None:
    job = jobs.run(Shell("seq 400000; echo the end", pty=True, output_cap=1_000_000), timeout=20)

    assert job.end is not None and job.end.base > 0
    assert Path(job.output_file).read_bytes().endswith(b"\r\n400000\r\nthe end\r\n")


@pytest.mark.req("O-01")
def test_each_attempt_has_a_terminal_and_its_output_is_whole(jobs: Jobs) -> None:
    job = jobs.start(Shell("seq 3000; test -t 0; exit 1", pty=True, retries=4, retry_delay=0))
    keeper = supervisor_pid(JobPaths(jobs.home, job.id))
    most = 0
    while keeper and os.path.exists(f"/proc/{keeper}/fd") and not jobs.get(job.id).is_final:
        try:
            links = [os.readlink(f"/proc/{keeper}/fd/{fd}") for fd in os.listdir(f"/proc/{keeper}/fd")]
        except OSError:
            continue
        most = max(most, links.count("/dev/ptmx") + links.count("/dev/pts/ptmx"))
        time.sleep(0.0005)

    assert jobs.wait(job.id, timeout=20).attempt == 5
    assert Path(job.output_file).read_bytes().split() == [b"%d" % line for line in range(1, 3001)] * 5
    assert most <= 1
