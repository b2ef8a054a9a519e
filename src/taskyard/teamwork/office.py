"""
What the teammates of one program share: one reader of the list, one lookout, two threads.

The first to come opens it, the last to leave closes it. The list's calls take milliseconds and are made in threads
of their own, so that nobody's hooks or engines keep the others waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from weakref import WeakKeyDictionary

from taskyard.errors import Busy
from taskyard.places import list_heard, store_of
from taskyard.tasklist.list_folder import ListFolder
from taskyard.teamwork.lookout import Lookout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from taskyard.config import Settings

    T = TypeVar("T")

#: Changes of one list gain nothing from more threads; one may wait for somebody's lock.
_THREADS = 2

#: How often a lock is waited for, each time as long as the setting `lock_timeout` says: teammates have time.
_TRIES = 4

#: Seconds that a call which was begun may take to end, once nobody waits for its answer.
_PATIENCE = 2.0

_offices: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str, str, str], Office]] = WeakKeyDictionary()


class Office:
    """One list, for everybody in this event loop who works on it."""

    def __init__(self, home: str, folder: str, name: str, settings: Settings) -> None:
        """`settings.store` says where the list is; `folder` is that of lists in files."""
        self.home = home
        self.list_name = name
        self.folder = folder
        self.settings = settings
        self.store = store_of(settings.store, folder, name, settings, None)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="taskyard-team")
        self.lookout = Lookout(
            self.store,
            ListFolder(folder, name).path,
            settings=settings,
            do=self.do,
            hear=lambda wake: self.do(lambda: list_heard(settings, name, wake)),
        )
        self._people = 0
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    def enter(cls, home: str, folder: str, name: str, settings: Settings) -> Office:
        """The office of a list, with one more in it."""
        here = _offices.setdefault(asyncio.get_running_loop(), {})
        place = (home, folder, name, settings.store)
        office = here.get(place)
        if office is None:
            office = here[place] = cls(home, folder, name, settings)
        office._people += 1
        if office._watching is None:
            office._watching = asyncio.get_running_loop().create_task(office.lookout.watch())
        return office

    async def do(self, act: Callable[[], T]) -> T:
        """Do what takes a moment and blocks, in a thread. What was begun is finished, whoever gives up."""

        def patiently() -> T:
            return _patiently(act)

        running = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, patiently)
        running.add_done_callback(_heard)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running], timeout=_PATIENCE)
            raise

    def begin(self, act: Callable[[], object]) -> None:
        """Have something done by and by; what it answers is nobody's business."""
        self._threads.submit(copy_context().run, _patiently, act)

    def leave(self) -> None:
        """One is gone; with the last, everything is let go."""
        self._people -= 1
        if self._people:
            return
        if self._watching is not None:
            self._watching.cancel()
        here = _offices.get(asyncio.get_running_loop(), {})
        here.pop((self.home, self.folder, self.list_name, self.settings.store), None)
        self._threads.shutdown(wait=False)
        with contextlib.suppress(OSError):
            self.store.close()


def _patiently(act: Callable[[], T]) -> T:
    """What `act` answers; a lock that somebody holds for long is waited for again before that counts as a failure."""
    for _ in range(_TRIES - 1):
        try:
            return act()
        except Busy:
            continue
    return act()


def _heard(done: asyncio.Future[Any]) -> None:
    """Nobody may be left to hear of an error."""
    if not done.cancelled():
        done.exception()
