"""Jobs for asyncio."""

from __future__ import annotations

import asyncio
import time

import pytest

from taskyard.jobs.async_jobs import AsyncJobs
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus
from taskyard.jobs.notices import Outbox


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


@pytest.mark.req("B-05", "B-13")
def test_whoever_runs_a_job_and_waits_for_it_is_not_told_of_its_end_again(jobs: Jobs) -> None:
    job = asyncio.run(AsyncJobs(jobs).run(Shell("exit 3"), timeout=20))
    assert job.end is not None
    assert job.end.exit_code == 3
    assert Outbox(jobs.home, None).waiting() == []


@pytest.mark.req("O-05")
def test_output_is_read_from_any_offset_by_either_kind_of_program(jobs: Jobs) -> None:
    async def work() -> list[bytes]:
        found = AsyncJobs(jobs)
        job = await found.run(Shell("printf 'one two three'"), timeout=20)
        first = await found.read(job.id, most=4)
        rest = await found.read(job.id, first.next_offset)
        assert jobs.read(job.id, 4) == rest
        return [first.text, rest.text, (await found.read(job.id, rest.next_offset)).text]

    assert asyncio.run(work()) == [b"one ", b"two three", b""]


def test_every_verb_of_a_program_that_waits_in_line_is_there_for_one_that_does_not(jobs: Jobs) -> None:
    verbs = {name for name in dir(jobs) if not name.startswith("_")}
    steps = {"home", "agent", "ask", "request", "after_start"}  # what a start is made of
    assert verbs - steps - {name for name in dir(AsyncJobs) if not name.startswith("_")} == set()


@pytest.mark.req("B-12")
def test_one_comes_after_another_however_that_ended(jobs: Jobs) -> None:
    async def work() -> list[str]:
        found = AsyncJobs(jobs)
        first = await found.start(Shell("exit 1"))
        after = await found.start(Shell("true"), after=[first.id])
        anyway = await found.start(Shell("true"), after_any=[first.id])
        ended = await found.wait_all([after.id, anyway.id], timeout=20)
        return [job.status.value for job in ended]

    assert asyncio.run(work()) == ["failed", "completed"]
