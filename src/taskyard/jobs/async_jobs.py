"""Background jobs for asyncio: the API of `Jobs`, waiting on kernel descriptors in the event loop."""

from __future__ import annotations

import asyncio

from taskyard.jobs.control import request_stop, stop_result
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.start import MAX_TRIES, check_reply, is_created, is_in_process, read_reply
from taskyard.jobs.wait import is_sending_notice, next_pause, watch_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from taskyard.agents.services import Services
    from taskyard.jobs.control import StopResult
    from taskyard.jobs.in_process import InProcessJob
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.kind import Spec
    from taskyard.jobs.model import Job
    from taskyard.jobs.output import OutputChunk, TaskOutput
    from taskyard.jobs.query import Report
    from taskyard.jobs.rate_limit import RateLimited


#: Seconds of one wait for a job on another host; a cancellation takes effect no sooner.
_REMOTE_POLL = 2.0


class AsyncJobs:
    """Background jobs of one user, for one asyncio program."""

    def __init__(self, jobs: Jobs, services: Services | None = None) -> None:
        """`services` are for jobs of agents inside this program; see `JobContext.services`."""
        self._jobs = jobs
        self._services = services
        self._in_process_jobs: set[InProcessJob] = set()

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
        """Start a job; when this returns, every process can see it. The arguments are those of `Jobs.start`."""
        request = self._jobs.request(
            spec,
            backgrounded=backgrounded,
            after=[self.get(other).id for other in after],
            after_any=[self.get(other).id for other in after_any],
            window=window,
        )
        if before is not None:
            before(str(request["id"]))
        if is_in_process(request):
            from taskyard.jobs.in_process import InProcessJob

            hosted = InProcessJob(request, spec, self._services)
            self._in_process_jobs.add(hosted)
            hosted.begin(lambda: self._in_process_jobs.discard(hosted))
            return self._jobs.after_start(self.get(str(request["id"])))
        for _ in range(MAX_TRIES):
            answer = self._jobs.ask(request)
            await _wait_readable(answer)
            if is_created(request, read_reply(answer)):
                break
        else:
            check_reply(b"")
        return self._jobs.after_start(self.get(str(request["id"])))

    async def run(self, spec: Spec, *, timeout: float | None = None) -> Job:  # noqa: ASYNC109  # as `wait` has it
        """Start a job and wait until it ends."""
        return await self.wait((await self.start(spec, backgrounded=False)).id, timeout=timeout)

    def get(self, job_id: str) -> Job:
        """Return one job as it is now."""
        return self._jobs.get(job_id)

    def list(self, *, ended: bool = False, report: Report | None = None) -> Sequence[Job]:
        """Return live jobs, oldest first; with `ended` also ended ones.

        `report` receives the error of each unreadable job, which is left out.
        """
        return self._jobs.list(ended=ended, report=report)

    def rate_limits(self) -> Mapping[str, RateLimited]:
        """Return the active rate limits by account: agents of this user on that account wait."""
        return self._jobs.rate_limits()

    def lift_rate_limit(self, account: str) -> bool:
        """Let agents on an account try again at once; return whether it was limited."""
        return self._jobs.lift_rate_limit(account)

    async def wait(self, job_id: str, *, timeout: float | None = None) -> Job:  # noqa: ASYNC109  # it answers, not raises
        """Return the job once it has ended, or as it is after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                pause = 0.0
                while not (job := self.get(job_id)).is_final:
                    pause = next_pause(pause)
                    if await self._wait_exit(job, pause):
                        pause = 0.0
                if not job.is_on_other_host and is_sending_notice(JobPaths(self._jobs.home, job_id)):
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
        """Return all jobs once they have ended, or as they are after `timeout` seconds."""
        return await asyncio.gather(*(self.wait(job_id, timeout=timeout) for job_id in job_ids))

    async def _wait_exit(self, job: Job, pause: float) -> bool:
        """Sleep until the supervisor closes the job; without a supervisor sleep `pause` seconds and return False."""
        if job.is_on_other_host:
            await asyncio.to_thread(lambda: self._jobs.wait(job.id, timeout=_REMOTE_POLL))
            return True
        watched = watch_exit(JobPaths(self._jobs.home, job.id))
        if watched is None:
            await asyncio.sleep(pause)
            return False
        with watched:
            await _wait_readable(watched.fileno())
        return True

    async def output(
        self,
        job_id: str,
        *,
        timeout: float = 0.0,  # noqa: ASYNC109  # as `wait` has it
        limit: int | None = None,
        transcript: bool = False,
    ) -> TaskOutput:
        """Return a job with its output once it ended, or after `timeout` seconds; its notice counts as delivered."""
        await self.wait(job_id, timeout=timeout)
        return await asyncio.to_thread(lambda: self._jobs.output(job_id, limit=limit, transcript=transcript))

    async def reports(self, *, exclude: Container[str] = ()) -> Sequence[str]:
        """Return progress reports of the agents this caller started: what is new since the last call, a text each."""
        return await asyncio.to_thread(lambda: self._jobs.reports(exclude=exclude))

    async def read(self, job_id: str, offset: int = 0, *, most: int | None = None) -> OutputChunk:
        """Return the output from `offset` on, at most `most` bytes (default 64 KiB); continue at `next_offset`."""
        return await asyncio.to_thread(lambda: self._jobs.read(job_id, offset, most=most))

    async def stop(self, *job_ids: str, grace: float | None = None) -> Sequence[StopResult]:
        """Stop jobs with everything they started; return the results with proof."""
        if any(self.get(job_id).is_on_other_host for job_id in job_ids):
            return await asyncio.to_thread(lambda: self._jobs.stop(*job_ids, grace=grace))
        before, patience = request_stop(self._jobs.home, job_ids, by=self._jobs.agent or "", grace=grace)
        after = await asyncio.gather(*(self.wait(job.id, timeout=patience) for job in before))
        return [stop_result(was, now) for was, now in zip(before, after, strict=True)]

    async def ask_to_stop(self, job_id: str) -> Job:
        """Request a stop without waiting for the proof; return the job as it was."""
        return await asyncio.to_thread(self._jobs.ask_to_stop, job_id)

    async def dismiss(self, *job_ids: str) -> Sequence[Job]:
        """Hide ended jobs from every view, and file their notices as read."""
        return await asyncio.to_thread(self._jobs.dismiss, *job_ids)

    async def pause(self, job_id: str) -> bool:
        """Stop the clock and every process of a job; return False if it was paused."""
        return await asyncio.to_thread(self._jobs.pause, job_id)

    async def resume(self, job_id: str) -> bool:
        """Resume a paused job; return False if it was not paused."""
        return await asyncio.to_thread(self._jobs.resume, job_id)

    async def send(self, job_id: str, text: str, *, close: bool = False) -> bool:
        """Write to a job's input; return False if it takes no input."""
        return await asyncio.to_thread(lambda: self._jobs.send(job_id, text, close=close))

    async def answer(self, job_id: str, text: str, *, close: bool = False) -> Job:
        """Write to a job's input as `send` does, with an error that states why it cannot be."""
        return await asyncio.to_thread(lambda: self._jobs.answer(job_id, text, close=close))

    async def to_background(self, job_id: str, *, keep: bool = False) -> bool:
        """Move a job to the background: a notice reports its end. With `keep` it outlives this program."""
        return await asyncio.to_thread(lambda: self._jobs.to_background(job_id, keep=keep))

    async def close(self) -> None:
        """Stop the in-process jobs of this program; all others keep running."""
        await asyncio.gather(
            *(hosted.end("the end of the program around it") for hosted in list(self._in_process_jobs))
        )


async def _wait_readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)
