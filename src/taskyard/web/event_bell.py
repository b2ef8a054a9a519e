"""
Rings when something happens to a job: one thread follows the stream of events for everybody who listens to it.

Each who listens reads the stream's own files from where it has come to, so a slow one keeps nobody waiting, and nothing
is kept in memory for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from taskyard.app import Yard
from taskyard.errors import TaskyardError
from taskyard.runtime.events import Events
from taskyard.web.channel import Bell

_log = logging.getLogger("taskyard.web")


class EventBell:
    """One thread, begun by the first who listens."""

    def __init__(self, yard: Yard, wake: Callable[[Callable[[], None]], object]) -> None:
        self._yard = yard
        self._wake = wake
        self._waiting: set[asyncio.Event] = set()
        self._events: Events | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def listening(self) -> Bell:
        """A bell for one who listens; in the event loop. It may ring for nothing."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._follow, name="taskyard-web-events", daemon=True)
            self._thread.start()
        return Bell(self._waiting)

    def _follow(self) -> None:
        try:
            begin = self._yard.events().skip()
            self._events = followed = self._yard.events(begin, follow=True)
            self._wake(self._ring)  # for what came before that
            if self._is_closed:
                return
            for _ in followed:
                self._wake(self._ring)
        except TaskyardError as error:
            _log.warning("Events are no longer followed: %s", error)
        self._wake(self._ring)

    def _ring(self) -> None:
        for waiting in self._waiting:
            waiting.set()

    def close(self) -> None:
        """Follow them no longer."""
        self._is_closed = True
        if self._events is not None:
            self._events.close()
