"""
Jobs that run inside this program, which acts as their supervisor.

Other processes see and control them like any job. The program holds the job's lock, reads its control pipe,
and records its end. If the program is killed, the lock is free and the next reader finds the job lost, like
one whose supervisor was killed. There is no process per job: hundreds cost no more than their work.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from taskyard.core.system import now_ms
from taskyard.core.values import cast
from taskyard.jobs import exit_record, job_dir
from taskyard.jobs.context import JobContext
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.kind import Outcome, error_text
from taskyard.jobs.model import End
from taskyard.jobs.supervisor import run
from taskyard.jobs.supervisor.create import JobDir
from taskyard.jobs.supervisor.io import ControlReader
from taskyard.jobs.supervisor.output_cap import CapExceeded, OutputCap, head_size
from taskyard.jobs.supervisor.queue import StartQueue
from taskyard.jobs.supervisor.request import parse_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.agents.services import Services
    from taskyard.jobs.kind import Handler, Spec


class InProcessJob:
    """One job inside this program, from its creation to its recorded end."""

    def __init__(self, request: Mapping[str, object], spec: Spec, services: Services | None = None) -> None:
        self._services = services
        self._request = parse_request(request)
        self._handler: Handler = cast("Handler", spec)
        self._folder = JobPaths(self._request.home, self._request.id)
        self._clock = Stopwatch()
        self._grace = self._request.grace
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[Outcome] | None = None

    def begin(self, ended: Callable[[], None]) -> None:
        """Create the job and start its work; `ended` is called when it has ended."""
        request = self._request
        job_dir.register_in_process(
            self._folder
        )  # first: another thread that looks up its supervisor would release its lock
        try:
            self._born = JobDir(
                self._folder,
                {**request.record, "outputHead": head_size(request.output_cap)},
                parent=request.parent,
                event_segments=request.event_segments,
                transcript=request.transcript,
            )
        except BaseException:
            job_dir.unregister_in_process(self._folder)
            raise
        self._output_cap = OutputCap(
            self._born.descriptor, self._born.output, cap=request.output_cap, now=time.monotonic()
        )
        self._context = JobContext(self._folder, self._born.output, append=self._append, services=self._services)
        self._control_reader = ControlReader(self._born.control)
        self._loop = asyncio.get_running_loop()
        self._stopped: asyncio.Future[End] = self._loop.create_future()  # by request, timeout or output cap
        self._given_up: asyncio.Future[object] = self._loop.create_future()  # the grace is over
        self._loop.add_reader(self._born.control, self._hear)
        self._run_task = self._loop.create_task(self._live(), name=f"taskyard {self._folder.id}")
        self._run_task.add_done_callback(lambda _: ended())

    async def end(self, by: str) -> None:
        """Stop it, and wait until its end is recorded."""
        self._stop(End("stopped", by=by))
        await asyncio.wait([self._run_task])

    # -- run ---------------------------------------------------------------------------------

    async def _live(self) -> None:
        queue = StartQueue(self._born, self._request)
        try:
            end = await self._outcome(queue)
            self._context.close()  # code that ignores its cancellation may continue
            if self._timer is not None:
                self._timer.cancel()
            self._loop.remove_reader(self._born.control)
            self._output_cap.measure()
            ran, paused = (round(1000 * seconds) for seconds in self._clock.read())
            proof = end.proof or "proved"  # nothing of it runs outside this program, and its code has returned
            end = end._replace(proof=proof, at=now_ms(), duration_ms=ran + paused, paused_ms=paused)
            end = end._replace(size=self._output_cap.size, base=self._output_cap.kept_from())
            told = await asyncio.to_thread(run.finish_job, self._born, end)
            await asyncio.to_thread(run.notify_sinks, self._born, told)
        finally:
            queue.close()
            job_dir.unregister_in_process(self._folder)
            self._born.close()

    async def _outcome(self, queue: StartQueue) -> End:
        """Wait in the start queue, run the handler, and return how it ended."""
        while not queue.try_now():
            await asyncio.wait([self._stopped], timeout=max(queue.until - time.monotonic(), 0))
            if self._stopped.done():
                return self._stopped.result()
        self._born.change(waitsFor="", startTime=now_ms())
        self._clock.start()
        self._arm()
        self._work = self._loop.create_task(self._handler.run(self._context))
        either: list[asyncio.Future[object]] = [cast("asyncio.Future[object]", self._work), self._given_up]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return self._judged(self._work)

    def _judged(self, work: asyncio.Task[Outcome]) -> End:
        if not work.done():
            return self._stopped.result()._replace(proof="best_effort", error="its code ignores cancellation")
        outcome = Outcome(error="it was cancelled by its own code")
        with contextlib.suppress(asyncio.CancelledError):
            error = work.exception()
            outcome = work.result() if error is None else Outcome(error=error_text(error))
        if self._stopped.done():
            return self._stopped.result()
        self._context.facts.close(outcome)
        return exit_record.resolve_end(self._folder, End("exited", 1 if outcome.error else 0))

    def _append(self, data: bytes) -> None:
        """Write to its output, within the cap; any thread of its work may call this."""
        try:
            self._output_cap.append(data, time.monotonic())
        except CapExceeded:
            self._loop.call_soon_threadsafe(self._stop, End("output_cap", by="its output's cap"))

    def _stop(self, end: End) -> None:
        """Stop it with this end, unless it is ending already; a second request can only shorten the grace."""
        if not self._stopped.done():
            self._stopped.set_result(end)
        if self._work is not None:
            self._work.cancel()
        self._loop.call_later(self._grace, lambda: None if self._given_up.done() else self._given_up.set_result(None))

    def _arm(self) -> None:
        """Arm the timeout; a pause stops it."""
        if self._timer is not None:
            self._timer.cancel()
        limit = self._request.timeout
        if limit is not None and not self._clock.is_paused:
            end = End("timeout", by=f"its time limit of {limit:g} s")
            self._timer = self._loop.call_later(limit - self._clock.read()[0], self._stop, end)

    # -- control messages --------------------------------------------------------------------

    def _hear(self) -> None:
        for wish in self._control_reader.read():
            self._born.answer(wish, self._handle_control(wish))

    def _handle_control(self, wish: Mapping[str, object]) -> bool:
        match wish:
            case {"do": "stop"}:
                grace = wish.get("grace")
                self._grace = float(grace) if isinstance(grace, (int, float)) and grace >= 0 else self._grace
                self._stop(End("stopped", by=str(wish.get("by") or "another process")))
                return True
            case {"do": "pause"}:
                return self._pause(on=True)
            case {"do": "resume"}:
                return self._pause(on=False)
            case {"do": "answer", "text": str(text)}:
                lines = text.removesuffix("\n").split("\n") if text else []  # as a separate process would read them
                return all(self._context.deliver(line) for line in lines)
            case {"do": "close_input"}:
                return self._context.deliver(None)
            case _:
                return False

    def _pause(self, *, on: bool) -> bool:
        """Pause or resume the work, at its next step, and its clock; return whether that changed anything."""
        if not self._clock.pause(on=on):
            return False
        self._context.pause(on=on)
        self._arm()
        self._born.change(isPaused=on, totalPausedMs=round(1000 * self._clock.read()[1]))
        return True


class Stopwatch:
    """Run time and paused time, in seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._ran = self._paused = 0.0
        self.is_paused = False

    def start(self) -> None:
        """Start the clock."""
        self._since = time.monotonic()

    def pause(self, *, on: bool) -> bool:
        """Pause or resume; return False if it is not running, or was in that state already."""
        if self._since is None or on == self.is_paused:
            return False
        self._ran, self._paused = self.read()
        self._since, self.is_paused = time.monotonic(), on
        return True

    def read(self) -> tuple[float, float]:
        """Return the run time and the paused time."""
        since = 0.0 if self._since is None else time.monotonic() - self._since
        return (self._ran, self._paused + since) if self.is_paused else (self._ran + since, self._paused)
