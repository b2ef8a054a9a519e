"""Resources shared by all teammates in one event loop: task store, task watcher, two threads.

`SharedWorkers` is reference counted: the first teammate opens it, the last one closes it. Calls to the list
take milliseconds and run in separate threads, so that hooks or engines of one teammate do not delay the
others.

`TaskWatcher` reads the list once for all waiting teammates when inotify or the database reports a change, and
wakes those with something to do: one per ready task, and, when the list is done, those that end with it. It
polls (`poll_interval`) only while tasks are unfinished, because a crashed owner causes no change event.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from weakref import WeakKeyDictionary

from taskyard.errors import Busy, TaskyardError
from taskyard.storage.async_change_feed import subscribe_async
from taskyard.tasks import trackers
from taskyard.tasks.list_folder import ListFolder
from taskyard.tasks.model import open_blockers
from taskyard.tasks.rules import ClaimOrder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    from taskyard.agents.services import Services
    from taskyard.config import Settings
    from taskyard.tasks.model import Task
    from taskyard.tasks.store import TaskStore


if TYPE_CHECKING:
    RunInThread = Callable[[Callable[[], object]], Awaitable[object]]
    Subscribe = Callable[[Callable[[], object]], Awaitable[AbstractContextManager[object]]]


class Waiter:
    """A teammate that waits for work."""

    def __init__(
        self, name: str, suits: Callable[[Task], bool], wake: Callable[[], None], *, ends_when_done: bool
    ) -> None:
        self.name = name
        self.suits = suits
        self.wake = wake
        self.ends_when_done = ends_when_done
        self.is_waiting = False  #: it found nothing, or is about to check


def waiters_to_wake(waiting: Sequence[Waiter], tasks: Sequence[Task]) -> list[Waiter]:
    """Return the waiters that have something to do: one per ready task, first come, first served."""
    real = [task for task in tasks if not task.is_internal]
    if real and all(task.is_done for task in real):
        return [waiter for waiter in waiting if waiter.ends_when_done]
    by_id = {task.id: task for task in tasks}
    assigned = {
        task.owner
        for task in real
        if task.owner is not None and task.lease is None and not task.is_done and not open_blockers(task, by_id)
    }
    chosen = {waiter.name: waiter for waiter in waiting if waiter.name in assigned}
    left = [waiter for waiter in waiting if waiter.name not in chosen]
    for task_id in ClaimOrder(lambda _: True, agent=None)(tasks):
        if not left:
            break
        found = next((waiter for waiter in left if waiter.suits(by_id[task_id])), None)
        if found is not None:
            left.remove(found)
            chosen[found.name] = found
    return list(chosen.values())


class TaskWatcher:
    """Wakes the teammates that wait for work on one list, in one event loop."""

    def __init__(
        self, store: TaskStore, folder: str, *, settings: Settings, do: RunInThread, hear: Subscribe | None = None
    ) -> None:
        """Create a watcher; `hear(wake)` subscribes `wake` to changes that do not show in the folder."""
        self._store = store
        self._folder = folder
        self._settings = settings
        self._do = do
        self._hear = hear
        self._waiters: list[Waiter] = []
        self._told = asyncio.Event()

    def enter(self, waiter: Waiter) -> None:
        """Add a waiter; it is woken whenever it waits."""
        self._waiters.append(waiter)
        self._told.set()

    def leave(self, waiter: Waiter) -> None:
        """Remove a waiter; the task it was woken for is offered to another."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        waiter.is_waiting = False
        self._told.set()

    async def watch(self) -> None:
        """Check the list on every change, until cancelled."""
        with subscribe_async(self._folder) as folder, await self._hearing(folder.ring):
            pause: float | None = None
            while True:
                news = asyncio.ensure_future(folder.news(pause))
                told = asyncio.ensure_future(self._told.wait())
                try:
                    await asyncio.wait([news, told], return_when=asyncio.FIRST_COMPLETED)
                    is_tick = news.done() and news.result() == set() and not told.done()
                finally:
                    news.cancel()
                    told.cancel()
                if not is_tick:
                    await asyncio.sleep(self._settings.debounce)  # gather the rest of the burst
                self._told.clear()
                folder.look()
                try:
                    pause = await self._look(settle=is_tick)
                except (TaskyardError, OSError):
                    pause = self._settings.poll_interval  # locked or unreadable now: try again after the poll interval

    async def _hearing(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Subscribe `wake`; retry while the database is unreachable."""
        while self._hear is not None:
            try:
                return await self._hear(wake)
            except TaskyardError:
                await asyncio.sleep(self._settings.poll_interval)
        return nullcontext()

    async def _look(self, *, settle: bool) -> float | None:
        """Wake waiters that have something to do; return seconds until the next check, None: until a change."""
        if not any(waiter.is_waiting for waiter in self._waiters):
            return self._settings.poll_interval if self._waiters else None
        tasks: list[Task] = []
        await self._do(lambda: tasks.extend(self._store.list()))
        if settle:
            await self._do(lambda: trackers.complete_dead_trackers(self._store, tasks))
        for waiter in waiters_to_wake([waiter for waiter in self._waiters if waiter.is_waiting], tasks):
            waiter.is_waiting = False  # the next check wakes another
            waiter.wake()
        is_open = any(not task.is_done and not task.is_internal for task in tasks)
        return self._settings.poll_interval if is_open else None


if TYPE_CHECKING:
    T = TypeVar("T")

#: More threads do not speed up changes of one list; one may be waiting for a lock.
_THREADS = 2

#: Attempts to take a lock, each with timeout `lock_timeout` (setting): teammates have time.
_TRIES = 4

#: Seconds that a started call may take to finish after its caller was cancelled.
_CANCEL_TIMEOUT = 2.0

_shared_workers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str, str, str], SharedWorkers]] = (
    WeakKeyDictionary()
)


class SharedWorkers:
    """Store, watcher and threads for one list, shared in this event loop."""

    def __init__(self, services: Services, home: str, folder: str, name: str, settings: Settings) -> None:
        """Open the list; `settings.store` selects where it is, `folder` is that of lists in files."""
        self.services = services
        self.home = home
        self.list_name = name
        self.folder = folder
        self.settings = settings
        self.store = services.task_store(settings, folder, name)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="taskyard-team")
        self.task_watcher = TaskWatcher(
            self.store,
            ListFolder(folder, name).path,
            settings=settings,
            do=self.do,
            hear=lambda wake: self.do(lambda: services.list_changes(settings, name, wake)),
        )
        self._member_count = 0
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    def enter(cls, services: Services, home: str, folder: str, name: str, settings: Settings) -> SharedWorkers:
        """Return the shared instance of a list, creating it if needed, and count one more user."""
        here = _shared_workers.setdefault(asyncio.get_running_loop(), {})
        place = (home, folder, name, settings.store)
        office = here.get(place)
        if office is None:
            office = here[place] = cls(services, home, folder, name, settings)
        office._member_count += 1
        if office._watching is None:
            office._watching = asyncio.get_running_loop().create_task(office.task_watcher.watch())
        return office

    async def do(self, act: Callable[[], T]) -> T:
        """Run a blocking call in a thread; a started call finishes even if the caller is cancelled."""

        def with_retries() -> T:
            return _with_retries(act)

        running = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, with_retries)
        running.add_done_callback(_consume_error)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running], timeout=_CANCEL_TIMEOUT)
            raise

    def begin(self, act: Callable[[], object]) -> None:
        """Run a call in the background and ignore its result."""
        self._threads.submit(copy_context().run, _with_retries, act)

    def leave(self) -> None:
        """Count one user less; the last one closes everything."""
        self._member_count -= 1
        if self._member_count:
            return
        if self._watching is not None:
            self._watching.cancel()
        here = _shared_workers.get(asyncio.get_running_loop(), {})
        here.pop((self.home, self.folder, self.list_name, self.settings.store), None)
        self._threads.shutdown(wait=False)
        with contextlib.suppress(OSError):
            self.store.close()


def _with_retries(act: Callable[[], T]) -> T:
    """Call `act`; retry while the list is locked, `_TRIES` attempts in all."""
    for _ in range(_TRIES - 1):
        try:
            return act()
        except Busy:
            continue
    return act()


def _consume_error(done: asyncio.Future[Any]) -> None:
    """Retrieve an error that no caller may be left to receive."""
    if not done.cancelled():
        done.exception()
