"""
The calls of one caller that are at its list: side by side, for hooks and checks may take their time.

A list promises to serve several threads at once. Whoever gives a call up has its hooks and checks ended, and nothing of
it saved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

import anyio
import anyio.to_thread

from taskyard.errors import Cancelled

T = TypeVar("T")

#: So many of one caller are at its list at once, in threads of their own: the others' threads stay free.
_MOST = 16

#: Seconds for a call that is at the list to come back from it when its caller gave it up.
_PATIENCE = 1.0


class ListCalls:
    """What one caller does with its list."""

    def __init__(self) -> None:
        self._threads = anyio.CapacityLimiter(_MOST)
        self._on_their_way: dict[threading.Event, threading.Event] = {}  # what cancels one: what tells its end
        self._is_over = False

    async def do(self, act: Callable[[threading.Event], T]) -> T:
        """Do something in a thread; it gets the event that says that nobody wants it any more.

        Raises:
            Cancelled: the caller is gone.
        """
        if self._is_over:
            raise Cancelled("A call")
        cancel, ended = threading.Event(), threading.Event()

        def work() -> T:
            self._on_their_way[cancel] = ended
            try:
                if self._is_over:
                    raise Cancelled("A call")
                return act(cancel)
            finally:
                del self._on_their_way[cancel]
                ended.set()

        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)
        except anyio.get_cancelled_exc_class():
            cancel.set()
            with anyio.CancelScope(shield=True):  # whoever asks next finds it ended
                await self._wait_for([ended] if cancel in self._on_their_way else [])
            raise

    async def end(self) -> None:
        """The caller is gone: what it began comes to nothing, and nothing begins any more."""
        self._is_over = True
        going = dict(self._on_their_way)
        for cancel in going:
            cancel.set()
        await self._wait_for(going.values())

    async def _wait_for(self, ends: Iterable[threading.Event]) -> None:
        with anyio.move_on_after(_PATIENCE):
            for ended in ends:
                await anyio.to_thread.run_sync(ended.wait, _PATIENCE, abandon_on_cancel=True)
