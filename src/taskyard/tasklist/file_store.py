"""
The list as files: one JSON file per task, beside whoever else works in the folder.

Role
    The verbs of `TaskStore` about single tasks: which locks an operation needs, which facts it
    gathers under them, what is written. Dependencies and removal are `edges.py`; how a write
    survives a crash is `writer.py`; how others' changes and dead writers' remains are brought in
    is `settle.py`; reading is `listing.py`.

    A mere look at a list must cost little: what only writers need is imported where it is used.
"""

from __future__ import annotations

import time

from taskyard.clock import now_ms
from taskyard.errors import AlreadyClaimed, AlreadyResolved, Busy, Conflict, Damaged, StorageError, TaskNotFound
from taskyard.tasklist.list_files import ListFiles
from taskyard.tasklist.model import Act, Change, Decision, Draft, Facts, Lease, Listing, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from taskyard.tasklist.graph import Edge
    from taskyard.tasklist.hold import Hold
    from taskyard.tasklist.reader import Seen
    from taskyard.tasklist.store import Rule

#: How often a claim looks at a task somebody is just writing before it waits in line, and the seconds in between.
_GLANCES = 10
_GLANCE = 0.0003

#: How much of a record is the file's; the rest belongs to answers.
_STORED = Task._fields.index("lease")


class FileStore:
    """One list in one folder."""

    def __init__(self, list_files: ListFiles) -> None:
        self._files = list_files
        self._leases = list_files.leases
        self._set_aside: list[Task] = []
        self._on_aside: Callable[[Task], None] = lambda _: None

    @property
    def name(self) -> str:
        """The list's name."""
        return self._files.folder.name

    # -- reading -----------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """One task, with its lease; a dead holder's is released first."""
        task = self._files.tasks.get(task_id) if self._files.folder.exists() else None
        if task is None:
            raise self._files.missing(task_id)
        if task.lease is not None and self._leases.is_dead(task.lease):
            self._release_dead([task_id])
            return self._files.tasks.get(task_id) or task
        return task

    def list(self) -> Listing:
        """Everything on the list. What others did is logged, what the dead held is released."""
        if not self._files.folder.exists():
            return Listing()
        tasks = self._files.tasks
        listing, changed = tasks.listing(self._files.known)
        if changed and self._files.writer_if_allowed() is not None:
            self._files.settler.look_around(changed)
        dead = self._leases.dead_ids()
        if dead and self._release_dead(dead):
            listing, _ = tasks.listing(self._files.known)
        return listing

    def is_finished(self) -> bool:
        """Whether nothing that people see is open."""
        return not self._files.tasks.any_open()

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """The event log from an id on, or one task's part of it, oldest first."""
        writer = self._files.writer_if_allowed() if self._files.folder.exists() else None
        if writer is None:
            return iter(())
        from taskyard.tasklist import history

        if task_id is not None:
            return (change for change in history.life(writer.journal, writer.ledger, task_id) if change.id >= since)
        return history.changes(writer.journal, writer.ledger, since, self._files.settler.settle_if_free)

    def position(self) -> int:
        """The id the next change will have, or a smaller one."""
        writer = self._files.writer_if_allowed() if self._files.folder.exists() else None
        return writer.journal.end() if writer is not None else 0

    def wait(self, timeout: float) -> bool:
        """Sleep until something may have changed, at most `timeout` seconds; whether something may have."""
        return self._files.tasks.wait(timeout, debounce=self._files.settings.debounce)

    # -- writing -----------------------------------------------------------------------------

    def reserve(self) -> str:
        """A fresh id; the mark is raised, so it never returns."""
        with self._files.hold(whole=True):
            return self._files.next_id()

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None) -> Task:
        """Put a new task on the list."""
        if draft.blocks or draft.blocked_by:
            from taskyard.tasklist.edges import create_linked

            return self._files.persist(lambda: create_linked(self._files, draft, act, task_id))
        return self._files.persist(lambda: self._create(draft, act, task_id))

    def _create(self, draft: Draft, act: Act, task_id: str | None) -> Task:
        from taskyard.tasklist.edges import new_task
        from taskyard.tasklist.writer import Write

        # The list is held only to give out the id: from then on nobody else has it, and creates run side by side.
        new_id = task_id or self.reserve()
        task = new_task(new_id, draft)
        try:
            with self._files.hold([new_id], making=True) as hold:
                self._files.writer.commit(hold, act, [Write(new_id, None, task, is_new=task_id is None)])
        except StorageError:
            if task_id is None:
                self._files.take_back(new_id)
            raise
        return task

    def update(
        self, task_id: str, rule: Rule, act: Act, *, with_blockers: bool = False, whole_list: bool = False
    ) -> Task:
        """Let `rule` decide about one task under its lock, and save what it says."""
        try:
            return self._decide(task_id, rule, act, with_blockers, whole_list)
        finally:
            while self._set_aside:
                self._on_aside(self._set_aside.pop())

    def listen(self, on_aside: Callable[[Task], None]) -> None:
        """Be told of tasks that are set aside; no lock is held then."""
        self._on_aside = on_aside

    def _decide(self, task_id: str, rule: Rule, act: Act, with_blockers: bool, whole_list: bool) -> Task:
        reading: Sequence[str] = ()
        if with_blockers:
            # Many may want the same task at once: all but one can be refused without ever waiting for its lock.
            for _ in range(_GLANCES):
                if self._files.is_busy(task_id):
                    time.sleep(_GLANCE)
                    continue
                reading = self._blockers_unless_refused(task_id, rule, whole_list)
                try:
                    return self._persist(task_id, rule, act, reading, with_blockers, whole_list, patient=False)
                except Busy:
                    time.sleep(_GLANCE)
        return self._persist(task_id, rule, act, reading, with_blockers, whole_list, patient=True)

    def _persist(
        self, task_id: str, rule: Rule, act: Act, reading: Sequence[str], blockers: bool, whole: bool, *, patient: bool
    ) -> Task:
        return self._files.persist(lambda: self._update(task_id, rule, act, reading, blockers, whole, patient=patient))

    def _blockers_unless_refused(self, task_id: str, rule: Rule, whole_list: bool) -> Sequence[str]:
        """The blockers' ids. What needs no lock is refused here: that the task is somebody's, or done."""
        task = self._files.tasks.get(task_id)
        if task is None:
            return ()
        settled = task.is_done or (task.lease is not None and not self._leases.is_dead(task.lease))
        if settled and not whole_list:
            try:
                rule(Facts(task, task.lease, _unseen, tuple))
            except (AlreadyClaimed, AlreadyResolved):
                raise
            except Conflict:
                pass  # worth a closer look, under the lock
        return task.blocked_by

    def _update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        reading: Sequence[str],
        with_blockers: bool,
        whole: bool,
        *,
        patient: bool,
    ) -> Task:
        timeout = None if patient else 0.0
        with self._files.hold([task_id], reading=reading, whole=whole, timeout=timeout) as hold:
            task, seen = self._files.seen(task_id)
            complete = not with_blockers or {*reading, task_id}.issuperset(task.blocked_by)
            if complete:
                lease, losses = self._leases.read(task_id)
                if lease is not None and (lease.owner != task.owner or task.is_done):
                    lease = None
                if lease is not None and self._leases.is_dead(lease):
                    task, seen, losses = self._lose(hold, task, seen, lease, losses)
                    lease = None
                facts = Facts(task, lease, self._files.tasks.look, self._files.tasks.everything)
                return self._save(hold, act, facts, rule(facts), seen, losses)
        # It has new blockers: start over with those.
        return self._update(task_id, rule, act, task.blocked_by, with_blockers, whole, patient=patient)

    def _save(self, hold: Hold, act: Act, facts: Facts, decision: Decision, seen: Seen | None, losses: int) -> Task:
        from taskyard.tasklist.writer import Write

        task, lease = decision
        if task[:_STORED] == facts.task[:_STORED]:
            if lease != facts.lease:
                self._leases.write(task.id, lease, losses)
            return task._replace(lease=lease)
        task = task._replace(updated_at=now_ms(), lease=None)
        kept = 0 if task.is_done or (facts.task.is_held and not task.is_held) else losses
        record = (lease, kept) if (lease, kept) != (facts.lease, losses) else None
        self._files.writer.commit(hold, act, [Write(task.id, seen, task, record)])
        return task._replace(lease=lease)

    def _lose(
        self, hold: Hold, task: Task, seen: Seen | None, lease: Lease, losses: int
    ) -> tuple[Task, Seen | None, int]:
        """Give back what a dead holder had, as a change of its own."""
        from taskyard.tasklist.rules import lose
        from taskyard.tasklist.writer import Write

        losses += 1
        back = lose(task, losses=losses, most=self._files.settings.lease_losses)._replace(updated_at=now_ms())
        act = Act(lease.owner, "lease_lost", "watch", f"its holder {lease.instance} is gone (loss {losses})")
        self._files.writer.commit(hold, act, [Write(task.id, seen, back, (None, losses))])
        if back.is_held:
            self._set_aside.append(back)
        return back, self._files.tasks.reader.read(task.id), losses

    def _release_dead(self, ids: Iterable[str]) -> bool:
        """Put tasks of dead holders back into the pool; False where we may not, or somebody is at it."""
        act = Act(None, "look", "watch")
        released = False
        try:
            for task_id in ids:
                try:
                    self.update(task_id, lambda facts: Decision(facts.task, facts.lease), act)
                    released = True
                except (TaskNotFound, Damaged):
                    pass  # another program's doing; it must not keep the others from coming back
                self._files.settler.tidy_lease(task_id)
        except (StorageError, Busy):
            pass
        return released

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """The first task, in the order given, that `rule` accepts."""
        for task_id in order(self.list()):
            try:
                return self.update(task_id, rule, act, with_blockers=True)
            except (Conflict, TaskNotFound, Damaged):
                continue  # somebody was quicker, or it is not to be had
        return None

    # -- several tasks -----------------------------------------------------------------------

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Make each (blocker, blocked) wait: all edges or none."""
        from taskyard.tasklist.edges import link

        self._files.persist(lambda: link(self._files, edges, act))

    def unlink(self, edges: Sequence[Edge], act: Act) -> None:
        """Take dependencies away."""
        from taskyard.tasklist.edges import unlink

        self._files.persist(lambda: unlink(self._files, edges, act))

    def remove(self, task_ids: Sequence[str], act: Act) -> tuple[Task, ...]:
        """Take tasks off the list, and out of everyone's dependencies."""
        from taskyard.tasklist.edges import remove

        return self._files.persist(lambda: remove(self._files, task_ids, act))

    def restore(self, task_id: str, act: Act) -> Task:
        """Bring a removed task back under its id."""
        from taskyard.tasklist.edges import restore

        return self._files.persist(lambda: restore(self._files, task_id, act))

    def signal(self) -> None:
        """Wake whoever waits in this process, at once."""
        self._files.tasks.signal()

    def close(self) -> None:
        """Let go of open files."""
        self._files.close()


def _unseen(_: str) -> Task | None:
    """No other task: blockers are left out of a decision that only asks whose the task is."""
    return None
