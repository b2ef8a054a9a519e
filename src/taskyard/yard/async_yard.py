"""A yard for programs with an event loop, and `YardServices` for jobs of agents.

Jobs and notices are awaited; the task list stays synchronous: small files under a lock.

    async with taskyard.open_async(agent="ada") as yard:
        job = await yard.jobs.start(taskyard.Shell("npm test"))
        async for notice in yard.notices():
            messages.append(notice.as_user_message())

`YardServices` implements `agents.services.Services`: stores, mail, notices and registration.
"""

from __future__ import annotations

import os

from taskyard import yard as yard_module
from taskyard.jobs.async_jobs import AsyncJobs
from taskyard.yard import Yard, open_teammate_yard
from taskyard.yard import open as open_yard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from taskyard.agents.mail import Mail
    from taskyard.agents.teams import Teams
    from taskyard.config import Settings
    from taskyard.jobs.events import Events
    from taskyard.jobs.notices import Outbox
    from taskyard.storage.process_registry import Instance
    from taskyard.tasks.lists import Lists
    from taskyard.tasks.store import TaskStore
    from taskyard.tasks.task_list import TaskList


class YardServices:
    """The services of this process."""

    def task_store(self, settings: Settings, folder: str, name: str) -> TaskStore:
        """Open the store of a list."""
        return yard_module.open_store(settings.store, folder, name, settings, None)

    def list_changes(self, settings: Settings, name: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Call `wake` when a list in a database may have changed."""
        return yard_module.subscribe_list(settings, name, wake)

    def lists(self, tasks_dir: str | os.PathLike[str] | None) -> Lists:
        """Return all lists that `taskyard.open` would find."""
        return yard_module.default_lists(tasks_dir)

    def mail(self, settings: Settings, home: str, team: str, *, instance: Instance) -> Mail:
        """Return the mailboxes of a team."""
        return yard_module.open_mail(settings, home, team, instance=instance)

    def outbox(self, settings: Settings, home: str, recipient: str) -> Outbox:
        """Return the notices that wait for an agent."""
        return yard_module.open_outbox(home, settings, recipient)

    def register(self, settings: Settings, home: str, agent: str | None) -> Instance:
        """Register this process as alive."""
        return yard_module.register(settings, home, agent)

    def teammate_yard(
        self, settings: Settings, home: str, store: TaskStore, *, report: Callable[[str], None], cwd: str | None
    ) -> Yard:
        """Return the yard of a teammate."""
        return open_teammate_yard(store, home=home, settings=settings, report=report, cwd=cwd)


class AsyncYard:
    """One task list, and background jobs that are awaited."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self.jobs = AsyncJobs(yard.jobs, YardServices())

    @property
    def tasks(self) -> TaskList:
        """The task list. Its calls take milliseconds, except that they wait for hooks and acceptance commands."""
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
        """Return the job notices of an agent, for `async for`: each delivered once, also after a crash."""
        return self._yard.notices(agent)

    def events(self, since: int | None = None, *, follow: bool = False, job: str | None = None) -> Events:
        """Return the events of background jobs, for `async for`; see `Yard.events`."""
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
