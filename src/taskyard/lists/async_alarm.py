"""
Being woken by whoever can only be waited for, in an event loop.

    with told(store.wait) as news:
        await news.news(seconds)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from taskyard.lists.alarm import Alarm


class Told:
    """What somebody tells; to be used as a followed folder is (`disk.async_follow.Folder`)."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def ring(self) -> None:
        """There is news; from any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._rung.set)

    def look(self) -> None:
        """Whatever was told until now was heard."""
        self._rung.clear()

    async def news(self, seconds: float | None = None) -> set[str] | None:
        """None as soon as something may have changed since last asked; after `seconds` without that, nothing."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return set()
        self._rung.clear()
        return None


@contextmanager
def told(wait: Callable[[float], bool]) -> Generator[Told]:
    """Hear what `wait` tells, for the length of a block."""
    found = Told()
    alarm = Alarm(wait, found.ring)
    try:
        yield found
    finally:
        alarm.close()
