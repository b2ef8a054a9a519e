"""Threads for what reads the disk or waits: bounded, looks apart from acts, and none delays the end of the server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from taskyard.app import Yard

T = TypeVar("T")

#: How many look at once, and how many act: an act may wait for a hook or for a job's end.
LOOKS, ACTS = 8, 16


class Threads:
    """Everything that is not for the event loop."""

    def __init__(self, yard: Yard) -> None:
        """`yard`: whose lists are looked at."""
        self._hurried = yard.lists.hurried
        self._looks = anyio.CapacityLimiter(LOOKS)
        self._acts = anyio.CapacityLimiter(ACTS)

    async def look(self, what: Callable[[], T]) -> T:
        """Read something; where it is lies out of reach, that is the answer."""

        def hurried() -> T:
            with self._hurried():
                return what()

        return await anyio.to_thread.run_sync(hurried, abandon_on_cancel=True, limiter=self._looks)

    async def act(self, yard: Yard, what: Callable[[Yard], T]) -> T:
        """Change something; who gives up ends the hook or check it waits for, and then nothing is saved."""
        given_up = threading.Event()
        seen = yard.unless(given_up)
        try:
            return await anyio.to_thread.run_sync(lambda: what(seen), abandon_on_cancel=True, limiter=self._acts)
        finally:
            given_up.set()
