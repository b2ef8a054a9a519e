"""The cap on output where no block of a file can be freed, and while a job is being stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.disks import mounted
from support.wait import until
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import Job

CAP = 1_000_000


@pytest.fixture
def holeless() -> Iterator[Jobs]:
    """Jobs on a file system in memory that frees no part of a file."""
    with mounted("mode=700", kind="ramfs") as disk:
        jobs = Jobs(str(disk))
        yield jobs
        jobs.stop(*[job.id for job in jobs.list()], grace=0.1)
        jobs.close()


def cause(job: Job) -> str:
    assert job.end is not None
    return job.end.cause


@pytest.mark.req("O-04")
def test_where_nothing_can_be_freed_a_job_above_its_cap_is_stopped_and_the_newest_half_is_kept(holeless: Jobs) -> None:
    job = holeless.run(Shell("for ((i=0;;i++)); do printf '%099d\\n' $i; done", output_cap=CAP), timeout=30)

    assert (job.status, cause(job)) == ("killed", "output_cap")
    end = job.end
    assert end is not None and end.size > CAP and end.by == "its output's cap"
    text = Path(job.output_file).read_bytes()
    header, text = text[end.head : end.head + end.header].lstrip(b"\n"), text[end.head + end.header :]
    assert end.head and header.startswith(f"[{end.base - end.head:,} bytes were left out here".encode())
    assert CAP // 2 <= len(text) == end.size - end.base <= CAP
    newest = end.size // 100 - 1
    assert b"%099d\n" % newest in text[-300:]


@pytest.mark.req("O-04", "B-08")
def test_where_nothing_can_be_freed_a_job_below_its_cap_goes_on_however_fast_it_prints(holeless: Jobs) -> None:
    job = holeless.run(Shell(f"head -c {CAP * 9 // 10} /dev/zero; sleep 0.1; echo done", output_cap=CAP), timeout=30)

    assert (job.status, cause(job)) == ("completed", "exited")


@pytest.mark.req("O-04", "B-09")
@pytest.mark.serial  # how soon a keeper is woken is the point of it
def test_where_nothing_can_be_freed_one_that_ignores_term_is_not_waited_for(holeless: Jobs) -> None:
    job = holeless.start(Shell("trap '' TERM; while :; do yes | head -c 1000000; done", output_cap=CAP, grace=30))
    began = time.monotonic()

    ended = holeless.wait(job.id, timeout=20)

    assert (cause(ended), time.monotonic() - began < 5) == ("output_cap", True)
    assert os.path.getsize(ended.output_file) <= CAP


@pytest.mark.req("O-04")
@pytest.mark.serial  # how soon a keeper is woken is the point of it
def test_the_cap_holds_also_while_a_job_takes_its_time_to_end(jobs: Jobs) -> None:
    cap, second = 4_000_000, 2_000_000  # `second`: what it prints in one, for which a supervisor may get no processor
    loop = f"while :; do yes | head -c {second // 10}; sleep 0.1; done"
    job = jobs.start(Shell(f"trap '' TERM; echo up; {loop}", output_cap=cap, grace=5))
    until(lambda: os.path.getsize(job.output_file) > 0)
    child = os.fork()
    if child == 0:
        jobs.stop(job.id)
        os._exit(0)
    most = 0
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        most = max(most, os.stat(job.output_file).st_blocks * 512)
        time.sleep(0.002)

    assert most < cap + second
    ended = jobs.get(job.id)
    assert ended.end is not None
    assert (ended.end.cause, ended.end.size > cap + second) == ("stopped", True)
