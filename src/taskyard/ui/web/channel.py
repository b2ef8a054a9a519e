"""Change channels of lists, wake-ups for job events, and worker threads of the web server.

`Channel` computes and encodes each change of a list once for all clients, and keeps recent ones:

    with an event id that is still kept     the changes after it, the same bytes for all
    with any other, or none                 the whole snapshot, and then changes

There are no queues per client: each knows its own position, and one that is slower than the retention gets the whole
snapshot again. Memory is bounded and no client waits for another, however many and however slow they are.

`JobEventNotifier` follows the event log of jobs in one thread and wakes all clients; each reads the log's files from
its own position. `WorkerThreads` runs blocking calls: bounded, reads apart from acts, and never delaying shutdown.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import anyio
import anyio.to_thread

from taskyard.core.system import now_ms
from taskyard.errors import TaskyardError
from taskyard.jobs.events import Events
from taskyard.ui.snapshot import Snapshot, snapshot_diff, snapshot_json
from taskyard.ui.web.values import encode_json
from taskyard.yard import Yard

#: Changes kept for clients that reconnect, and their bytes.
MOST_KEPT, MOST_BYTES = 512, 8_000_000

#: A client that lags by more changes or bytes than this gets the whole snapshot instead.
MOST_BEHIND, MOST_BEHIND_BYTES = 64, 1_000_000


class SnapshotSource(Protocol):
    """Where snapshots come from: a live view."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        ...


class StreamItem(NamedTuple):
    """One event of a stream, encoded."""

    number: int
    data: bytes


class EventIds:
    """Event ids of one server: `<start time>-<n>`; unique across all its lists."""

    def __init__(self, start: str | None = None) -> None:
        self.start = start if start is not None else f"{now_ms():x}"
        self._next = itertools.count(1)

    def next(self) -> int:
        """Return the next number."""
        return next(self._next)

    def shown(self, number: int) -> str:
        """Return the id of a number, as it is sent."""
        return f"{self.start}-{number}"

    def parsed(self, mark: str) -> int | None:
        """Return the number of an id; None if it is invalid or another server's."""
        start, _, number = mark.rpartition("-")
        is_ours = start == self.start and number.isascii() and number.isdigit() and len(number) <= 15
        return int(number) if is_ours else None


class Channel:
    """All recent changes of one list."""

    def __init__(self, source: SnapshotSource, numbers: EventIds, wake: Callable[[Callable[[], None]], object]) -> None:
        """Begin with what `source` shows now.

        Args:
            source: Where snapshots come from.
            numbers: Where event ids come from.
            wake: Schedules a call in the event loop, from any thread.
        """
        self._source = source
        self._numbers = numbers
        self._wake = wake
        self._lock = threading.Lock()  # taken only briefly: the event loop takes it too
        self._looking, self._encoding = threading.Lock(), threading.Lock()
        self._snapshot = source.snapshot
        self._number = numbers.next()
        self._kept: deque[StreamItem] = deque()
        self._size = 0
        self._before_kept = self._number  # the event number before the oldest kept change
        self._whole: StreamItem | None = None
        self._waiting: set[asyncio.Event] = set()

    @property
    def number(self) -> int:
        """The newest event number."""
        return self._number

    def look(self, _: object = None) -> None:
        """Record a change if the source's snapshot differs. Call it from any thread."""
        with self._looking:
            after = self._source.snapshot
            if after is self._snapshot or not (changed := snapshot_diff(self._snapshot, after)):
                return
            number = self._numbers.next()
            item = StreamItem(number, encode_event(b"change", self._numbers.shown(number), encode_json(changed)))
            with self._lock:
                self._snapshot = after
                self._keep(item)
        self._wake(self._notify)

    def _keep(self, item: StreamItem) -> None:
        self._kept.append(item)
        self._size += len(item.data)
        self._number = item.number
        while len(self._kept) > MOST_KEPT or (self._size > MOST_BYTES and len(self._kept) > 1):
            gone = self._kept.popleft()
            self._size -= len(gone.data)
            self._before_kept = gone.number

    def _notify(self) -> None:
        for waiting in self._waiting:
            waiting.set()

    def after(self, number: int | None) -> list[StreamItem] | None:
        """Return the changes after an event; None if it is no longer kept, or the whole snapshot is smaller."""
        with self._lock:
            if number is None or (number != self._before_kept and all(item.number != number for item in self._kept)):
                return None
            found = [item for item in self._kept if item.number > number]
        is_much = len(found) > MOST_BEHIND or (len(found) > 1 and sum(len(i.data) for i in found) > MOST_BEHIND_BYTES)
        return None if is_much else found

    def whole(self) -> StreamItem:
        """Return the current snapshot as an event, encoded once for all clients. Slow: not for the event loop."""
        with self._encoding:
            with self._lock:
                snapshot, number = self._snapshot, self._number
            if self._whole is None or self._whole.number != number:
                mark = self._numbers.shown(number)
                self._whole = StreamItem(
                    number, encode_event(b"snapshot", mark, encode_json({**snapshot_json(snapshot), "id": mark}))
                )
            return self._whole

    def now(self) -> tuple[Snapshot, str]:
        """Return the newest snapshot, and the id of its event."""
        with self._lock:
            return self._snapshot, self._numbers.shown(self._number)

    def listening(self) -> Subscription:
        """Return a subscription that wakes at each change. Call it in the event loop."""
        return Subscription(self._waiting)


class Subscription:
    """A wake-up for one client, for the length of a `with` block."""

    def __init__(self, among: set[asyncio.Event]) -> None:
        self._waiters = among
        self._rung = asyncio.Event()

    def __enter__(self) -> Subscription:
        self._waiters.add(self._rung)
        return self

    def __exit__(self, *_: object) -> None:
        self._waiters.discard(self._rung)

    async def wait(self, seconds: float) -> bool:
        """Wait for a wake-up, at most `seconds`; return whether there was one."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True


def encode_event(name: bytes, mark: str, data: bytes) -> bytes:
    """Encode one server-sent event; `data` must not contain a line break, which JSON never does."""
    head = b"id: %s\n" % mark.encode() if mark else b""
    return b"%sevent: %s\ndata: %s\n\n" % (head, name, data)


_log = logging.getLogger("taskyard.ui.web")


class JobEventNotifier:
    """One thread that follows job events, started by the first subscriber."""

    def __init__(self, yard: Yard, wake: Callable[[Callable[[], None]], object]) -> None:
        self._yard = yard
        self._wake = wake
        self._waiting: set[asyncio.Event] = set()
        self._events: Events | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def listening(self) -> Subscription:
        """Return a subscription that wakes at job events. Call it in the event loop. Spurious wake-ups are possible."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._follow, name="taskyard-web-events", daemon=True)
            self._thread.start()
        return Subscription(self._waiting)

    def _follow(self) -> None:
        try:
            begin = self._yard.events().skip()
            self._events = followed = self._yard.events(begin, follow=True)
            self._wake(self._notify)  # for events before the subscription
            if self._is_closed:
                return
            for _ in followed:
                self._wake(self._notify)
        except TaskyardError as error:
            _log.warning("Events are no longer followed: %s", error)
        self._wake(self._notify)

    def _notify(self) -> None:
        for waiting in self._waiting:
            waiting.set()

    def close(self) -> None:
        """Stop following."""
        self._is_closed = True
        if self._events is not None:
            self._events.close()


T = TypeVar("T")

#: Most reads at once, and most acts: an act may wait for a hook or for the end of a job.
MAX_READS, MAX_ACTIONS = 8, 16


class WorkerThreads:
    """Run blocking calls outside the event loop."""

    def __init__(self, yard: Yard) -> None:
        """Set up the limits. `yard`: whose lists are read."""
        self._hurried = yard.lists.hurried
        self._looks = anyio.CapacityLimiter(MAX_READS)
        self._acts = anyio.CapacityLimiter(MAX_ACTIONS)

    async def look(self, what: Callable[[], T]) -> T:
        """Run a read; if the store is unreachable, fail at once instead of waiting for it."""

        def hurried() -> T:
            with self._hurried():
                return what()

        return await anyio.to_thread.run_sync(hurried, abandon_on_cancel=True, limiter=self._looks)

    async def act(self, yard: Yard, what: Callable[[Yard], T]) -> T:
        """Run an act; if the client disconnects, the hook or check it waits for is cancelled and nothing is saved."""
        given_up = threading.Event()
        seen = yard.unless(given_up)
        try:
            return await anyio.to_thread.run_sync(lambda: what(seen), abandon_on_cancel=True, limiter=self._acts)
        finally:
            given_up.set()
