"""
Changing single tasks of a list in files: which locks that needs, which facts are gathered under
them, what is written.

Loaded with the first write: a mere look at a list does without all that writers need.
"""

from __future__ import annotations

import time

from taskyard.clock import now_ms
from taskyard.errors import AlreadyClaimed, AlreadyResolved, Busy, Conflict, Damaged, StorageError, TaskNotFound
from taskyard.tasklist.edges import create_linked, held, new_task, rewired
from taskyard.tasklist.model import Act, Decision, Draft, Facts, Lease, Links, Task, loss_of, stored
from taskyard.tasklist.relinking import others
from taskyard.tasklist.rules import lose
from taskyard.tasklist.starting_over import IdTaken
from taskyard.tasklist.writer import Write
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskyard.tasklist.hold import Hold
    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.reader import Seen
    from taskyard.tasklist.store import Rule

#: How often a claim looks at a task somebody is just writing before it waits in line, and the seconds in between.
_GLANCES = 10
_GLANCE = 0.0006

_LOOK = Act(None, "look", "watch")


class _Wanted(NamedTuple):
    """One update that somebody asked for."""

    task_id: str
    rule: Rule
    act: Act
    with_blockers: bool
    whole_list: bool
    links: Links | None

    @property
    def writing(self) -> tuple[str, ...]:
        """The tasks it may write."""
        return (self.task_id, *others(self.task_id, self.links)) if self.links is not None else (self.task_id,)


class Changing:
    """The writing half of a file store."""

    def __init__(self, list_files: ListFiles, on_aside: Callable[[Task], None]) -> None:
        """`on_aside` hears of tasks that are set aside, when no lock is held."""
        self._files = list_files
        self._leases = list_files.leases
        self._on_aside = on_aside
        self._set_aside: list[Task] = []

    def create(self, draft: Draft, act: Act, task_id: str | None, lease: Lease | None) -> Task:
        """Put a new task on the list, under a fresh id or a reserved one."""
        if draft.blocks or draft.blocked_by:
            return self._files.persist(lambda: create_linked(self._files, draft, act, task_id, lease))
        if task_id is not None:
            return self._files.persist(lambda: self._create_reserved(draft, act, task_id, lease))
        return self._files.persist(lambda: self._create(draft, act, lease))

    def _create(self, draft: Draft, act: Act, lease: Lease | None) -> Task:
        new_id = ""
        try:
            with self._files.hold(whole=True) as hold:
                new_id = self._files.likely_id()
                hold.narrow(new_id)
                if not self._files.is_fresh(new_id):
                    raise IdTaken
                task = new_task(new_id, draft)
                self._files.writer.commit(hold, act, (Write(new_id, None, task, held(lease), is_new=True),))
        except StorageError:
            if new_id:
                self._files.take_back(new_id)
            raise
        return task._replace(lease=lease)

    def _create_reserved(self, draft: Draft, act: Act, task_id: str, lease: Lease | None) -> Task:
        task = new_task(task_id, draft)
        with self._files.hold([task_id], making=True) as hold:
            self._files.writer.commit(hold, act, (Write(task_id, None, task, held(lease)),))
        return task._replace(lease=lease)

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool,
        whole_list: bool,
        links: Links | None = None,
    ) -> Task:
        """Let `rule` decide about one task under its lock, and save what it says."""
        try:
            wanted = _Wanted(task_id, rule, act, with_blockers, whole_list or links is not None, links)
            return self._decide(wanted)
        finally:
            self._tell_aside()

    def _tell_aside(self) -> None:
        """Tell of what was set aside, each once, whichever thread comes first."""
        while self._set_aside:
            try:
                task = self._set_aside.pop()
            except IndexError:
                return  # another thread was quicker
            self._on_aside(task)

    def _decide(self, wanted: _Wanted) -> Task:
        reading: Sequence[str] = ()
        if wanted.with_blockers:
            # Many may want the same task at once: all but one can be refused without ever waiting for its lock.
            for _ in range(_GLANCES):
                reading = self._blockers_unless_refused(wanted.task_id, wanted.rule, wanted.whole_list)
                try:
                    return self._persist(wanted, reading, patient=False)
                except Busy:
                    time.sleep(_GLANCE)
        return self._persist(wanted, reading, patient=True)

    def _persist(self, wanted: _Wanted, reading: Sequence[str], *, patient: bool) -> Task:
        return self._files.persist(lambda: self._update(wanted, reading, patient=patient))

    def _blockers_unless_refused(self, task_id: str, rule: Rule, whole_list: bool) -> Sequence[str]:
        """The blockers' ids. What needs no lock is refused here: that the task is somebody's, or done."""
        task = self._files.tasks.look(task_id)
        if task is None:
            return ()
        if task.owner is not None and not whole_list:
            lease = self._leases.current(task)
            if task.is_done or (lease is not None and not self._leases.is_dead(lease)):
                try:
                    rule(Facts(task, lease, _unseen, tuple))
                except (AlreadyClaimed, AlreadyResolved):
                    raise
                except Conflict:
                    pass  # worth a closer look, under the lock
        return task.blocked_by

    def _update(self, wanted: _Wanted, reading: Sequence[str], *, patient: bool) -> Task:
        task_id, timeout = wanted.task_id, None if patient else 0.0
        writing = wanted.writing
        with self._files.hold(writing, reading=reading, whole=wanted.whole_list, timeout=timeout) as hold:
            task, seen = self._files.seen(task_id, hold)
            complete = not wanted.with_blockers or {*reading, *writing}.issuperset(task.blocked_by)
            if complete:
                lease, losses = self._leases.read(task_id)
                if lease is not None and (lease.owner != task.owner or task.is_done):
                    lease = None
                if lease is not None and self._leases.is_dead(lease):
                    task, seen, losses = self._lose(hold, task, seen, lease, losses)
                    lease = None
                facts = Facts(task, lease, self._files.tasks.look, self._files.tasks.everything)
                return self._save(hold, wanted, facts, seen, losses)
        # It has new blockers: start over with those.
        return self._update(wanted, task.blocked_by, patient=patient)

    def _save(self, hold: Hold, wanted: _Wanted, facts: Facts, seen: Seen | None, losses: int) -> Task:
        task, lease = wanted.rule(facts)
        first: Sequence[Write] = ()
        last: Sequence[Write] = ()
        if wanted.links is not None:
            first, task, last = rewired(self._files, facts.task, task, wanted.links, hold)
        if stored(task) == stored(facts.task):
            if first or last:  # an edge that only the others' files knew
                self._files.writer.commit(hold, wanted.act, (*first, *last))
            if lease != facts.lease:
                self._leases.write(task.id, lease, losses)
            return task._replace(lease=lease)
        task = task._replace(updated_at=now_ms(), lease=None)
        kept = 0 if task.is_done or (facts.task.is_held and not task.is_held) else losses
        record = (lease, kept) if (lease, kept) != (facts.lease, losses) else None
        self._files.writer.commit(hold, wanted.act, (*first, Write(task.id, seen, task, record), *last))
        return task._replace(lease=lease)

    def _lose(
        self, hold: Hold, task: Task, seen: Seen | None, lease: Lease, losses: int
    ) -> tuple[Task, Seen | None, int]:
        """Give back what a dead holder had, as a change of its own."""
        losses += 1
        back = lose(task, losses=losses, most=self._files.settings.lease_losses)._replace(updated_at=now_ms())
        self._files.writer.commit(hold, loss_of(lease, losses), (Write(task.id, seen, back, (None, losses)),))
        if back.is_held:
            self._set_aside.append(back)
        return back, self._files.tasks.reader.read(task.id), losses

    def release_dead(self, ids: Iterable[str]) -> bool:
        """Put tasks of dead holders back into the pool; False where we may not, or somebody is at all of them.

        What cannot be had is left until the next look, and keeps no other from coming back; only the first of those
        is waited for.
        """
        released, patient = False, True
        for task_id in ids:
            try:
                released = self._release_dead(task_id, patient=patient) or released
            except (StorageError, Busy):
                patient = False
        return released

    def _release_dead(self, task_id: str, *, patient: bool) -> bool:
        released = False
        try:
            self._persist(_Wanted(task_id, _as_it_is, _LOOK, False, False, None), (), patient=patient)
            released = True
        except (TaskNotFound, Damaged):
            pass  # another program's doing; its lease goes all the same
        finally:
            self._tell_aside()
        self._files.settler.tidy_lease(task_id, timeout=None if patient else 0.0)
        return released


def _as_it_is(facts: Facts) -> Decision:
    """No change: only what a dead holder had comes back."""
    return Decision(facts.task, facts.lease)


def _unseen(_: str) -> Task | None:
    """No other task: blockers are left out of a decision that only asks whose the task is."""
    return None
