"""
Who holds what, and who of them is gone: by the server's clock, or by the word of this machine's own kernel.

What the dead held goes back into the pool, each task as a change of its own.
"""

from __future__ import annotations

from taskyard.clock import elapsed
from taskyard.tasklist import rules
from taskyard.tasklist.model import Lease, Task, loss_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from taskyard.tasklist.postgres.committing import Committing
    from taskyard.tasklist.postgres.mirror import Known
    from taskyard.tasklist.postgres.view import ListView


class Holding:
    """The holders of one list's tasks."""

    def __init__(self, commits: Committing, alive: Callable[[Lease], bool | None], *, most_losses: int) -> None:
        """`alive` is the kernel's word on a holder; `most_losses`: so many lost holders set a task aside."""
        self.on_aside: Callable[[Task], None] = lambda _: None  #: hears of tasks that are set aside
        self.asked_at = 0.0  #: when the kernel was last asked about everybody (`clock.elapsed`)
        self._commits = commits
        self._alive = alive
        self._most_losses = most_losses

    def settled(self, ids: Collection[str]) -> ListView:
        """Some tasks as they are now; what the dead held of them is back in the pool."""
        view = self._commits.view(ids, fresh=True)
        return self._commits.view(ids, fresh=True) if self.release(view, ids) else view

    def release_all(self) -> bool:
        """Give back what the dead hold; whether there was anything. Without any, the list is not read for it."""
        self.asked_at = elapsed()
        dead, holders = self._commits.holders()
        if not dead and not any(self._alive(lease) is False for lease in holders):
            return False
        return self.release_dead(self._commits.mirror.everything())

    def release_dead(self, known: Known) -> bool:
        """Give back what the dead held when everything was last read; whether there was anything."""
        suspects = [*known.dead, *self._orphans(known)]
        return bool(suspects) and self.release(self._commits.view_of(known, fresh=True), suspects)

    def _orphans(self, known: Known) -> Sequence[str]:
        """The tasks of holders that are gone by the word of our own kernel, which is asked once about each."""
        examples = {instance: task_id for task_id, instance in known.held.items()}
        leases = {instance: known[task_id].lease for instance, task_id in examples.items()}
        gone = {instance for instance, lease in leases.items() if lease is not None and self._alive(lease) is False}
        return [task_id for task_id, instance in known.held.items() if instance in gone] if gone else ()

    def release(self, view: ListView, ids: Collection[str]) -> bool:
        """Give back what the dead held of some tasks, each as a change of its own; whether there was anything."""
        lost = [(task_id, lease) for task_id in ids if (lease := self._lost(view, task_id)) is not None]
        for task_id, lease in lost:
            row = view.row(task_id)
            assert row is not None, "what is held is there"
            losses = row.losses + 1
            back = rules.lose(row.task, losses=losses, most=self._most_losses)
            told = loss_of(lease, losses)
            if self._commits.give_back(view, back, losses, told, only_dead=view.is_dead(task_id)) and back.is_held:
                self.on_aside(back)
        return bool(lost)

    def _lost(self, view: ListView, task_id: str) -> Lease | None:
        """The lease of a task whose holder is gone."""
        lease = view.lease(task_id)
        if lease is None or view.is_dead(task_id):
            return lease
        return lease if lease.kind == "process" and self._alive(lease) is False else None
