"""Why an operation on a list starts over: what it had read no longer holds."""

from __future__ import annotations


class StartOver(Exception):
    """Look again, and do it from the start."""


class LockLost(StartOver):
    """Another program took our folder lock for abandoned, since we slept for so long."""


class IdTaken(StartOver):
    """Another program had given out the id that looked free."""


class Unsettled(StartOver):
    """A dead writer's intent is in the way: settle that task first."""

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id)
        self.task_id = task_id


class Interfered(Unsettled):
    """Another program wrote between our read and our write: our own intent is to be settled."""
