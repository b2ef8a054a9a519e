"""
One monitor at work: everything its source says goes to the output, what passes the filter is told in batches.

A source that says nothing for too long, that dies or comes back is told of in the same batches.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from taskyard.errors import StorageError
from taskyard.kinds.monitoring.batch import Batch
from taskyard.kinds.monitoring.filter import Filter
from taskyard.kinds.monitoring.lines import Lines, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.runtime.context import JobContext

#: Seconds by which a sleep may be late; after a longer one the whole process was paused, and its source with it.
_LATE = 5.0


class Watch:
    """What is heard, kept and told."""

    def __init__(
        self,
        context: JobContext,
        *,
        filter: str | None = None,
        every: float,
        silence: float | None = None,
        notices: bool = True,
    ) -> None:
        self._context = context
        self._filter = None if filter is None else Filter(filter)
        self._batch = Batch(every)
        self._silence = silence
        self._notices = notices
        self._lines = Lines()
        self._heard_at = time.monotonic()
        self._is_silent = False
        self._woken = asyncio.Event()
        self._events = self._held = 0

    # -- what comes --------------------------------------------------------------------------

    def raw(self, data: bytes) -> None:
        """Bytes of a command's output."""
        self._context.write(data.decode("utf-8", "surrogateescape"))
        self._take_in(self._lines.fed(data))

    def line_ended(self) -> None:
        """The source is at its end: what it said last is a line, also without a sign of it."""
        last = list(self._lines.rest())
        if last:
            self._context.write("\n")
        self._take_in(last)

    def event(self, line: str) -> None:
        """One event, as a line."""
        self._context.write(f"{line}\n")
        self._take_in([line.encode("utf-8", "replace")])

    def note(self, text: str) -> None:
        """Something the monitor itself has to say."""
        self._context.write(f"[monitor: {text}]\n")
        self._batch.note(f"[{text}]", time.monotonic())
        self._woken.set()

    def _take_in(self, lines: Iterable[bytes]) -> None:
        now = time.monotonic()
        before = (self._batch.due, self._is_silent)
        counted = 0
        for line in lines:
            self._heard_at, self._is_silent = now, False
            if self._filter is None and self._batch.is_full:
                counted += 1
                continue
            text = shown(line)
            if self._filter is None or self._filter.passes(text):
                self._events += 1
                self._batch.add(text, now)
        self._events += counted
        self._batch.count(counted, now)
        if (self._batch.due, self._is_silent) != before:
            self._woken.set()

    # -- what is told ------------------------------------------------------------------------

    async def tell(self) -> None:
        """Tell what is due, when it is due, without end."""
        while True:
            self._woken.clear()
            self._tell_what_is_due(time.monotonic())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self._until())

    async def tell_the_rest(self) -> None:
        """Tell what waits, as soon as the pace allows: the source is at its end."""
        if self._batch.due is not None:
            await asyncio.sleep(self._batch.soonest(now := time.monotonic()) - now)
            self._tell_now(time.monotonic())

    def leave(self) -> None:
        """Tell what waits if it may be told at once, and write down the counts: the monitor is being ended."""
        now = time.monotonic()
        if self._batch.due is not None and self._batch.soonest(now) <= now:
            self._tell_now(now)
        self._write_down(self._batch.size())

    def _until(self) -> float | None:
        moments = [self._batch.due, self._silent_at()]
        first = min((moment for moment in moments if moment is not None), default=None)
        return None if first is None else max(first - time.monotonic(), 0.0)

    def _silent_at(self) -> float | None:
        return None if self._silence is None or self._is_silent else self._heard_at + self._silence

    def _tell_what_is_due(self, now: float) -> None:
        if self._batch.due is not None and now >= self._batch.due:
            self._tell_now(now)
        if self._silence is not None and (at := self._silent_at()) is not None and now >= at:
            if now > at + _LATE:
                self._heard_at = now
            else:
                self._is_silent = True
                self.note(f"no event for {self._silence:g} s")

    def _tell_now(self, now: float) -> None:
        waiting = self._batch.size()
        text, held = self._batch.take(now)
        if not self._is_told(text):
            self._batch.count(waiting, now)
            return
        self._held += held
        self._write_down(0)

    def _is_told(self, text: str) -> bool:
        """Tell it; False if there is no room on the disk, or its receiver has not read what came before."""
        try:
            return not self._notices or self._context.notify(text, what="Monitor event")
        except StorageError:
            return False

    def _write_down(self, waiting: int) -> None:
        if self._events:
            with contextlib.suppress(StorageError):  # next time
                self._context.tell(events=self._events, heldBack=self._held + waiting)
