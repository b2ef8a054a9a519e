"""
Who is at the other end of a connection: an agent instance, with a list, jobs and mail of its own.

Over stdio there is one, for the life of the process. Its name is the one it was started with, else the client's own.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext

from taskyard import paths
from taskyard.app import Yard
from taskyard.app import open as open_yard
from taskyard.context import reminder_config
from taskyard.mcp_server.list_calls import ListCalls
from taskyard.mcp_server.reminding import Reminding
from taskyard.mcp_server.resource_list import project_dir
from taskyard.mcp_server.riding import Riding
from taskyard.runtime.async_jobs import AsyncJobs

T = TypeVar("T")

Request = ServerRequestContext[Any, Any]

#: Where a client does not say who it is.
NOBODY = "mcp-client"

_LONGEST_NAME = 60

#: How the names begin that Gemini CLI gives itself in `initialize`.
_GEMINI_CLI = "gemini-cli"

#: Seconds for a call that looks for notices to come back when its caller is gone.
_PATIENCE = 1.0
#: Seconds without a look after which a caller no longer waits for a job by itself: six looks at their rarest.
_LOOKED_AWAY = 30.0


class Caller:
    """One agent instance that asks for things."""

    def __init__(
        self, yard: Yard, *, lease: float | None = None, hold: float | None = None, asks_roots: bool = False
    ) -> None:
        """Nothing is read yet.

        Args:
            yard: Opened for this caller alone.
            lease: Seconds its claims last unless it asks for something; None: as long as this process.
            hold: Seconds until notices it did not acknowledge go back; None: when this process ends.
            asks_roots: Whether its folder is not that of this process: its client is asked (`roots`).
        """
        self.yard = yard
        self.jobs = AsyncJobs(yard.jobs)
        self.lease = lease
        self.hold = hold
        self.reminding = Reminding(reminder_config())
        self._riding = Riding(yard, hold=hold)
        self._list_calls = ListCalls()
        self._turn = anyio.Lock()  # notices are taken and acknowledged by one call at a time
        self._awaited: dict[str, float] = {}
        self.at_work: str | None = None  #: the id of the task it put in progress last, while it is
        self._at_end: list[Callable[[], object]] = []
        self._team_yard: Yard | None = None
        self.folder: str | None = None  #: where its jobs run; None: in the folder of this process
        self.is_settled = not asks_roots  #: whether its folder is known
        self.roots_asked = 0  #: calls that were answered with the question for its roots
        self.settling = anyio.Lock()

    @property
    def tasks_yard(self) -> Yard:
        """The yard of the list it works on: its own, or that of the team it leads."""
        return self._team_yard or self.yard

    def lead(self, team: str) -> None:
        """From now on it works on the list of `team`, and reads its mail there."""
        self._team_yard = self.yard.beside(team)
        self._riding.read_mail_of(self._team_yard)

    def work_in(self, folder: str | None) -> None:
        """Settle its folder: hooks, acceptance commands and jobs run there from now on."""
        self.is_settled = True
        self.folder = folder
        if folder is not None:
            self.yard.work_in(folder)

    @property
    def name(self) -> str:
        """Under which name it acts."""
        return self.yard.agent or NOBODY

    async def on_list(self, act: Callable[[Yard], T]) -> T:
        """Do something with the list; hooks and checks may take their time, so nothing else waits for it.

        Raises:
            Cancelled: the caller is gone.
        """
        return await self._list_calls.do(lambda cancel: act(self.tasks_yard.unless(cancel)))

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[bool]:
        """One call of it, from its beginning to its answer; whether nothing else was being answered when it came."""
        is_first = self._riding.begin()
        try:
            if is_first:
                await self.with_notices(Riding.arrived)
            yield is_first
        except BaseException:
            self._riding.end(was_sent=False)
            raise
        self._riding.end()

    def gave_mail(self, ids: Iterable[str]) -> None:
        """Messages are on an answer to it."""
        self._riding.gave_mail(ids)

    async def with_notices(self, act: Callable[[Riding], T]) -> T:
        """Do something with what waits for this caller."""
        async with self._turn:
            return await anyio.to_thread.run_sync(partial(act, self._riding))

    async def leave(self) -> None:
        """It is gone, and this process goes on: whatever of it is still on its way comes to nothing."""
        await self._list_calls.end()
        with anyio.move_on_after(_PATIENCE) as waited:
            await self._turn.acquire()
        self._end()
        try:
            await anyio.to_thread.run_sync(self._let_go)
        finally:
            if not waited.cancelled_caught:
                self._turn.release()  # whoever waits for it learns that it came too late

    def changed(self, task_id: str, *, works_on_it: bool) -> None:
        """A task is so by its doing: what it starts from now on is for the one that it works on."""
        if works_on_it:
            self.at_work = task_id
        elif task_id == self.at_work:
            self.at_work = None

    def awaits(self, job_id: str) -> None:
        """It looks after a job by itself, so it needs no notice of it; unless it stops looking."""
        self._awaited[job_id] = time.monotonic() + _LOOKED_AWAY

    def heard_of(self, job_id: str) -> None:
        """It has seen the job's end."""
        self._awaited.pop(job_id, None)

    def awaited(self) -> frozenset[str]:
        """The jobs it looks after by itself."""
        now = time.monotonic()
        self._awaited = {job_id: until for job_id, until in self._awaited.items() if until > now}
        return frozenset(self._awaited)

    def at_end(self, act: Callable[[], object]) -> None:
        """Have something done when it is gone."""
        self._at_end.append(act)

    def close(self) -> None:
        """It is gone: what it did not acknowledge comes again."""
        self._end()
        self._let_go()

    def _end(self) -> None:
        for act in self._at_end:
            act()

    def _let_go(self) -> None:
        self._riding.close()
        self.yard.close()


class Callers(Protocol):
    """Everyone who may ask."""

    async def find(self, request: Request) -> Caller:
        """Whoever asks for this."""
        ...

    async def close(self) -> None:
        """Nobody asks any more."""
        ...


class OneCaller:
    """The one at the other end of a pipe."""

    def __init__(self, *, agent: str | None, list: str | None, tasks_dir: str | None) -> None:
        """`agent`: the name it was given; else it says its own."""
        self._agent = agent
        self._list = list
        self._tasks_dir = tasks_dir
        self._caller: Caller | None = None

    async def find(self, request: Request) -> Caller:
        """The one there is; it enters with its first request."""
        if self._caller is None:
            name = self._agent or clean_name(client_name(request))
            folder = project_dir()
            yard = open_yard(
                tasks_dir=self._tasks_dir,
                list=self._list or paths.list_name(cwd=folder),
                cwd=folder,
                agent=name,
                via="mcp",
            )
            self._caller = Caller(yard)
        return self._caller

    async def close(self) -> None:
        """The pipe is closed."""
        if self._caller is not None:
            self._caller.close()


def client_name(request: Request) -> str:
    """What the client calls itself."""
    params = request.session.client_params
    return params.client_info.name if params is not None else ""


def parses_text(request: Request) -> bool:
    """Whether the client makes structuredContent of an answer's text where the answer has none."""
    return client_name(request).startswith(_GEMINI_CLI)


def clean_name(text: str) -> str:
    """A client's own name as the name of an agent."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:_LONGEST_NAME]
    return name or NOBODY
