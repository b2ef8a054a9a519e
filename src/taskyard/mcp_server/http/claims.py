"""
What the callers hold: renewed while they ask for things, given back when they are gone.

One look at the list serves all of them, and none waits for another's call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from taskyard.app import Yard
from taskyard.errors import Conflict, Damaged, NotFound
from taskyard.runtime.steering import asked_to_stop
from taskyard.tasklist.model import Lease, Task

#: A claim with more than this part of its time left is not written anew.
_FRESH = 0.95


class Claims:
    """The claims and jobs of remote callers on one list."""

    def __init__(self, yard: Yard) -> None:
        """`yard`: of nobody, for all of them."""
        self._yard = yard

    def renew(self, names: Collection[str], now: int) -> None:
        """Hold on to what agents of these names have claimed over this door; `now` in epoch ms."""
        for task, lease in self._held(names):
            if lease.expires is not None and lease.expires - now < lease.span * _FRESH:
                try:
                    self._yard.tasks.renew(task.id, agent=lease.owner, token=lease.token)
                except (Conflict, NotFound, Damaged):
                    continue  # finished, given back or removed meanwhile

    def give_back(self, name: str) -> None:
        """Put what an agent that left has claimed back on the list, and end the jobs that were to end with it."""
        for task, lease in self._held((name,)):
            try:
                self._yard.tasks.release(task.id, agent=lease.owner, token=lease.token)
            except (Conflict, NotFound, Damaged):
                continue
        if jobs := self._jobs(name):
            asked_to_stop(self._yard.home, jobs, by=name, grace=None)  # their keepers see to it

    def has_any(self, name: str) -> bool:
        """Whether an agent holds a task, or has a job that would end with it."""
        return next(self._held((name,)), None) is not None or bool(self._jobs(name))

    def _held(self, names: Collection[str]) -> Iterator[tuple[Task, Lease]]:
        for task in self._yard.tasks.list(internal=True):
            lease = task.lease
            if lease is not None and lease.owner in names and lease.instance == f"remote:{lease.owner}":
                yield task, lease

    def _jobs(self, name: str) -> list[str]:
        jobs = self._yard.jobs.list()
        return [job.id for job in jobs if job.agent_id == name and job.on_parent_exit == "kill"]
