"""
One look at a list for all teammates of a program that wait for work on it.

The kernel tells when a file of the list changed, or the database that something in it did. Then somebody looks once,
and wakes those for whom there is something: each ready task wakes one, and a list that is done wakes those who leave
with it. Nobody polls, but for one look in a while as long as something is unfinished: a death is told by nobody.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

from taskyard.disk.async_follow import followed
from taskyard.errors import TaskyardError
from taskyard.tasklist import trackers
from taskyard.tasklist.graph import open_blockers
from taskyard.tasklist.picking import InOrder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractContextManager

    from taskyard.config import Settings
    from taskyard.tasklist.model import Task
    from taskyard.tasklist.store import TaskStore

    Do = Callable[[Callable[[], object]], Awaitable[object]]
    Hear = Callable[[Callable[[], object]], Awaitable[AbstractContextManager[object]]]


class Ticket:
    """One teammate's place among those who wait."""

    def __init__(
        self, name: str, suits: Callable[[Task], bool], wake: Callable[[], None], *, ends_when_done: bool
    ) -> None:
        self.name = name
        self.suits = suits
        self.wake = wake
        self.ends_when_done = ends_when_done
        self.is_waiting = False  #: it has found nothing, or is about to look


def to_wake(waiting: Sequence[Ticket], tasks: Sequence[Task]) -> list[Ticket]:
    """Who of those that wait has something to do: one for each ready task, first come, first served."""
    real = [task for task in tasks if not task.is_internal]
    if real and all(task.is_done for task in real):
        return [ticket for ticket in waiting if ticket.ends_when_done]
    by_id = {task.id: task for task in tasks}
    assigned = {
        task.owner
        for task in real
        if task.owner is not None and task.lease is None and not task.is_done and not open_blockers(task, by_id)
    }
    chosen = {ticket.name: ticket for ticket in waiting if ticket.name in assigned}
    left = [ticket for ticket in waiting if ticket.name not in chosen]
    for task_id in InOrder(lambda _: True, agent=None)(tasks):
        if not left:
            break
        found = next((ticket for ticket in left if ticket.suits(by_id[task_id])), None)
        if found is not None:
            left.remove(found)
            chosen[found.name] = found
    return list(chosen.values())


class Lookout:
    """Who waits for work on one list, in one event loop."""

    def __init__(self, store: TaskStore, folder: str, *, settings: Settings, do: Do, hear: Hear | None = None) -> None:
        """`hear(wake)` has `wake` called at changes that do not show in the folder, as long as its answer is open."""
        self._store = store
        self._folder = folder
        self._settings = settings
        self._do = do
        self._hear = hear
        self._tickets: list[Ticket] = []
        self._told = asyncio.Event()

    def enter(self, ticket: Ticket) -> None:
        """Wake its holder from now on, whenever it waits."""
        self._tickets.append(ticket)
        self._told.set()

    def leave(self, ticket: Ticket) -> None:
        """Wake it no longer; what it was woken for is somebody else's now."""
        if ticket in self._tickets:
            self._tickets.remove(ticket)
        ticket.is_waiting = False
        self._told.set()

    async def watch(self) -> None:
        """Look whenever there is news, until cancelled."""
        with followed(self._folder) as folder, await self._hearing(folder.ring):
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
                    await asyncio.sleep(self._settings.debounce)  # what belongs to the same burst
                self._told.clear()
                folder.look()
                try:
                    pause = await self._look(settle=is_tick)
                except (TaskyardError, OSError):
                    pause = (
                        self._settings.poll_interval
                    )  # locked, or not to be read just now: those who wait go on waiting

    async def _hearing(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """What has `wake` called; a database that is away is asked again."""
        while self._hear is not None:
            try:
                return await self._hear(wake)
            except TaskyardError:
                await asyncio.sleep(self._settings.poll_interval)
        return nullcontext()

    async def _look(self, *, settle: bool) -> float | None:
        """Wake whoever has something to do; how long until the next look, None: until there is news."""
        if not any(ticket.is_waiting for ticket in self._tickets):
            return self._settings.poll_interval if self._tickets else None
        tasks: list[Task] = []
        await self._do(lambda: tasks.extend(self._store.list()))
        if settle:
            await self._do(lambda: trackers.settle(self._store, tasks))
        for ticket in to_wake([ticket for ticket in self._tickets if ticket.is_waiting], tasks):
            ticket.is_waiting = False  # the next look wakes another
            ticket.wake()
        is_open = any(not task.is_done and not task.is_internal for task in tasks)
        return self._settings.poll_interval if is_open else None
