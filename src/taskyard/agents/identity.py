"""Identity of this process on the task list: the name it acts under and what its claims depend on.

    a program with a yard     a lock, until the process exits              kind "process"
    a command inside a job    that job's lock (`TASKYARD_INSTANCE`)        kind "process"
    any other command         the name alone                               kind "manual"
    a claim with an expiry    the clock                                    kind "time"
    a client on another host  the clock, under a name that outlives us     kind "time"
    an in-process teammate    a lock of its own, until it leaves           kind "process"

Inside a teammate (`name@team`) the identity is a context variable, invisible to other tasks and threads.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from taskyard import config
from taskyard.config import Settings
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple
from taskyard.tasks.model import Lease, new_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.storage.process_registry import Instance


#: Live instances of this process, by home, requested name and store; a forked child creates its own.
_own_instances: dict[tuple[str, str, str], Instance] = {}


class TeammateIdentity(NamedTuple):
    """The in-process teammate that some code runs for: one of many in this program."""

    name: str
    team: str
    instance: Instance  #: its own, so that leaving releases its claims and no others

    @property
    def id(self) -> str:
        """The id `name@team`."""
        return f"{self.name}@{self.team}"


#: The teammate this context acts for; tasks and threads of one teammate never see another's.
current_teammate: ContextVar[TeammateIdentity | None] = ContextVar("acting", default=None)


def default_agent() -> str | None:
    """Return the default agent name: the in-process teammate's, else `TASKYARD_AGENT`."""
    here = current_teammate.get()
    return here.name if here is not None else os.environ.get("TASKYARD_AGENT")


class Identity:
    """Creates the leases of one yard's claims."""

    def __init__(
        self,
        home: str,
        agent: str | None,
        *,
        register: Callable[[Settings, str, str | None], Instance],
        settings: Settings | None = None,
        is_person: bool = False,
        lease: float | None = None,
    ) -> None:
        """Determine name and instance.

        Args:
            home: `$TASKYARD_HOME`.
            agent: The name to act under; if a live process has it, a number is appended.
            register: Registers this process as alive under a name or, with None, without one.
            settings: Select the store, which records live processes.
            is_person: Claims go by name and do not expire, as for a command line.
            lease: Act for a client that is not this process: claims expire after this many seconds and go by the
                registered name, so that a client that returns under it after our exit still owns them.
        """
        self._home = home
        self._register = register
        self._settings = settings or Settings()
        self._is_person = is_person
        here = current_teammate.get()
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
            self._remote = register(self._settings, home, agent)
            self.agent = self._remote.name
        elif agent is not None and not is_person:
            self.agent = self._instance(agent).name

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """Return the lease for a claim of `agent`."""
        if seconds is None:
            seconds = self._lease
        span = 0 if seconds is None else max(1, round(seconds * 1000))
        since = now_ms()
        expires = since + span if span else None
        if self._job:
            return self._of_job(agent, self._job)
        if self._is_person:
            return Lease(
                agent, _manual_instance_id(agent), new_token(), "time" if span else "manual", since, expires, span
            )
        if self._lease is not None:
            return Lease(agent, self.instance(agent), new_token(), "time", since, expires, span)
        held = self._held or self._instance(self._wanted or "")
        if span:
            return Lease(agent, held.id, new_token(), "time", since, expires, span)
        record = held.record
        return Lease(
            agent, held.id, new_token(), "process", since, host=record.host, lock=record.lock, place=record.place
        )

    def _of_job(self, agent: str, job: str) -> Lease:
        """Return a lease owned by the job around this command, valid while that job is alive."""
        from taskyard.core.files import make_private_folder
        from taskyard.core.system import this_host
        from taskyard.jobs.job_dir import JobPaths
        from taskyard.jobs.model import is_job_id
        from taskyard.storage.locks import folder_identity
        from taskyard.storage.process_registry import lock_path, registry_dir

        for folder in (registry_dir(self._home), f"{self._home}/jobs"):
            make_private_folder(folder)
        lock, place = lock_path(self._home, job), folder_identity(registry_dir(self._home))
        if is_job_id(job):
            lock, place = JobPaths(self._home, job).lock, folder_identity(f"{self._home}/jobs")
        return Lease(agent, job, new_token(), "process", now_ms(), host=this_host(), lock=lock, place=place)

    @property
    def is_job(self) -> bool:
        """Whether this is a command inside a background job."""
        return bool(self._job)

    @property
    def living(self) -> Instance | None:
        """The live instance, if there is one yet."""
        if self._lease is not None:
            return self._remote
        if self._held is not None:
            return self._held
        held = _own_instances.get((self._home, self._wanted or "", self._settings.store))
        return held if held is not None and held.is_ours else None

    def instance(self, agent: str) -> str:
        """Return the instance a claim of `agent` would name; "" while this process has none and owns nothing."""
        if self._job:
            return self._job
        if self._is_person:
            return _manual_instance_id(agent)
        if self._lease is not None:
            return f"remote:{agent}"
        return self.living.id if self.living is not None else ""

    def _instance(self, agent: str) -> Instance:
        """Return this process's registration under a name ("": none); created once per name and store."""
        key = self._home, agent, self._settings.store
        held = _own_instances.get(key)
        if held is None or not held.is_ours:
            held = _own_instances[key] = self._register(self._settings, self._home, agent or None)
        return held

    def leave(self) -> None:
        """Release the name of the client this acted for; a process keeps its own until it exits."""
        if self._remote is not None:
            self._remote.leave()


def _manual_instance_id(agent: str) -> str:
    return f"by:{agent}"


@contextmanager
def act_as(name: str, team: str, instance: Instance) -> Generator[TeammateIdentity]:
    """Act for a teammate within this context: `taskyard.open()` uses its list, name and claims."""
    who = TeammateIdentity(name, team, instance)
    me, list_of = current_teammate.set(who), config.teammate_team.set(team)
    try:
        yield who
    finally:
        config.teammate_team.reset(list_of)
        current_teammate.reset(me)


def current() -> TeammateIdentity | None:
    """Return the teammate that this code runs for; None outside of any."""
    return current_teammate.get()
