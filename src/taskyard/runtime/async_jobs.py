"""Background jobs for asyncio: the same verbs, and the loop sleeps on the kernel's descriptors."""

from __future__ import annotations

import asyncio

from taskyard.runtime.folder import JobFolder
from taskyard.runtime.requests import is_inside
from taskyard.runtime.starting import TRIES, answered, is_made, understood
from taskyard.runtime.steering import asked_to_stop, outcome_of
from taskyard.runtime.waiting import is_sending_notice, next_pause, watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from taskyard.runtime.hosting import Hosted
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.kind import Spec
    from taskyard.runtime.looking import Report
    from taskyard.runtime.model import Job
    from taskyard.runtime.output import Part
    from taskyard.runtime.rate_limit import RateLimited
    from taskyard.runtime.steering import Stopped
    from taskyard.runtime.task_output import TaskOutput


#: One sleep of those who wait for a job on another machine, in seconds: nobody may give up sooner than that.
_FAR_LOOK = 2.0


class AsyncJobs:
    """The jobs of one user, for one program that waits for many things at once."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._hosted: set[Hosted] = set()

    async def start(
        self,
        spec: Spec,
        *,
        backgrounded: bool = True,
        after: Sequence[str] = (),
        after_any: Sequence[str] = (),
        window: tuple[int, int] | None = None,
        before: Callable[[str], None] | None = None,
    ) -> Job:
        """Start a job; when this returns it is there for everybody. The arguments are those of `Jobs.start`."""
        request = self._jobs.request(
            spec,
            backgrounded=backgrounded,
            after=[self.get(other).id for other in after],
            after_any=[self.get(other).id for other in after_any],
            window=window,
        )
        if before is not None:
            before(str(request["id"]))
        if is_inside(request):
            from taskyard.runtime.hosting import Hosted

            hosted = Hosted(request, spec)
            self._hosted.add(hosted)
            hosted.begin(lambda: self._hosted.discard(hosted))
            return self._jobs.after_start(self.get(str(request["id"])))
        for _ in range(TRIES):
            answer = self._jobs.ask(request)
            await _readable(answer)
            if is_made(request, answered(answer)):
                break
        else:
            understood(b"")
        return self._jobs.after_start(self.get(str(request["id"])))

    async def run(self, spec: Spec, *, timeout: float | None = None) -> Job:  # noqa: ASYNC109  # as `wait` has it
        """Start a job and wait for its end."""
        return await self.wait((await self.start(spec, backgrounded=False)).id, timeout=timeout)

    def get(self, job_id: str) -> Job:
        """One job as it is now."""
        return self._jobs.get(job_id)

    def list(self, *, ended: bool = False, report: Report | None = None) -> Sequence[Job]:
        """Every job that lives, oldest first; with `ended` also those that are over.

        `report` gets what is wrong with each that cannot be read, and is left out.
        """
        return self._jobs.list(ended=ended, report=report)

    def rate_limits(self) -> Mapping[str, RateLimited]:
        """The rate limits that hold now, by account: agents of this user on that account wait."""
        return self._jobs.rate_limits()

    def lift_rate_limit(self, account: str) -> bool:
        """Let agents on an account try again at once; whether it was limited."""
        return self._jobs.lift_rate_limit(account)

    async def wait(self, job_id: str, *, timeout: float | None = None) -> Job:  # noqa: ASYNC109  # it answers, not raises
        """The job at its end, or as it is after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                pause = 0.0
                while not (job := self.get(job_id)).is_final:
                    pause = next_pause(pause)
                    if await self._slept(job, pause):
                        pause = 0.0
                if not job.is_far and is_sending_notice(JobFolder(self._jobs.home, job_id)):
                    job = await asyncio.to_thread(self._jobs.wait, job_id)
                return job
        except TimeoutError:
            return self.get(job_id)

    async def wait_all(
        self,
        job_ids: Sequence[str],
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # as `wait` has it
    ) -> Sequence[Job]:
        """All jobs at their ends, or as they are after `timeout` seconds."""
        return await asyncio.gather(*(self.wait(job_id, timeout=timeout) for job_id in job_ids))

    async def _slept(self, job: Job, pause: float) -> bool:
        """Sleep until whoever keeps the job lets go of it; where nobody does, for so many seconds, and False."""
        if job.is_far:
            await asyncio.to_thread(lambda: self._jobs.wait(job.id, timeout=_FAR_LOOK))
            return True
        watched = watch(JobFolder(self._jobs.home, job.id))
        if watched is None:
            await asyncio.sleep(pause)
            return False
        with watched:
            await _readable(watched.fileno())
        return True

    async def output(
        self,
        job_id: str,
        *,
        timeout: float = 0.0,  # noqa: ASYNC109  # as `wait` has it
        limit: int | None = None,
        transcript: bool = False,
    ) -> TaskOutput:
        """A job with what it printed, at its end or after `timeout` seconds. An end that is seen so needs no notice."""
        await self.wait(job_id, timeout=timeout)
        return await asyncio.to_thread(lambda: self._jobs.output(job_id, limit=limit, transcript=transcript))

    async def reports(self, *, but: Container[str] = ()) -> Sequence[str]:
        """How far the agents are that this caller started: what is new since the last report, a text each, once."""
        return await asyncio.to_thread(lambda: self._jobs.reports(but=but))

    async def read(self, job_id: str, offset: int = 0, *, most: int | None = None) -> Part:
        """What a job printed from `offset` on, at most `most` bytes (1 MB); ask for more with its `next_offset`."""
        return await asyncio.to_thread(lambda: self._jobs.read(job_id, offset, most=most))

    async def stop(self, *job_ids: str, grace: float | None = None) -> Sequence[Stopped]:
        """End jobs with everything they started, and answer with proof."""
        if any(self.get(job_id).is_far for job_id in job_ids):
            return await asyncio.to_thread(lambda: self._jobs.stop(*job_ids, grace=grace))
        before, patience = asked_to_stop(self._jobs.home, job_ids, by=self._jobs.agent or "", grace=grace)
        after = await asyncio.gather(*(self.wait(job.id, timeout=patience) for job in before))
        return [outcome_of(was, now) for was, now in zip(before, after, strict=True)]

    async def ask_to_stop(self, job_id: str) -> Job:
        """As `stop`, for those who do not wait for the proof; the job as it was when it was asked."""
        return await asyncio.to_thread(self._jobs.ask_to_stop, job_id)

    async def dismiss(self, *job_ids: str) -> Sequence[Job]:
        """Leave ended jobs out of every view, and file their notices as read."""
        return await asyncio.to_thread(self._jobs.dismiss, *job_ids)

    async def pause(self, job_id: str) -> bool:
        """Stop the clock and every process of a job; False if it was paused."""
        return await asyncio.to_thread(self._jobs.pause, job_id)

    async def resume(self, job_id: str) -> bool:
        """Let a paused job go on; False if it was not paused."""
        return await asyncio.to_thread(self._jobs.resume, job_id)

    async def send(self, job_id: str, text: str, *, close: bool = False) -> bool:
        """Type into a job; False if it takes no input."""
        return await asyncio.to_thread(lambda: self._jobs.send(job_id, text, close=close))

    async def answer(self, job_id: str, text: str, *, close: bool = False) -> Job:
        """As `send`, for those who want to know why a job cannot be typed into."""
        return await asyncio.to_thread(lambda: self._jobs.answer(job_id, text, close=close))

    async def to_background(self, job_id: str, *, keep: bool = False) -> bool:
        """Say that nobody watches a job any more: its end will be told by a notice. With `keep` it outlives us."""
        return await asyncio.to_thread(lambda: self._jobs.to_background(job_id, keep=keep))

    async def close(self) -> None:
        """End the jobs that live inside this program; all others go on."""
        await asyncio.gather(*(hosted.end("the end of the program around it") for hosted in list(self._hosted)))


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)
