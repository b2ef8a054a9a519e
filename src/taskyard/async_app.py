"""
A yard for programs that run an event loop: jobs and notices are awaited; the list stays as it is, small files under
a lock.

    async with taskyard.open_async(agent="ada") as yard:
        job = await yard.jobs.start(taskyard.Shell("npm test"))
        async for notice in yard.notices():
            messages.append(notice.as_user_message())
"""

from __future__ import annotations

import os

from taskyard.app import Yard
from taskyard.app import open as open_yard
from taskyard.runtime.async_jobs import AsyncJobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.events import Events
    from taskyard.runtime.notices import Outbox
    from taskyard.tasklist.mail import Mail
    from taskyard.tasklist.service import TaskList
    from taskyard.tasklist.store import TaskStore
    from taskyard.tasklist.teams import Teams


class AsyncYard:
    """One list, and background jobs that are awaited."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self.jobs = AsyncJobs(yard.jobs)

    @property
    def tasks(self) -> TaskList:
        """The list. Its calls take milliseconds, but for hooks and acceptance commands, which they wait for."""
        return self._yard.tasks

    @property
    def mail(self) -> Mail:
        """The mailboxes of this list's team."""
        return self._yard.mail

    @property
    def teams(self) -> Teams:
        """All teams."""
        return self._yard.teams

    @property
    def agent(self) -> str | None:
        """The name this yard acts under."""
        return self._yard.agent

    def notices(self, agent: str | None = None) -> Outbox:
        """What background jobs have to tell an agent, for `async for`: each once, also after a crash."""
        return self._yard.notices(agent)

    def events(self, since: int | None = None, *, follow: bool = False, job: str | None = None) -> Events:
        """What happens to background jobs, for `async for`; see `Yard.events`."""
        return self._yard.events(since, follow=follow, job=job)

    async def __aenter__(self) -> AsyncYard:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.jobs.close()
        self._yard.close()


def open_async(
    *,
    tasks_dir: str | os.PathLike[str] | None = None,
    list: str | None = None,
    agent: str | None = None,
    store: TaskStore | str | None = None,
    foreign_writers: bool | None = None,
) -> AsyncYard:
    """Open a list for a program that runs an event loop; the arguments are those of `open`."""
    return AsyncYard(
        open_yard(tasks_dir=tasks_dir, list=list, agent=agent, store=store, foreign_writers=foreign_writers)
    )
