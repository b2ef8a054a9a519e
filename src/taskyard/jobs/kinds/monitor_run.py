"""Runs in the job process of a monitor: read the source, store all of it, send rate-limited notices.

`run_monitor` reads one source, repeatedly with `reconnect`, until it ends. Everything goes to the job's
output; lines that pass the filter are events and are sent in batches: at most one notice each 2 s and 4 kB,
with a count of what did not fit. The first lines of a burst are sent, because they show what happened; the
rest is only counted. Silence, loss and return of the source are reported in the same batches.

The filter is a regular expression on untrusted lines. Python's engine backtracks, so that a bad expression
can take practically forever for a short line; but it checks for signals meanwhile: a timer of this process's
CPU time, which counts neither pauses nor load of the machine, interrupts the search. A line that could not be
judged passes, because no event may be missed; a filter that fails repeatedly ends the monitor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time

from taskyard import config
from taskyard.core import subprocesses
from taskyard.core.installation import GcPause
from taskyard.core.values import NamedTuple
from taskyard.errors import MissingExtra, StorageError
from taskyard.jobs.kind import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from taskyard.jobs.context import JobContext
    from taskyard.jobs.kinds.monitor import Monitor


#: Minimum seconds between two notices (rate limit).
MIN_NOTICE_INTERVAL = 2.0

#: Bytes of the text of one notice, as a model receives it.
MAX_NOTICE_BYTES = 4096

#: Seconds in which the lines of one burst are collected.
_BATCH_DELAY = 0.2

#: Characters of one line; a model that needs more reads the output.
_MAX_LINE_CHARS = 1_000

#: Bytes reserved for notes of the monitor itself, and for the count.
_NOTE_BYTES, _COUNT_BYTES = 700, 80


class NoticeBatch:
    """Collects events for the next notice."""

    def __init__(self, every: float = MIN_NOTICE_INTERVAL) -> None:
        self._every = max(every, MIN_NOTICE_INTERVAL)
        self._lines: list[str] = []
        self._notes: list[str] = []
        self._room = MAX_NOTICE_BYTES - _NOTE_BYTES - _COUNT_BYTES
        self._held = 0
        self._last = float("-inf")
        self.due: float | None = None  #: when the notice may be sent; None: there is nothing to send

    @property
    def is_full(self) -> bool:
        """Whether nothing more fits, so that events are only counted."""
        return self._room <= 0

    def add(self, line: str, now: float) -> None:
        """Add an event; a long one is cut."""
        text = _cut(line, _MAX_LINE_CHARS)
        size = escaped_size(text) + 1
        if self.is_full or size > self._room:
            self._room = 0  # a later event must not be shown in place of one that was left out
            self._held += 1
        else:
            self._lines.append(text)
            self._room -= size
        self._is_due(now)

    def count(self, events: int, now: float) -> None:
        """Add events to the count only."""
        if events:
            self._held += events
            self._is_due(now)

    def note(self, text: str, now: float) -> None:
        """Add a note of the monitor itself; the last one always fits."""
        self._notes.append(_cut(text, 200))
        while len(self._notes) > 1 and sum(escaped_size(each) + 1 for each in self._notes) > _NOTE_BYTES:
            del self._notes[0]
        self._is_due(now)

    def take(self, now: float) -> tuple[str, int]:
        """Return the text of the notice and the number of events it does not show, and start the next batch."""
        held = self._held
        more = [f"… and {held:,} more {'line' if held == 1 else 'lines'} held back"] if held else []
        text = "\n".join([*self._lines, *more, *self._notes])
        self._lines, self._notes, self._held = [], [], 0
        self._room, self._last, self.due = MAX_NOTICE_BYTES - _NOTE_BYTES - _COUNT_BYTES, now, None
        return text, held

    def size(self) -> int:
        """Return the number of waiting events."""
        return len(self._lines) + self._held

    def earliest_notice(self, now: float) -> float:
        """Return when the last notice may be sent, if nothing more will come."""
        return max(now, self._last + MIN_NOTICE_INTERVAL)

    def _is_due(self, now: float) -> None:
        if self.due is None:
            self.due = max(now + _BATCH_DELAY, self._last + self._every)


def escaped_size(text: str) -> int:
    """Return the bytes of a text in a notice, where markup characters are escaped."""
    return len(text.encode("utf-8", "replace")) + 4 * sum(map(text.count, "<>&"))


def _cut(text: str, most: int) -> str:
    """Cut a text to `most` characters and append how much follows."""
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,} characters)"


#: CPU seconds for one line.
_MATCH_TIMEOUT = 0.25

#: Lines on which a filter may time out; after that it only costs time.
_MAX_FILTER_FAILURES = 3


class FilterTooSlow(Exception):
    """The expression timed out on too many lines."""


class _MatchTimeout(Exception):
    """The expression timed out on this line."""


class LineFilter:
    """A regular expression with a CPU time limit; main thread only, where signals arrive."""

    def __init__(self, pattern: str) -> None:
        import re

        self._pattern = re.compile(pattern)
        self._failures = 0
        signal.signal(signal.SIGVTALRM, _on_match_timer)

    def passes(self, line: str) -> bool:
        """Return whether the expression is found in the line, or timed out.

        Raises:
            FilterTooSlow: It timed out on `_MAX_FILTER_FAILURES` lines.
        """
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, _MATCH_TIMEOUT)
            try:
                return self._pattern.search(line) is not None
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except _MatchTimeout:
            self._failures += 1
            if self._failures >= _MAX_FILTER_FAILURES:
                raise FilterTooSlow(
                    f"its filter takes more than {_MATCH_TIMEOUT:g} s for a line: "
                    "write it without repeats inside repeats"
                ) from None
            return True


def _on_match_timer(*_: object) -> None:
    raise _MatchTimeout


#: Bytes of a line that are kept.
MAX_LINE_BYTES = 8192


class LineSplitter:
    """Splits a stream of bytes into lines, with a bound on what is kept of an unterminated line."""

    def __init__(self) -> None:
        self._start = b""  # of the unterminated line

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that end in `data`, each cut to `MAX_LINE_BYTES`."""
        *ended, rest = data.split(b"\n")
        for line in ended:
            yield (self._start + line[: MAX_LINE_BYTES - len(self._start)]) if self._start else line[:MAX_LINE_BYTES]
            self._start = b""
        self._start += rest[: MAX_LINE_BYTES - len(self._start)]

    def rest(self) -> Iterator[bytes]:
        """Yield the last line, if it is unterminated."""
        if self._start:
            yield self._start
        self._start = b""


def format_line(line: bytes) -> str:
    """Return a line as text on one line, without terminal control codes."""
    text = line.decode("utf-8", "replace")
    if text.isprintable():
        return text
    from taskyard.core.subprocesses import decode_plain
    from taskyard.core.text import escape_control

    return escape_control(decode_plain(line)).strip()


#: Seconds by which a sleep may be late; after a longer delay the whole process was paused, and its source with it.
_MAX_TIMER_LAG = 5.0


class EventReporter:
    """Stores, filters and reports the events of one source."""

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
        self._filter = None if filter is None else LineFilter(filter)
        self._batch = NoticeBatch(every)
        self._silence = silence
        self._notices = notices
        self._lines = LineSplitter()
        self._last_event_at = time.monotonic()
        self._is_silent = False
        self._woken = asyncio.Event()
        self._events = self._held = 0

    # -- input -------------------------------------------------------------------------------

    def raw(self, data: bytes) -> None:
        """Process bytes of a command's output."""
        self._context.write(data.decode("utf-8", "surrogateescape"))
        self._take_in(self._lines.feed(data))

    def flush_line(self) -> None:
        """Process the last line of an ended source, also if it is unterminated."""
        last = list(self._lines.rest())
        if last:
            self._context.write("\n")
        self._take_in(last)

    def event(self, line: str) -> None:
        """Process one event, given as a line."""
        self._context.write(f"{line}\n")
        self._take_in([line.encode("utf-8", "replace")])

    def note(self, text: str) -> None:
        """Report something about the monitor itself."""
        self._context.write(f"[monitor: {text}]\n")
        self._batch.note(f"[{text}]", time.monotonic())
        self._woken.set()

    def _take_in(self, lines: Iterable[bytes]) -> None:
        now = time.monotonic()
        before = (self._batch.due, self._is_silent)
        counted = 0
        for line in lines:
            self._last_event_at, self._is_silent = now, False
            if self._filter is None and self._batch.is_full:
                counted += 1
                continue
            text = format_line(line)
            if self._filter is None or self._filter.passes(text):
                self._events += 1
                self._batch.add(text, now)
        self._events += counted
        self._batch.count(counted, now)
        if (self._batch.due, self._is_silent) != before:
            self._woken.set()

    # -- notices -----------------------------------------------------------------------------

    async def tell(self) -> None:
        """Send notices when they are due, forever."""
        while True:
            self._woken.clear()
            self._notify_if_due(time.monotonic())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self._until())

    async def notify_remaining(self) -> None:
        """Send what is waiting as soon as the rate limit allows, after the source has ended."""
        if self._batch.due is not None:
            await asyncio.sleep(self._batch.earliest_notice(now := time.monotonic()) - now)
            self._tell_now(time.monotonic())

    def leave(self) -> None:
        """Send what is waiting if the rate limit allows it now, and save the counts: the monitor is being stopped."""
        now = time.monotonic()
        if self._batch.due is not None and self._batch.earliest_notice(now) <= now:
            self._tell_now(now)
        self._save_counts(self._batch.size())

    def _until(self) -> float | None:
        moments = [self._batch.due, self._idle_deadline()]
        first = min((moment for moment in moments if moment is not None), default=None)
        return None if first is None else max(first - time.monotonic(), 0.0)

    def _idle_deadline(self) -> float | None:
        return None if self._silence is None or self._is_silent else self._last_event_at + self._silence

    def _notify_if_due(self, now: float) -> None:
        if self._batch.due is not None and now >= self._batch.due:
            self._tell_now(now)
        if self._silence is not None and (at := self._idle_deadline()) is not None and now >= at:
            if now > at + _MAX_TIMER_LAG:
                self._last_event_at = now
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
        self._save_counts(0)

    def _is_told(self, text: str) -> bool:
        """Send a notice; False if the disk is full, or the receiver has not read the earlier ones."""
        try:
            return not self._notices or self._context.notify(text, what="Monitor event")
        except StorageError:
            return False

    def _save_counts(self, waiting: int) -> None:
        if self._events:
            with contextlib.suppress(StorageError):  # saved with the next notice
                self._context.tell(events=self._events, heldBack=self._held + waiting)


_CHUNK = 65536

#: Seconds before a lost source is retried: initial and maximum backoff; a source that ran longer resets it.
_RECONNECT_DELAY, _MAX_RECONNECT_DELAY = 1.0, 60.0


class SourceExit(NamedTuple):
    """How a source ended."""

    why: str
    is_failure: bool


async def run_monitor(monitor: Monitor, context: JobContext) -> Outcome:
    """Watch the source until it ends."""
    notices = monitor.notices and config.load_settings().monitor_notices
    heard = EventReporter(context, filter=monitor.filter, every=monitor.every, silence=monitor.silence, notices=notices)
    hearing = asyncio.create_task(_watch_source(monitor, heard))
    notifying = asyncio.create_task(heard.tell())
    try:
        both: list[asyncio.Task[object]] = [hearing, notifying]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if notifying.done():
            notifying.result()  # it ends only by an exception, which fails the monitor
        gone = hearing.result()
        await _cancel_tasks(notifying)
        await heard.notify_remaining()
    finally:
        await _cancel_tasks(hearing, notifying)
        heard.leave()
    return Outcome(error=gone.why) if gone.is_failure else Outcome(gone.why)


async def _cancel_tasks(*tasks: asyncio.Task[object]) -> None:
    """Cancel tasks and wait for them; every wait in their cleanup is bounded."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _watch_source(monitor: Monitor, heard: EventReporter) -> SourceExit:
    delay = _RECONNECT_DELAY
    began: Callable[[], object] = bool  # the first start is not reported
    while True:
        start = time.monotonic()
        try:
            gone = await _read_source(monitor, heard, began)
            heard.flush_line()
        except FilterTooSlow as error:
            return SourceExit(str(error), is_failure=True)
        if not monitor.reconnect:
            return gone
        if time.monotonic() - start > _MAX_RECONNECT_DELAY:
            delay = _RECONNECT_DELAY
        heard.note(f"the source is lost: {gone.why}; next try in {delay:g} s")
        began = _reconnect_note(heard)
        await asyncio.sleep(delay)
        delay = min(delay * 2, _MAX_RECONNECT_DELAY)


def _reconnect_note(heard: EventReporter) -> Callable[[], object]:
    return lambda: heard.note("the source is back")


async def _read_source(monitor: Monitor, heard: EventReporter, began: Callable[[], object]) -> SourceExit:
    """Read one source until it ends."""
    if monitor.command is not None:
        return await _read_command(subprocesses.command_argv(monitor.command), heard, began)
    try:
        with GcPause():
            from taskyard.jobs.kinds import mcp_source
    except ModuleNotFoundError as error:
        raise MissingExtra("A monitor of an MCP server", "mcp", error.name or "") from error
    token = None
    if monitor.token_env is not None and (token := os.environ.get(monitor.token_env)) is None:
        return SourceExit(f"the variable {monitor.token_env} is not set, which holds the token", is_failure=True)
    wish = mcp_source.McpSubscription(
        () if monitor.mcp_command is None else tuple(subprocesses.command_argv(monitor.mcp_command)),
        monitor.mcp_url or "",
        token,
        tuple(monitor.resources),
        monitor.logs,
    )
    try:
        await mcp_source.listen(wish, heard.event, began)
    except mcp_source.SourceLost as error:
        return SourceExit(str(error), is_failure=True)
    return SourceExit("its server closed the subscription", is_failure=False)


async def _read_command(argv: list[str], heard: EventReporter, began: Callable[[], object]) -> SourceExit:
    """Read the output of a command; its stderr goes to the output unfiltered."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return SourceExit(f"{argv[0]} cannot be started: {error.strerror}", is_failure=True)
    parting = asyncio.create_task(subprocesses.close_pipes(process))
    try:
        began()
        assert process.stdout is not None
        while data := await process.stdout.read(_CHUNK):
            heard.raw(data)
            await asyncio.sleep(0)  # let due notices be sent during a flood of output
        code = await process.wait()
    finally:
        parting.cancel()
        with contextlib.suppress(ProcessLookupError):
            await subprocesses.terminate(process)
    return SourceExit(f"its command ended ({subprocesses.describe_exit(code)})", is_failure=code != 0)
