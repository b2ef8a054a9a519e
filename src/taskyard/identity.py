"""
Who this process is to the list: under which name it acts, and what its claims hang on.

    a program with a yard     a lock held for the life of the process      kind "process"
    a command inside a job    that job's lock (`TASKYARD_INSTANCE`)        kind "process"
    any other command         the name alone                               kind "manual"
    a claim with an end       the clock                                    kind "time"
    somebody far away         the clock, under a name that outlives us     kind "time"
    an in-process teammate    a lock of its own, held until it leaves      kind "process"
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from taskyard.clock import now_ms
from taskyard.config import Settings
from taskyard.tasklist.model import Lease
from taskyard.tasklist.tokens import new_token
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.instances import Instance

#: The living instances of this process, by home, wanted name and store; a forked child makes its own.
_ours: dict[tuple[str, str, str], Instance] = {}


class Acting(NamedTuple):
    """The in-process teammate that some code runs for: one of many in this program."""

    name: str
    team: str
    instance: Instance  #: its own, so that what it holds goes back when it leaves, and nobody else's

    @property
    def id(self) -> str:
        """As everybody names it: `name@team`."""
        return f"{self.name}@{self.team}"


#: Whom this very context acts for; tasks and threads of one teammate never see another's.
acting: ContextVar[Acting | None] = ContextVar("acting", default=None)


def own_name() -> str | None:
    """The name to act under where none is given: the in-process teammate's, else `TASKYARD_AGENT`."""
    here = acting.get()
    return here.name if here is not None else os.environ.get("TASKYARD_AGENT")


class Identity:
    """One yard's way to claim."""

    def __init__(
        self,
        home: str,
        agent: str | None,
        *,
        settings: Settings | None = None,
        is_person: bool = False,
        lease: float | None = None,
    ) -> None:
        """Who acts.

        Args:
            home: `$TASKYARD_HOME`.
            agent: The name to act under; if somebody living has it, it gets a number.
            settings: Where the store is, which says who lives.
            is_person: Claims go by name and have no end, as a command line's must.
            lease: It acts for somebody who is not this process: claims last for so many seconds and go by the name
                it got, so that whoever comes back under it after our death still holds them.
        """
        self._home = home
        self._settings = settings or Settings()
        self._is_person = is_person
        here = acting.get()
        is_teammate = here is not None and lease is None and not is_person and agent in (None, here.name)
        self._held = here.instance if here is not None and is_teammate else None
        self._job = os.environ.get("TASKYARD_INSTANCE") if lease is None and self._held is None else None
        self._wanted = agent
        self._lease = lease
        self._remote: Instance | None = None
        self.agent = agent
        if here is not None and self._held is not None:
            self.agent = here.name
        elif agent is not None and lease is not None:
            from taskyard import presence

            self._remote = presence.enter(home, agent, self._settings)
            self.agent = self._remote.name
        elif agent is not None and not is_person:
            self.agent = _instance(home, agent, self._settings).name

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """What a claim of `agent` would be held under."""
        if seconds is None:
            seconds = self._lease
        span = 0 if seconds is None else max(1, round(seconds * 1000))
        since = now_ms()
        expires = since + span if span else None
        if self._job:
            return self._of_job(agent, self._job)
        if self._is_person:
            return Lease(agent, _person(agent), new_token(), "time" if span else "manual", since, expires, span)
        if self._lease is not None:
            return Lease(agent, self.instance(agent), new_token(), "time", since, expires, span)
        held = self._held or _instance(self._home, self._wanted or "", self._settings)
        if span:
            return Lease(agent, held.id, new_token(), "time", since, expires, span)
        record = held.record
        return Lease(
            agent, held.id, new_token(), "process", since, host=record.host, lock=record.lock, place=record.place
        )

    def _of_job(self, agent: str, job: str) -> Lease:
        """The job around this command holds the claim, for as long as it lives."""
        from taskyard.disk.files import make_private_folder
        from taskyard.disk.place import place_of
        from taskyard.disk.processes import this_host
        from taskyard.instances import folder_of, lock_path
        from taskyard.runtime.folder import JobFolder
        from taskyard.runtime.ids import is_job_id

        for folder in (folder_of(self._home), f"{self._home}/jobs"):
            make_private_folder(folder)
        lock, place = lock_path(self._home, job), place_of(folder_of(self._home))
        if is_job_id(job):
            lock, place = JobFolder(self._home, job).lock, place_of(f"{self._home}/jobs")
        return Lease(agent, job, new_token(), "process", now_ms(), host=this_host(), lock=lock, place=place)

    @property
    def is_job(self) -> bool:
        """Whether this is a command inside a background job."""
        return bool(self._job)

    @property
    def living(self) -> Instance | None:
        """The living instance, if there is one yet."""
        if self._lease is not None:
            return self._remote
        if self._held is not None:
            return self._held
        held = _ours.get((self._home, self._wanted or "", self._settings.store))
        return held if held is not None and held.is_ours else None

    def instance(self, agent: str) -> str:
        """The instance a claim of `agent` would name; "" while this process has none, and so holds nothing."""
        if self._job:
            return self._job
        if self._is_person:
            return _person(agent)
        if self._lease is not None:
            return f"remote:{agent}"
        return self.living.id if self.living is not None else ""

    def leave(self) -> None:
        """Whoever this acted for is gone, and the name is free; a process stays who it is until it ends."""
        if self._remote is not None:
            self._remote.leave()


def _person(agent: str) -> str:
    return f"by:{agent}"


def _instance(home: str, agent: str, settings: Settings) -> Instance:
    held = _ours.get((home, agent, settings.store))
    if held is None or not held.is_ours:
        from taskyard import presence

        held = presence.enter(home, agent, settings) if agent else presence.enter_unnamed(home, settings)
        _ours[home, agent, settings.store] = held
    return held
