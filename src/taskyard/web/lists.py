"""
The lists somebody looks at, each kept up to date once for all who do.

A list that nobody looks at any more is let go after a while. One that is not there is refused with the names that are
near; the server's own list need not be there yet.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio

from taskyard.app import Yard
from taskyard.errors import Busy, ListNotFound
from taskyard.live.showing import Live
from taskyard.live.watched import View
from taskyard.names import nearest
from taskyard.web.channel import Channel, Numbers
from taskyard.web.threads import Threads

#: Lists that are kept up to date at once, and seconds for which one is that nobody looks at.
MOST_OPEN, LINGER = 64, 60.0


class Shown:
    """A list somebody looks at."""

    def __init__(self, view: View, channel: Channel, stop: Callable[[], object]) -> None:
        self.view = view
        self.channel = channel
        self.users = 0
        self.left_at = time.monotonic()
        self._stop = stop

    def close(self) -> None:
        """Nobody does any more. May take a moment."""
        self._stop()
        self.view.close()


class Lists:
    """All lists there are, opened when somebody looks."""

    def __init__(
        self, yard: Yard, live: Live, numbers: Numbers, threads: Threads, wake: Callable[[Callable[[], None]], object]
    ) -> None:
        self._yard = yard
        self._live = live
        self._numbers = numbers
        self._threads = threads
        self._wake = wake
        self._open: dict[str, Shown] = {}
        self._door = anyio.Lock()  # one is opened or closed at a time

    @property
    def own(self) -> str:
        """The list the server was started for."""
        return self._yard.tasks.name

    @property
    def open(self) -> dict[str, Shown]:
        """Those that are kept up to date."""
        return self._open

    def names(self) -> list[str]:
        """Every list there is. Reads the disk, or asks the database."""
        return self._yard.lists.names()

    @asynccontextmanager
    async def shown(self, name: str | None) -> AsyncGenerator[Shown]:
        """A list, kept up to date for the length of a `with` block.

        Raises:
            ListNotFound: there is none of this name.
            Busy: too many others are looked at.
        """
        name = name or self.own
        found = self._open.get(name)
        if found is None:
            async with self._door:
                found = self._open.get(name) or await self._opened(name)
                found.users += 1  # before anybody else may let it go
        else:
            found.users += 1
        try:
            yield found
        finally:
            found.users -= 1
            found.left_at = time.monotonic()

    async def _opened(self, name: str) -> Shown:
        if name != self.own:
            known = await self._threads.look(self.names)
            if name not in known:
                raise ListNotFound(name, nearest=nearest(name, known))
        if len(self._open) >= MOST_OPEN:
            await self._let_go_of_the_oldest()
        found = await self._threads.look(lambda: self._begin(name))
        self._open[name] = found
        return found

    def _begin(self, name: str) -> Shown:
        view = self._live.watch(name)
        channel = Channel(view, self._numbers, self._wake)
        stop = view.listen(channel.look)
        channel.look()  # what came between the two
        return Shown(view, channel, stop)

    async def _let_go_of_the_oldest(self) -> None:
        unused = [name for name, shown in self._open.items() if not shown.users]
        if not unused:
            raise Busy("Another list", f"those who look at {MOST_OPEN} others", 0.0)
        await self._close(min(unused, key=lambda name: self._open[name].left_at))

    async def _close(self, name: str) -> None:
        await self._threads.look(self._open.pop(name).close)

    async def tidy(self) -> None:
        """Let go of what nobody looks at; without end."""
        while True:
            await anyio.sleep(LINGER / 2)
            for name in list(self._open):
                async with self._door:
                    shown = self._open.get(name)
                    if shown is not None and not shown.users and time.monotonic() - shown.left_at > LINGER:
                        await self._close(name)

    def close(self) -> None:
        """Let go of all."""
        for shown in self._open.values():
            shown.close()
        self._open.clear()
