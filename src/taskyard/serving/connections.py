"""
Connections: whoever holds one must use it.

    nothing is asked, half a request, or an answer that is not taken      cut after a while
    no room for one more                                                  the one that was silent the longest makes it

So nobody who only connects, with no token, can keep out those who ask.
"""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds for which the other side may keep us waiting; it has at most twice as many.
PATIENCE = 30.0


class Connection(H11Protocol):
    """One connection, from whomever."""

    made_at = 0.0
    _timer: asyncio.TimerHandle | None = None
    _was: tuple[object, bool] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there."""
        super().connection_made(transport)
        self.made_at = self.loop.time()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._make_room()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def is_silent(self) -> bool:
        """Whether nothing is asked for on it."""
        return bool(self.cycle is None or self.cycle.response_complete)  # pyright: ignore[reportUnnecessaryComparison]

    def _look(self) -> None:
        """Cut it if the other side is still where it was, and it is its turn."""
        now = (self.cycle, self.transport.is_closing())
        is_its_turn = self.is_silent or self.cycle.more_body or self.transport.is_closing()
        if is_its_turn and now == self._was:
            self.transport.abort()
            return
        self._was = now
        self._timer = self.loop.call_later(PATIENCE, self._look)

    def _make_room(self) -> None:
        """Cut whoever is silent the longest: ourselves, if there is no other."""
        oldest = self
        for each in cast("set[object]", self.connections):
            if isinstance(each, Connection) and each.made_at < oldest.made_at and each.is_silent:
                oldest = each
        self.connections.discard(oldest)
        oldest.transport.abort()
