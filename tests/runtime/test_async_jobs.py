"""Jobs for asyncio."""

from __future__ import annotations

import asyncio
import time

import pytest

from taskyard.kinds.shell import Shell
from taskyard.runtime.async_jobs import AsyncJobs
from taskyard.runtime.jobs import Jobs
from taskyard.runtime.model import JobStatus


@pytest.mark.req("B-13")
def test_many_jobs_are_started_and_waited_for_at_once(jobs: Jobs) -> None:
    async def work() -> list[int | None]:
        found = AsyncJobs(jobs)
        started = await asyncio.gather(*(found.start(Shell(f"exit {number}")) for number in range(10)))
        ended = await asyncio.gather(*(found.wait(job.id, timeout=20) for job in started))
        return [job.end.exit_code for job in ended if job.end is not None]

    assert asyncio.run(work()) == list(range(10))


@pytest.mark.req("B-13")
def test_waiting_ends_at_its_time_or_when_it_is_given_up_and_the_job_goes_on(jobs: Jobs) -> None:
    async def work() -> tuple[JobStatus, JobStatus, str]:
        found = AsyncJobs(jobs)
        job = await found.start(Shell("sleep 60"))
        began = time.monotonic()
        seen = await found.wait(job.id, timeout=0.1)
        assert time.monotonic() - began < 5
        waiting = asyncio.create_task(found.wait(job.id))
        await asyncio.sleep(0)
        waiting.cancel()
        still = found.get(job.id).status
        stopped = await found.stop(job.id)
        return seen.status, still, stopped[0].outcome

    assert asyncio.run(work()) == (JobStatus.RUNNING, JobStatus.RUNNING, "stopped")


@pytest.mark.req("B-13", "B-14")
def test_a_job_is_paused_answered_and_resumed_without_stopping_the_loop(jobs: Jobs) -> None:
    async def work() -> list[bool]:
        found = AsyncJobs(jobs)
        job = await found.start(Shell("read -r x; exit 0", stdin=True))
        done = [await found.pause(job.id), await found.resume(job.id), await found.send(job.id, "y\n")]
        return [*done, (await found.wait(job.id, timeout=10)).status is JobStatus.COMPLETED]

    assert asyncio.run(work()) == [True] * 4
