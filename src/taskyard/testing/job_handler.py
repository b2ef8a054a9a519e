"""Conformance checks for job kinds; they run real jobs in a temporary home."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time

from taskyard.core.system import is_running, stat_fields
from taskyard.core.values import NamedTuple
from taskyard.errors import JobEnded
from taskyard.jobs.async_jobs import AsyncJobs
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kind import letter_of
from taskyard.jobs.model import JobStatus, is_job_id
from taskyard.jobs.notices import Outbox
from taskyard.yard.async_yard import YardServices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.jobs.kind import Spec
    from taskyard.jobs.model import Job
    from taskyard.jobs.notice import Notice

#: Seconds for any step.
_TIMEOUT = 20.0

_STOP_FROM_OUTSIDE = (
    "import sys; from taskyard.jobs.jobs import Jobs; jobs = Jobs(sys.argv[1]);"
    " assert [job.id for job in jobs.list()] == [sys.argv[2]], 'another process does not see it';"
    " print(jobs.stop(sys.argv[2])[0].outcome)"
)


class JobSamples(NamedTuple):
    """Factories of three jobs of one kind."""

    quick: Callable[[], Spec]  #: completes within seconds
    failing: Callable[[], Spec]  #: fails within seconds
    endless: Callable[[], Spec]  #: runs until it is stopped


class JobCheck(NamedTuple):
    """An empty home, and the jobs in it."""

    home: str
    jobs: AsyncJobs
    kind: JobSamples

    async def ended(self, spec: Spec) -> Job:
        """Start a job in the background and return it when it has ended."""
        return await self.jobs.wait((await self.jobs.start(spec)).id, timeout=_TIMEOUT)

    def notices(self) -> list[Notice]:
        """Take and acknowledge all notices."""
        box = Outbox(self.home, "checker")
        told = box.take()
        box.ack([notice.id for notice in told])
        return list(told)


def check_job_handler(*, quick: Callable[[], Spec], failing: Callable[[], Spec], endless: Callable[[], Spec]) -> None:
    """Assert the guarantees of every job kind.

    Args:
        quick: Makes a job that completes within seconds.
        failing: Makes a job that fails within seconds.
        endless: Makes a job that runs until it is stopped.
    """
    kind = JobSamples(quick, failing, endless)
    for check in _CHECKS:
        with tempfile.TemporaryDirectory(prefix="taskyard-check-") as home:
            try:
                asyncio.run(_run_check(check, home, kind))
            except AssertionError as error:
                raise AssertionError(f"{check.__name__.strip('_').replace('_', ' ')}: {error}") from error


async def _run_check(check: Callable[[JobCheck], object], home: str, kind: JobSamples) -> None:
    jobs = Jobs(home, agent="checker")
    yard = JobCheck(home, AsyncJobs(jobs, YardServices()), kind)
    try:
        done = check(yard)
        if asyncio.iscoroutine(done):
            await done
    finally:
        left = [job.id for job in jobs.list()]
        await yard.jobs.stop(*left, grace=0.1)
        await yard.jobs.close()
        jobs.close()


async def _a_start_returns_a_job_that_every_process_sees(yard: JobCheck) -> None:
    spec = yard.kind.endless()
    job = await yard.jobs.start(spec)
    assert is_job_id(job.id), f"{job.id} is no id"
    assert job.id[0] == letter_of(spec), f"{job.id} does not begin with {letter_of(spec)}"
    assert (job.type, job.status) == (spec.type, JobStatus.RUNNING), f"{job.type} is {job.status}"
    assert job.description and job.description.isprintable(), f"{job.description!r} is nothing to show"
    assert _exists(job.output_file), "there is no output file"
    assert [each.id for each in yard.jobs.list()] == [job.id], "it is not in the list"


async def _what_goes_well_is_completed_and_notified_once(yard: JobCheck) -> None:
    ended = await yard.ended(yard.kind.quick())
    assert ended.status is JobStatus.COMPLETED, f"{ended.status}: {ended.end}"
    assert ended.end is not None and ended.end.proof == "proved", f"{ended.end}"
    assert ended.end_time is not None and ended.end_time >= ended.start_time, "it ended before it began"
    await _assert_notified(yard, ended.id, "completed")


async def _what_fails_is_never_completed_and_says_why(yard: JobCheck) -> None:
    ended = await yard.ended(yard.kind.failing())
    assert ended.status is JobStatus.FAILED, f"{ended.status}: {ended.end}"
    assert ended.end is not None and (ended.end.error or ended.end.exit_code), f"it does not say why: {ended.end}"
    await _assert_notified(yard, ended.id, "failed")


async def _a_stop_ends_it_once_and_for_all(yard: JobCheck) -> None:
    spec = yard.kind.endless()
    job = await yard.jobs.start(spec)
    began = time.monotonic()
    [stopped] = await yard.jobs.stop(job.id)
    took = time.monotonic() - began
    assert stopped.outcome == "stopped", f"the answer is {stopped.outcome}: {stopped.job.end}"
    assert took < spec.wanted().grace + 5, f"it took {took:.1f} s"
    assert stopped.job.status is JobStatus.KILLED, f"it is {stopped.job.status}"
    [again] = await yard.jobs.stop(job.id)
    assert again.outcome == "already_ended", f"a second stop answers {again.outcome}"
    assert again.job == stopped.job, "a second stop changed how it ended"
    await _assert_notified(yard, job.id, "killed")
    try:
        await yard.jobs.send(job.id, "too late")
    except JobEnded:
        pass
    else:
        raise AssertionError("something could be sent to it after its end")


async def _another_process_sees_and_stops_it(yard: JobCheck) -> None:
    job = await yard.jobs.start(yard.kind.endless())
    command = [sys.executable, "-P", "-c", _STOP_FROM_OUTSIDE, yard.home, job.id]
    ran = await asyncio.to_thread(
        lambda: subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    )
    assert ran.stdout.strip() == "stopped", f"the other process was answered {ran.stdout}{ran.stderr}"
    assert yard.jobs.get(job.id).status is JobStatus.KILLED, "it goes on"


async def _a_queued_job_is_pending_and_can_be_stopped(yard: JobCheck) -> None:
    first = await yard.jobs.start(yard.kind.endless())
    waits = await yard.jobs.start(yard.kind.quick(), after=[first.id])
    for _ in range(200):
        if yard.jobs.get(waits.id).status is JobStatus.PENDING:
            break
        await asyncio.sleep(0.01)
    pending = yard.jobs.get(waits.id)
    assert (pending.status, first.id in pending.waits_for) == (JobStatus.PENDING, True), f"{pending}"
    await yard.jobs.stop(waits.id)
    ended = yard.jobs.get(waits.id)
    assert ended.status is JobStatus.KILLED, f"it is {ended.status}"
    assert ended.end is not None and ended.end.size == 0, "it ran"


async def _a_wait_is_bounded_and_answers_with_how_things_are(yard: JobCheck) -> None:
    job = await yard.jobs.start(yard.kind.endless())
    assert (await yard.jobs.wait(job.id, timeout=0.05)).status is JobStatus.RUNNING, "it ended, or the wait lied"


async def _a_job_whose_supervisor_is_killed_is_lost_and_nothing_of_it_runs(yard: JobCheck) -> None:
    spec = yard.kind.endless()
    job = await yard.jobs.start(spec)
    if job.is_inside:
        return  # it ends with its program, which is this one
    keeper = supervisor_pid(JobPaths(yard.home, job.id))
    assert keeper, "it has no supervisor"
    os.kill(keeper, signal.SIGKILL)
    if spec.wanted().resumes:
        await _assert_recovered(yard, job.id)
        return
    ended = await yard.jobs.wait(job.id, timeout=_TIMEOUT)
    assert ended.end is not None and ended.end.cause == "lost", f"{ended.end}"
    assert (ended.status, ended.end.proof) == (JobStatus.FAILED, "best_effort"), f"{ended.end}"
    fields = stat_fields(str(ended.pid))
    assert fields is None or not is_running(str(ended.pid), fields), f"process {ended.pid} runs on"  # zombies do not
    await _assert_notified(yard, job.id, "failed")


async def _assert_recovered(yard: JobCheck, job_id: str) -> None:
    """Assert that work on a remote is followed by a new supervisor, and can be stopped through it."""
    assert (await yard.jobs.wait(job_id, timeout=0.5)).status is JobStatus.RUNNING, "it ended with its supervisor"
    assert supervisor_pid(JobPaths(yard.home, job_id)), "no supervisor runs it now"
    [stopped] = await yard.jobs.stop(job_id)
    assert stopped.outcome == "stopped", f"a stop is answered {stopped.outcome}: {stopped.job.end}"
    await _assert_notified(yard, job_id, "killed")


def _exists(path: str) -> bool:
    return os.path.exists(path)


async def _assert_notified(yard: JobCheck, job_id: str, status: str) -> None:
    """Assert that the receiver gets exactly one notice; none for a silent kind, or one for users only."""
    wanted = yard.kind.quick().wanted()
    expected = [] if wanted.is_silent or wanted.is_for_people else [(job_id, status)]
    until = time.monotonic() + _TIMEOUT
    while not (told := [(notice.task_id, notice.status) for notice in yard.notices()]):
        if not expected or time.monotonic() > until:
            break
        await asyncio.sleep(0.01)  # the end is written first, then the notice
    assert told == expected, f"its receiver was told {told}, not {expected}"


_CHECKS = (
    _a_start_returns_a_job_that_every_process_sees,
    _what_goes_well_is_completed_and_notified_once,
    _what_fails_is_never_completed_and_says_why,
    _a_stop_ends_it_once_and_for_all,
    _another_process_sees_and_stops_it,
    _a_queued_job_is_pending_and_can_be_stopped,
    _a_wait_is_bounded_and_answers_with_how_things_are,
    _a_job_whose_supervisor_is_killed_is_lost_and_nothing_of_it_runs,
)
