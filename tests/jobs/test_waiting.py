"""A wait for a job returns when its end is written and the notice of it is sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from support.ended_jobs import finish_halfway, job_folder
from taskyard.core.system import now_ms
from taskyard.jobs import exit_record
from taskyard.jobs.async_jobs import AsyncJobs
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import End, Job, JobStatus
from taskyard.jobs.notices import Outbox
from taskyard.storage.locks import RangeLock

#: Long enough that `wait` has seen the end, short against the second that it waits for a notice at most.
SLOW = 0.2

WAYS: list[Callable[[Jobs, str], Job]] = [
    lambda jobs, job_id: jobs.wait(job_id, timeout=20),
    lambda jobs, job_id: jobs.wait_all([job_id])[0],
    lambda jobs, job_id: asyncio.run(AsyncJobs(jobs).wait(job_id, timeout=20)),
]


@pytest.mark.req("B-13")
@pytest.mark.parametrize("wait", WAYS, ids=["wait", "wait_all", "asyncio"])
def test_a_wait_returns_once_the_supervisor_has_sent_the_notice(jobs: Jobs, wait: Callable[[Jobs, str], Job]) -> None:
    folder = job_folder(jobs.home)
    finish_halfway(folder, End("exited", 0, at=now_ms()))
    with RangeLock(folder.lock) as lock:
        assert lock.try_take(0)  # as the supervisor does, for its life
        slow = threading.Timer(SLOW, lambda: exit_record.complete_end(folder))
        slow.start()

        job = wait(jobs, folder.id)

        assert job.status is JobStatus.COMPLETED
        assert job.notified
        assert [notice.task_id for notice in Outbox(jobs.home).waiting()] == [folder.id]
        slow.join()


@pytest.mark.req("B-13")
@pytest.mark.parametrize("wait", WAYS, ids=["wait", "wait_all", "asyncio"])
def test_a_wait_does_not_hang_on_a_supervisor_that_cannot_send_the_notice(
    jobs: Jobs, wait: Callable[[Jobs, str], Job]
) -> None:
    folder = job_folder(jobs.home)
    finish_halfway(folder, End("exited", 3, at=now_ms()))
    with RangeLock(folder.lock) as lock:
        assert lock.try_take(0)

        job = wait(jobs, folder.id)

    assert job.status is JobStatus.FAILED
    assert not job.notified
