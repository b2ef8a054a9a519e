"""
Who this process is to the list: under which name it acts, and what its claims hang on.

    a program with a yard     a lock held for the life of the process      kind "process"
    a command inside a job    that job's lock (`TASKYARD_INSTANCE`)        kind "process"
    any other command         the name alone                               kind "manual"
    a claim with an end       the clock                                    kind "time"
"""

from __future__ import annotations

import os

from taskyard.clock import now_ms
from taskyard.tasklist.model import Lease
from taskyard.tasklist.tokens import new_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.instances import Instance

#: The living instances of this process, by home and wanted name; a forked child makes its own.
_ours: dict[tuple[str, str], Instance] = {}


class Identity:
    """One yard's way to claim."""

    def __init__(self, home: str, agent: str | None, *, is_person: bool = False) -> None:
        """`is_person`: claims go by name and have no end, as a command line's must."""
        self._home = home
        self._is_person = is_person
        self._job = os.environ.get("TASKYARD_INSTANCE")
        self._wanted = agent
        self.agent = agent
        if agent is not None and not is_person:
            self.agent = _instance(home, agent).name

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """What a claim of `agent` would be held under."""
        span = 0 if seconds is None else max(1, round(seconds * 1000))
        expires = now_ms() + span if span else None
        if self._job:
            from taskyard.tasklist.instances import lock_path, this_host

            lock = lock_path(self._home, self._job)
            return Lease(agent, self._job, new_token(), "process", now_ms(), host=this_host(), lock=lock)
        if self._is_person:
            return Lease(agent, f"by:{agent}", new_token(), "time" if span else "manual", now_ms(), expires, span)
        held = _instance(self._home, self._wanted or "")
        if span:
            return Lease(agent, held.id, new_token(), "time", now_ms(), expires, span)
        return Lease(agent, held.id, new_token(), "process", now_ms(), host=held.host, lock=held.lock_path)

    @property
    def living(self) -> Instance | None:
        """The living instance, if there is one yet."""
        held = _ours.get((self._home, self._wanted or ""))
        return held if held is not None and held.is_ours else None

    @property
    def instance(self) -> str | None:
        """The id of the living instance, if there is one yet."""
        return self.living.id if self.living is not None else None


def _instance(home: str, agent: str) -> Instance:
    held = _ours.get((home, agent))
    if held is None or not held.is_ours:
        from taskyard.tasklist import instances

        held = instances.enter(home, agent) if agent else instances.enter_unnamed(home)
        _ours[home, agent] = held
    return held
