"""
A job that lives inside this program: everybody sees and steers it like any other, and its keeper is the program.

The program holds the job's lock, listens to its control pipe, and writes its end. If it dies, the lock is free and the
next look finds the job lost, like one whose keeper was killed. No process of its own: hundreds cost no more
than their work.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from taskyard.clock import now_ms
from taskyard.runtime import facts, liveness
from taskyard.runtime.context import JobContext
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.keeper import life
from taskyard.runtime.keeper.birth import Born
from taskyard.runtime.keeper.control import Wishes
from taskyard.runtime.keeper.growth import Full, Growth, kept_head
from taskyard.runtime.keeper.queue import Queue
from taskyard.runtime.keeper.request import request_of
from taskyard.runtime.kind import Outcome, in_words
from taskyard.runtime.model import End
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.runtime.kind import Handler, Spec


class Hosted:
    """One job inside this program, from its birth to its end."""

    def __init__(self, request: Mapping[str, object], spec: Spec) -> None:
        self._request = request_of(request)
        self._handler: Handler = cast("Handler", spec)
        self._folder = JobFolder(self._request.home, self._request.id)
        self._clock = Stopwatch()
        self._grace = self._request.grace
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[Outcome] | None = None

    def begin(self, ended: Callable[[], None]) -> None:
        """Let the job be seen, and start its work; `ended` is called when it is over."""
        request = self._request
        liveness.host(self._folder)  # first: another thread that asked for its keeper would give its lock back
        try:
            self._born = Born(
                self._folder,
                {**request.record, "outputHead": kept_head(request.output_cap)},
                parent=request.parent,
                event_segments=request.event_segments,
                transcript=request.transcript,
            )
        except BaseException:
            liveness.host_no_longer(self._folder)
            raise
        self._growth = Growth(self._born.descriptor, self._born.output, cap=request.output_cap, now=time.monotonic())
        self._context = JobContext(self._folder, self._born.output, append=self._append)
        self._wishes = Wishes(self._born.control)
        self._loop = asyncio.get_running_loop()
        self._stopped: asyncio.Future[End] = self._loop.create_future()  # somebody, or the clock, wants its end
        self._given_up: asyncio.Future[object] = self._loop.create_future()  # the grace is over
        self._loop.add_reader(self._born.control, self._hear)
        self._life = self._loop.create_task(self._live(), name=f"taskyard {self._folder.id}")
        self._life.add_done_callback(lambda _: ended())

    async def end(self, by: str) -> None:
        """Stop it, and wait until its end is written."""
        self._stop(End("stopped", by=by))
        await asyncio.wait([self._life])

    # -- its life ----------------------------------------------------------------------------

    async def _live(self) -> None:
        queue = Queue(self._born, self._request)
        try:
            end = await self._outcome(queue)
            self._context.close()  # code that ignores its cancellation goes on
            if self._timer is not None:
                self._timer.cancel()
            self._loop.remove_reader(self._born.control)
            self._growth.measure()
            ran, paused = (round(1000 * seconds) for seconds in self._clock.read())
            proof = end.proof or "proved"  # nothing of it is outside this program, and its code has returned
            end = end._replace(proof=proof, at=now_ms(), duration_ms=ran + paused, paused_ms=paused)
            end = end._replace(size=self._growth.size, base=self._growth.kept_from())
            told = await asyncio.to_thread(life.finish, self._born, end)
            await asyncio.to_thread(life.tell_sinks, self._born, told)
        finally:
            queue.close()
            liveness.host_no_longer(self._folder)
            self._born.close()

    async def _outcome(self, queue: Queue) -> End:
        """Wait for its turn, work, and say how it ended."""
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
            return self._stopped.result()._replace(proof="best_effort", error="its code does not let itself be stopped")
        outcome = Outcome(error="it was cancelled by its own code")
        with contextlib.suppress(asyncio.CancelledError):
            error = work.exception()
            outcome = work.result() if error is None else Outcome(error=in_words(error))
        if self._stopped.done():
            return self._stopped.result()
        self._context.facts.close(outcome)
        return facts.judged(self._folder, End("exited", 1 if outcome.error else 0))

    def _append(self, data: bytes) -> None:
        """Write to its output, below the cap; any thread of its work may call this."""
        try:
            self._growth.append(data, time.monotonic())
        except Full:
            self._loop.call_soon_threadsafe(self._stop, End("output_cap", by="its output's cap"))

    def _stop(self, end: End) -> None:
        """Have it end so, unless it is about to for another reason; a second wish can only make it faster."""
        if not self._stopped.done():
            self._stopped.set_result(end)
        if self._work is not None:
            self._work.cancel()
        self._loop.call_later(self._grace, lambda: None if self._given_up.done() else self._given_up.set_result(None))

    def _arm(self) -> None:
        """Have the time limit tell when it is reached; a pause stops it."""
        if self._timer is not None:
            self._timer.cancel()
        limit = self._request.timeout
        if limit is not None and not self._clock.is_paused:
            end = End("timeout", by=f"its time limit of {limit:g} s")
            self._timer = self._loop.call_later(limit - self._clock.read()[0], self._stop, end)

    # -- wishes ------------------------------------------------------------------------------

    def _hear(self) -> None:
        for wish in self._wishes.read():
            self._born.answer(wish, self._granted(wish))

    def _granted(self, wish: Mapping[str, object]) -> bool:
        match wish:
            case {"do": "stop"}:
                grace = wish.get("grace")
                self._grace = float(grace) if isinstance(grace, (int, float)) and grace >= 0 else self._grace
                self._stop(End("stopped", by=str(wish.get("by") or "somebody")))
                return True
            case {"do": "pause"}:
                return self._pause(on=True)
            case {"do": "resume"}:
                return self._pause(on=False)
            case {"do": "answer", "text": str(text)}:
                lines = text.removesuffix("\n").split("\n") if text else []  # as a process of its own would read them
                return all(self._context.deliver(line) for line in lines)
            case {"do": "close_input"}:
                return self._context.deliver(None)
            case _:
                return False

    def _pause(self, *, on: bool) -> bool:
        """Hold the work at its next turn, and its clock; or let both go on. Whether that changed anything."""
        if not self._clock.pause(on=on):
            return False
        self._context.pause(on=on)
        self._arm()
        self._born.change(isPaused=on, totalPausedMs=round(1000 * self._clock.read()[1]))
        return True


class Stopwatch:
    """How long something ran and how long it was paused, in seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._ran = self._paused = 0.0
        self.is_paused = False

    def start(self) -> None:
        """From now on."""
        self._since = time.monotonic()

    def pause(self, *, on: bool) -> bool:
        """Pause it, or let it go on; False if it is not running, or was so already."""
        if self._since is None or on == self.is_paused:
            return False
        self._ran, self._paused = self.read()
        self._since, self.is_paused = time.monotonic(), on
        return True

    def read(self) -> tuple[float, float]:
        """Run and paused."""
        since = 0.0 if self._since is None else time.monotonic() - self._since
        return (self._ran, self._paused + since) if self.is_paused else (self._ran + since, self._paused)
