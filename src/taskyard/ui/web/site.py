"""Shared state of the web server: the yard, the open lists, worker threads and metrics.

Each list that a client watches is kept up to date once for all clients, and closed `LINGER` seconds after the last one
left. An unknown list is refused with the nearest names; the server's own list need not exist yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio

from taskyard.core.values import PERSON, nearest
from taskyard.errors import Busy, ListNotFound
from taskyard.ui.live import LiveFeed, LiveView
from taskyard.ui.web.assets import Asset
from taskyard.ui.web.channel import Channel, EventIds, JobEventNotifier, WorkerThreads
from taskyard.ui.web.metrics import Metrics
from taskyard.yard import Yard

#: Most lists kept up to date at once, and seconds for which an unused one stays open.
MOST_OPEN, LINGER = 64, 60.0


class OpenList:
    """A list that is kept up to date, and its number of users."""

    def __init__(self, view: LiveView, channel: Channel, stop: Callable[[], object]) -> None:
        self.view = view
        self.channel = channel
        self.users = 0
        self.left_at = time.monotonic()
        self._stop = stop

    def close(self) -> None:
        """Stop updating it. Blocks: call it in a thread."""
        self._stop()
        self.view.close()


class OpenLists:
    """All lists, opened on demand."""

    def __init__(
        self,
        yard: Yard,
        live: LiveFeed,
        numbers: EventIds,
        threads: WorkerThreads,
        wake: Callable[[Callable[[], None]], object],
    ) -> None:
        self._yard = yard
        self._live = live
        self._numbers = numbers
        self._threads = threads
        self._wake = wake
        self._open: dict[str, OpenList] = {}
        self._door = anyio.Lock()  # only one list is opened or closed at a time

    @property
    def own(self) -> str:
        """The list the server was started for."""
        return self._yard.tasks.name

    @property
    def open(self) -> dict[str, OpenList]:
        """The lists that are kept up to date, by name."""
        return self._open

    def names(self) -> list[str]:
        """Return the names of all lists. Reads the disk or the database."""
        return self._yard.lists.names()

    @asynccontextmanager
    async def shown(self, name: str | None) -> AsyncGenerator[OpenList]:
        """Keep a list up to date for the length of a `with` block.

        Raises:
            ListNotFound: There is no list of this name.
            Busy: Too many other lists are open.
        """
        name = name or self.own
        found = self._open.get(name)
        if found is None:
            async with self._door:
                found = self._open.get(name) or await self._opened(name)
                found.users += 1  # within the lock, before another task may close it
        else:
            found.users += 1
        try:
            yield found
        finally:
            found.users -= 1
            found.left_at = time.monotonic()

    async def _opened(self, name: str) -> OpenList:
        if name != self.own:
            known = await self._threads.look(self.names)
            if name not in known:
                raise ListNotFound(name, nearest=nearest(name, known))
        if len(self._open) >= MOST_OPEN:
            await self._close_oldest()
        found = await self._threads.look(lambda: self._begin(name))
        self._open[name] = found
        return found

    def _begin(self, name: str) -> OpenList:
        view = self._live.watch(name)
        channel = Channel(view, self._numbers, self._wake)
        stop = view.listen(channel.look)
        channel.look()  # for a change between `watch` and `listen`
        return OpenList(view, channel, stop)

    async def _close_oldest(self) -> None:
        unused = [name for name, shown in self._open.items() if not shown.users]
        if not unused:
            raise Busy("Another list", f"those who look at {MOST_OPEN} others", 0.0)
        await self._close(min(unused, key=lambda name: self._open[name].left_at))

    async def _close(self, name: str) -> None:
        await self._threads.look(self._open.pop(name).close)

    async def tidy(self) -> None:
        """Close lists that have no users; runs forever."""
        while True:
            await anyio.sleep(LINGER / 2)
            for name in list(self._open):
                async with self._door:
                    shown = self._open.get(name)
                    if shown is not None and not shown.users and time.monotonic() - shown.left_at > LINGER:
                        await self._close(name)

    def close(self) -> None:
        """Close all lists."""
        for shown in self._open.values():
            shown.close()
        self._open.clear()


#: Most streams at once: each is a connection that stays open.
MOST_STREAMS = 400


class SiteOptions(NamedTuple):
    """Options of the page and its API."""

    allow_actions: bool = False
    everywhere: bool = False  #: show jobs of every project, not only of the one it was started in
    heartbeat: float = 15.0  #: seconds after which a heartbeat is sent on an idle stream
    patience: float = 60.0  #: seconds a client may take to read what it was sent


class Site:
    """The state that all request handlers share."""

    def __init__(self, yard: Yard, assets: dict[str, Asset], options: SiteOptions) -> None:
        """Set up everything. Call it in a running event loop."""
        loop = asyncio.get_running_loop()

        def wake(what: Callable[[], None]) -> None:
            try:
                loop.call_soon_threadsafe(what)
            except RuntimeError:
                pass  # the loop is closed: there are no clients left

        self.yard = yard
        self.options = options
        self.assets = assets
        self.numbers = EventIds()
        self.threads = WorkerThreads(yard)
        self.live = LiveFeed(yard, everywhere=options.everywhere)
        self.lists = OpenLists(yard, self.live, self.numbers, self.threads, wake)
        self.metrics = Metrics()
        self.events = JobEventNotifier(yard, wake)

    @property
    def person(self) -> str:
        """The agent name in which this server acts."""
        return self.yard.agent or PERSON

    @property
    def is_full(self) -> bool:
        """Whether the limit of streams is reached."""
        return self.metrics.streams >= MOST_STREAMS

    def close(self) -> None:
        """Close all feeds."""
        self.events.close()
        self.lists.close()
        self.live.close()
