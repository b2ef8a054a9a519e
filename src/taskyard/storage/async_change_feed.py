"""Change notification for an event loop, without a thread for file events.

with subscribe_async(path) as folder:        # the loop reads the inotify queue
    names = await folder.news()

with subscribe_wait(store.wait) as changes:  # a thread runs a blocking wait
    await changes.news(seconds)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from taskyard.storage.inotify import Subscription, WaitThread, Watcher, watcher

#: Seconds between two polls where there is no inotify.
_POLL_INTERVAL = 1.0

#: Subscriptions per loop; the loop stops reading the queue with the last of them.
_reader_counts: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


class AsyncSubscription:
    """One folder, for one reader."""

    def __init__(
        self, shared: Watcher, follower: Subscription, bell: _LoopEvent, others: Sequence[Subscription] = ()
    ) -> None:
        self._shared = shared
        self._followed = follower
        self._bell = bell
        self._others = others

    def look(self) -> set[str] | None:
        """Return the names that changed since the last call, without waiting."""
        return self._followed.changed()

    def ring(self) -> None:
        """Wake the waiter although no file changed; callable from any thread."""
        self._followed.ring()

    async def news(self, seconds: float | None = None) -> set[str] | None:
        """Wait for changes and return their names; None: anything may have changed.

        After `seconds` without a change the result is empty. The first call returns at once, because changes before
        the subscription are unknown.
        """
        if self._followed.at is None and not self._followed.has_news:  # no inotify for this folder
            await asyncio.sleep(_POLL_INTERVAL if seconds is None else min(seconds, _POLL_INTERVAL))
            return None
        try:
            async with asyncio.timeout(seconds):
                while not self._has_news():
                    await self._bell.rung.wait()
        except TimeoutError:
            return set()
        if any(other.has_news for other in self._others):
            for other in self._others:
                other.changed()
            self._followed.changed()
            return None
        return self._followed.changed()

    def _has_news(self) -> bool:
        self._bell.rung.clear()
        self._shared.drain()
        return self._followed.has_news or any(other.has_news for other in self._others)


class _LoopEvent(threading.Event):
    """Sets an asyncio event, whichever thread drained the queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.rung = asyncio.Event()
        self._loop = loop

    def set(self) -> None:
        """Signal a change."""
        super().set()
        with suppress(RuntimeError):  # the loop is closed: there is no waiter
            self._loop.call_soon_threadsafe(self.rung.set)

    def clear(self) -> None:
        """Mark the change as handled."""
        super().clear()
        self.rung.clear()


@contextmanager
def subscribe_async(path: str, *others: str) -> Generator[AsyncSubscription]:
    """Subscribe to the folder `path`, which may not exist yet; a change in one of `others` reports no names."""
    loop, shared = asyncio.get_running_loop(), watcher()
    bell = _LoopEvent(loop)
    follower = shared.follow(path, news=bell)
    beside = [shared.follow(other, news=bell) for other in others]
    _attach_reader(loop, shared)
    try:
        yield AsyncSubscription(shared, follower, bell, beside)
    finally:
        for each in (follower, *beside):
            each.close()
        _detach_reader(loop, shared)


def _attach_reader(loop: asyncio.AbstractEventLoop, shared: Watcher) -> None:
    _reader_counts[loop] = _reader_counts.get(loop, 0) + 1
    if shared.fd is not None and not shared.is_listening:
        loop.add_reader(shared.fd, shared.drain)


def _detach_reader(loop: asyncio.AbstractEventLoop, shared: Watcher) -> None:
    _reader_counts[loop] -= 1
    if not _reader_counts[loop] and shared.fd is not None:
        loop.remove_reader(shared.fd)


class WaitSubscription:
    """Changes reported by a blocking wait; same interface as `AsyncSubscription`."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def ring(self) -> None:
        """Signal a change; callable from any thread."""
        with suppress(RuntimeError):  # the loop is closed: there is no waiter
            self._loop.call_soon_threadsafe(self._rung.set)

    def look(self) -> None:
        """Discard changes signalled so far."""
        self._rung.clear()

    async def news(self, seconds: float | None = None) -> set[str] | None:
        """Return None as soon as something may have changed; an empty set after `seconds` without that."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return set()
        self._rung.clear()
        return None


@contextmanager
def subscribe_wait(wait: Callable[[float], bool]) -> Generator[WaitSubscription]:
    """Subscribe to the changes that the blocking `wait` reports, for the duration of the block."""
    found = WaitSubscription()
    alarm = WaitThread(wait, found.ring)
    try:
        yield found
    finally:
        alarm.close()
