"""
What changed in a folder, for an event loop: it sleeps on the kernel's queue of file events, and needs no thread.

    with followed(path) as folder:
        names = await folder.news()
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from taskyard.disk.watch import Followed, Watcher, watcher

#: How often to look where the kernel does not tell, in seconds.
_POLL = 1.0

#: How many in each loop sleep on the queue; with the last of them the loop lets go of it.
_sleepers: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


class Folder:
    """One folder, for one reader."""

    def __init__(self, shared: Watcher, follower: Followed, bell: _Bell, others: Sequence[Followed] = ()) -> None:
        self._shared = shared
        self._followed = follower
        self._bell = bell
        self._others = others

    def look(self) -> set[str] | None:
        """The names that changed since last asked, without waiting."""
        return self._followed.changed()

    def ring(self) -> None:
        """Have news for whoever waits, although no file changed; from any thread."""
        self._followed.ring()

    async def news(self, seconds: float | None = None) -> set[str] | None:
        """The names that changed since last asked, as soon as there are any; None: all may have.

        After `seconds` without any the answer is empty. The first answer comes at once: what happened before we
        followed, nobody tells.
        """
        if self._followed.at is None and not self._followed.has_news:  # the kernel does not tell here
            await asyncio.sleep(_POLL if seconds is None else min(seconds, _POLL))
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


class _Bell(threading.Event):
    """Rings in an event loop, whichever thread emptied the queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.rung = asyncio.Event()
        self._loop = loop

    def set(self) -> None:
        """There is news."""
        super().set()
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self.rung.set)

    def clear(self) -> None:
        """It was heard."""
        super().clear()
        self.rung.clear()


@contextmanager
def followed(path: str, *others: str) -> Generator[Folder]:
    """Follow what happens in the folder `path`, which may not exist yet; news in one of the `others` names nothing."""
    loop, shared = asyncio.get_running_loop(), watcher()
    bell = _Bell(loop)
    follower = shared.follow(path, news=bell)
    beside = [shared.follow(other, news=bell) for other in others]
    _sleep_on(loop, shared)
    try:
        yield Folder(shared, follower, bell, beside)
    finally:
        for each in (follower, *beside):
            each.close()
        _let_go(loop, shared)


def _sleep_on(loop: asyncio.AbstractEventLoop, shared: Watcher) -> None:
    _sleepers[loop] = _sleepers.get(loop, 0) + 1
    if shared.fd is not None and not shared.is_listening:
        loop.add_reader(shared.fd, shared.drain)


def _let_go(loop: asyncio.AbstractEventLoop, shared: Watcher) -> None:
    _sleepers[loop] -= 1
    if not _sleepers[loop] and shared.fd is not None:
        loop.remove_reader(shared.fd)
