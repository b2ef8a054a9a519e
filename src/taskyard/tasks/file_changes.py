"""Write operations of the file store: which locks they take, which facts they read, what they write.

`FileStoreWriter` changes single tasks. Operations on several tasks (dependencies, removal, restore,
adoption of a whole list) lock the list and every task they write; each is made completely or not at all.
`blockedBy` is authoritative and written first; `blocks` is its mirror. A crash in between is completed by
the next writer.

Loaded with the first write: reading a list does without all that writers need.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from taskyard.core import files as disk
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple
from taskyard.errors import (
    AlreadyClaimed,
    AlreadyResolved,
    Busy,
    Conflict,
    Cycle,
    Damaged,
    ListNotEmpty,
    NothingToRestore,
    StorageError,
    TaskNotFound,
)
from taskyard.tasks import graph, history
from taskyard.tasks.graph import MissingParent, check_parent, drop_cyclic_parent
from taskyard.tasks.list_folder import leading_number
from taskyard.tasks.model import (
    Act,
    Decision,
    Draft,
    Facts,
    IdTaken,
    Lease,
    LinkChange,
    Task,
    TaskStatus,
    WriteConflict,
    lease_lost_act,
    metadata_parent,
    stored_fields,
)
from taskyard.tasks.rules import requeue_lost
from taskyard.tasks.transitions import (
    TaskGraph,
    add_link,
    apply_links,
    linked_ids,
    may_be_missing,
    remove_link,
)
from taskyard.tasks.writer import TaskWrite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskyard.tasks.file_store import ListFiles
    from taskyard.tasks.graph import Edge
    from taskyard.tasks.reader import TaskFileState
    from taskyard.tasks.store import Rule
    from taskyard.tasks.writer import TaskLocks


def task_graph(files: ListFiles, changed: Mapping[str, Task]) -> TaskGraph:
    """Return the graph of the list with `changed` tasks replaced."""
    return TaskGraph(files.tasks.look, files.tasks.everything, changed)


def new_task(task_id: str, draft: Draft) -> Task:
    """Return a draft as a task with its id."""
    now = now_ms()
    return Task(task_id, *draft, created_at=now, updated_at=now)


def lease_record(lease: Lease | None) -> tuple[Lease | None, int] | None:
    """Return the lease record of a new task."""
    return (lease, 0) if lease is not None else None


def create_linked(files: ListFiles, draft: Draft, act: Act, task_id: str | None, lease: Lease | None) -> Task:
    """Create a task and its dependencies in one step."""
    others = sorted({*draft.blocks, *draft.blocked_by}, key=int)
    with files.hold(others, whole=True) as hold:
        seen = {other: files.seen(other, hold) for other in others}
        _refuse_cycle_through(files, draft)
        new_id = task_id or files.next_id()
        _check_parent(files, new_id, draft)
        task = new_task(new_id, draft)
        after = {other: found for other, (found, _) in seen.items()}
        for other in draft.blocks:
            after[other] = add_link(after[other], blocked_by=new_id)
        for other in draft.blocked_by:
            after[other] = add_link(after[other], blocks=new_id)
        _commit(files, hold, act, seen, after, first=[TaskWrite(new_id, None, task, lease_record(lease))])
    return task._replace(lease=lease)


def _refuse_cycle_through(files: ListFiles, draft: Draft) -> None:
    """Refuse a new task that would close a cycle between its blockers and the tasks it blocks."""
    tasks = task_graph(files, {})
    for blocked in draft.blocks:
        for blocker in draft.blocked_by:
            if trail := graph.wait_path(tasks, blocker, blocked):
                raise Cycle(trail)


def _check_parent(files: ListFiles, task_id: str, draft: Draft) -> None:
    if (parent := metadata_parent(draft.metadata)) is not None:
        try:
            check_parent(task_id, parent, files.tasks.look)
        except MissingParent:
            raise files.missing(parent) from None


def link(files: ListFiles, edges: Sequence[Edge], act: Act) -> None:
    """Add dependencies (blocker, blocked): all or none."""
    ids = sorted({task_id for edge in edges for task_id in edge}, key=int)
    with files.hold(ids, whole=True) as hold:
        seen = {task_id: files.seen(task_id, hold) for task_id in ids}
        after = {task_id: found for task_id, (found, _) in seen.items()}
        after = apply_links(after, LinkChange(new=tuple(edges)), partial(task_graph, files))
        _commit(files, hold, act, seen, after)


def unlink(files: ListFiles, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
    """Remove dependencies from both sides, also where only one side has them; return those that existed."""
    ids = sorted({task_id for edge in edges for task_id in edge}, key=int)
    with files.hold(ids, whole=True) as hold:
        seen: dict[str, tuple[Task, TaskFileState | None]] = {}
        missing: dict[str, TaskNotFound] = {}
        for task_id in ids:
            try:
                seen[task_id] = files.seen(task_id, hold)
            except TaskNotFound as error:
                missing[task_id] = error
        after = {task_id: found for task_id, (found, _) in seen.items()}
        there: list[Edge] = []
        for blocker, blocked in edges:
            if blocked in missing:
                raise missing[blocked]
            if blocker in missing and blocker not in after[blocked].blocked_by:
                raise missing[blocker]  # a dependency on a removed task can be removed like any other
            if blocker in after[blocked].blocked_by or (blocker in after and blocked in after[blocker].blocks):
                there.append((blocker, blocked))
            after[blocked] = remove_link(after[blocked], blocked_by=blocker)
            if blocker in after:
                after[blocker] = remove_link(after[blocker], blocks=blocked)
        _commit(files, hold, act, seen, after)
    return tuple(there)


def remove(
    files: ListFiles,
    task_ids: Sequence[str],
    act: Act,
    *,
    only_done: bool = False,
    check: Callable[[Facts], None] | None = None,
) -> tuple[Task, ...]:
    """Remove tasks from the list and from all dependencies; the mark stays above them."""
    doomed = dict.fromkeys(task_ids)
    neighbours = [
        task.id
        for task in files.tasks.everything()
        if task.id not in doomed and any(other in doomed for other in (*task.blocks, *task.blocked_by))
    ]
    with files.hold([*doomed, *neighbours], whole=True) as hold:
        gone = {task_id: files.seen(task_id, hold) for task_id in doomed}
        if only_done:
            graph.refuse_open(task for task, _ in gone.values())
        if check is not None:
            _check_each(files, [task for task, _ in gone.values()], check)
        _refuse_new_neighbours(files, gone, neighbours)
        seen, _ = _read_existing(files, neighbours, hold)  # neighbours removed meanwhile need no change
        after = {task_id: found for task_id, (found, _) in seen.items()}
        for task_id, task in after.items():
            for other in doomed:
                task = remove_link(remove_link(task, blocked_by=other), blocks=other)
            after[task_id] = task
        highest = max(map(int, doomed), default=0)
        files.raise_mark(highest)
        for task, found in gone.values():
            if found is None:  # only in the older file: log it first, so that it can be restored
                files.recovery.log_consolidated(task)
        writes = [TaskWrite(task_id, found, None, (None, 0)) for task_id, (_, found) in gone.items()]
        _commit(files, hold, act, seen, after, first=writes)
    return tuple(task for task, _ in gone.values())


def _check_each(files: ListFiles, tasks: Sequence[Task], check: Callable[[Facts], None]) -> None:
    for task in tasks:
        lease = files.leases.current(task)
        living = lease if lease is not None and not files.leases.is_dead(lease) else None
        check(Facts(task, living, files.tasks.look, files.tasks.everything))


def _refuse_new_neighbours(
    files: ListFiles, gone: Mapping[str, tuple[Task, TaskFileState | None]], neighbours: Sequence[str]
) -> None:
    """Retry if a task was linked to a removed one after the neighbours were read."""
    linked = {other for task, _ in gone.values() for other in (*task.blocks, *task.blocked_by)}
    for other in linked.difference(gone, neighbours):
        task = files.tasks.look(other)
        if task is not None and any(end in gone for end in (*task.blocks, *task.blocked_by)):
            raise WriteConflict(other)


def restore(files: ListFiles, task_id: str, act: Act) -> Task:
    """Restore a removed task: unclaimed unless completed, with the dependencies that are still valid."""
    writer = files.writer
    past = history.last_seen(writer.journal, writer.index, task_id)
    if past is None:
        raise _nothing_to_restore(files, task_id)
    others = [*past[0].blocked_by, *past[0].blocks]
    with files.hold([task_id, *others], whole=True) as hold:
        before = _restore_target(files, task_id, hold)
        seen, damaged = _read_existing(files, others, hold)
        after = {other: found for other, (found, _) in seen.items()}
        after[task_id] = drop_cyclic_parent(_restored_task(past[0], keep=damaged), files.tasks.look)
        edges = [(other, task_id) for other in past[0].blocked_by] + [(task_id, other) for other in past[0].blocks]
        for edge in edges:
            if all(end in after for end in edge) and graph.cycle_path(task_graph(files, after), edge) is None:
                after[edge[1]] = add_link(after[edge[1]], blocked_by=edge[0])
                after[edge[0]] = add_link(after[edge[0]], blocks=edge[1])
        task = after.pop(task_id)
        _commit(files, hold, act, seen, after, first=[TaskWrite(task_id, before, task, (None, 0))])
    return task


def _nothing_to_restore(files: ListFiles, task_id: str) -> NothingToRestore | Damaged | TaskNotFound:
    """Return the error for a task that is not in the log."""
    seen = files.tasks.reader.read(task_id)
    if seen is None or (seen.task is None and seen.damage is None):
        return files.missing(task_id)
    if seen.task:
        return NothingToRestore(task_id, list_name=files.folder.name)
    return Damaged(files.folder.task(task_id), str(seen.damage))


def _restore_target(files: ListFiles, task_id: str, hold: TaskLocks) -> TaskFileState | None:
    """Return what is at the path of a task to restore: nothing, or a file that marks it as deleted."""
    try:
        files.seen(task_id, hold)
    except TaskNotFound:
        return files.tasks.reader.read(task_id)
    raise NothingToRestore(task_id, list_name=files.folder.name)


def _read_existing(
    files: ListFiles, ids: Sequence[str], hold: TaskLocks
) -> tuple[dict[str, tuple[Task, TaskFileState | None]], set[str]]:
    """Return the tasks that still exist under the lock, and the ids of unreadable ones."""
    found: dict[str, tuple[Task, TaskFileState | None]] = {}
    damaged: set[str] = set()
    for task_id in ids:
        try:
            found[task_id] = files.seen(task_id, hold)
        except TaskNotFound:
            continue
        except Damaged:
            damaged.add(task_id)
    return found, damaged


def _restored_task(task: Task, *, keep: set[str]) -> Task:
    """Return a logged task for restoring; of its blockers only `keep`, which exist but cannot be read now."""
    blockers = tuple(other for other in task.blocked_by if other in keep)
    task = task._replace(blocks=(), blocked_by=blockers, updated_at=now_ms())
    return task if task.is_done else task._replace(status=TaskStatus.PENDING, owner=None)


def _commit(
    files: ListFiles,
    hold: TaskLocks,
    act: Act,
    seen: Mapping[str, tuple[Task, TaskFileState | None]],
    after: Mapping[str, Task],
    *,
    first: Sequence[TaskWrite] = (),
) -> None:
    """Write what differs, `blockedBy` before its mirror `blocks`."""
    now = now_ms()
    truth, mirror = _split_changed(seen, after)
    writes = [
        TaskWrite(task_id, seen[task_id][1], after[task_id]._replace(updated_at=now)) for task_id in (*truth, *mirror)
    ]
    if first or writes:
        files.writer.commit(hold, act, [*first, *writes])


def _split_changed(
    seen: Mapping[str, tuple[Task, TaskFileState | None]], after: Mapping[str, Task]
) -> tuple[list[str], list[str]]:
    """Return the changed tasks: those whose `blockedBy` changed, and the others."""
    different = [task_id for task_id, task in after.items() if task != seen[task_id][0]]
    truth = [task_id for task_id in different if after[task_id].blocked_by != seen[task_id][0].blocked_by]
    return truth, [task_id for task_id in different if task_id not in truth]


def plan_link_writes(
    files: ListFiles, before: Task, decided: Task, links: LinkChange, hold: TaskLocks
) -> tuple[list[TaskWrite], Task, list[TaskWrite]]:
    """Return the writes to others before a task, the task with its new dependencies, and the writes after it.

    Raises:
        TaskNotFound: a task to link to does not exist.
        Cycle: tasks would wait for each other.
    """
    seen: dict[str, tuple[Task, TaskFileState | None]] = {}
    for other in linked_ids(decided.id, links):
        try:
            seen[other] = files.seen(other, hold)
        except TaskNotFound:
            if not may_be_missing(before, other, links):
                raise
    held = {decided.id: decided, **{other: found for other, (found, _) in seen.items()}}
    after = apply_links(held, links, partial(task_graph, files))
    now = now_ms()
    truth, mirror = _split_changed(seen, {other: after[other] for other in seen})
    writes = {
        other: TaskWrite(other, seen[other][1], after[other]._replace(updated_at=now)) for other in (*truth, *mirror)
    }
    return [writes[other] for other in truth], after[decided.id], [writes[other] for other in mirror]


#: Attempts of a claim on a locked task before it waits for the lock, and the seconds in between.
_PEEKS = 10
_PEEK_INTERVAL = 0.0006

_READ_ACT = Act(None, "look", "watch")


class _UpdateRequest(NamedTuple):
    """One requested update."""

    task_id: str
    rule: Rule
    act: Act
    with_blockers: bool
    whole_list: bool
    links: LinkChange | None

    @property
    def writing(self) -> tuple[str, ...]:
        """The tasks it may write."""
        return (self.task_id, *linked_ids(self.task_id, self.links)) if self.links is not None else (self.task_id,)


class FileStoreWriter:
    """The writing half of a file store."""

    def __init__(self, list_files: ListFiles, on_quarantine: Callable[[Task], None]) -> None:
        """Set up; `on_quarantine` is called with quarantined tasks when no lock is held."""
        self._files = list_files
        self._leases = list_files.leases
        self._on_quarantine = on_quarantine
        self._quarantined: list[Task] = []

    def create(self, draft: Draft, act: Act, task_id: str | None, lease: Lease | None) -> Task:
        """Create a task under a fresh or reserved id."""
        if draft.blocks or draft.blocked_by:
            return self._files.with_retries(lambda: create_linked(self._files, draft, act, task_id, lease))
        if task_id is not None:
            return self._files.with_retries(lambda: self._create_reserved(draft, act, task_id, lease))
        return self._files.with_retries(lambda: self._create(draft, act, lease))

    def _create(self, draft: Draft, act: Act, lease: Lease | None) -> Task:
        new_id = ""
        try:
            with self._files.hold(whole=True) as hold:
                new_id = self._files.candidate_id()
                hold.narrow(new_id)
                if not self._files.is_fresh(new_id):
                    raise IdTaken
                task = new_task(new_id, draft)
                self._files.writer.commit(hold, act, (TaskWrite(new_id, None, task, lease_record(lease), is_new=True),))
        except StorageError:
            if new_id:
                self._files.return_id(new_id)
            raise
        return task._replace(lease=lease)

    def _create_reserved(self, draft: Draft, act: Act, task_id: str, lease: Lease | None) -> Task:
        task = new_task(task_id, draft)
        with self._files.hold([task_id], making=True) as hold:
            self._files.writer.commit(hold, act, (TaskWrite(task_id, None, task, lease_record(lease)),))
        return task._replace(lease=lease)

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool,
        whole_list: bool,
        links: LinkChange | None = None,
    ) -> Task:
        """Let `rule` decide about a task under its lock, and save its decision."""
        try:
            wanted = _UpdateRequest(task_id, rule, act, with_blockers, whole_list or links is not None, links)
            return self._decide(wanted)
        finally:
            self._flush_quarantined()

    def _flush_quarantined(self) -> None:
        """Report quarantined tasks, each once, whichever thread comes first."""
        while self._quarantined:
            try:
                task = self._quarantined.pop()
            except IndexError:
                return  # another thread was faster
            self._on_quarantine(task)

    def _decide(self, wanted: _UpdateRequest) -> Task:
        reading: Sequence[str] = ()
        if wanted.with_blockers:
            # Many agents may claim the same task at once: all but one can be refused without waiting for its
            # lock.
            for _ in range(_PEEKS):
                reading = self._blockers_unless_refused(wanted.task_id, wanted.rule, wanted.whole_list)
                try:
                    return self._persist(wanted, reading, patient=False)
                except Busy:
                    time.sleep(_PEEK_INTERVAL)
        return self._persist(wanted, reading, patient=True)

    def _persist(self, wanted: _UpdateRequest, reading: Sequence[str], *, patient: bool) -> Task:
        return self._files.with_retries(lambda: self._update(wanted, reading, patient=patient))

    def _blockers_unless_refused(self, task_id: str, rule: Rule, whole_list: bool) -> Sequence[str]:
        """Return the blockers' ids. Refuses without a lock a task that is held by another agent or completed."""
        task = self._files.tasks.look(task_id)
        if task is None:
            return ()
        if task.owner is not None and not whole_list:
            lease = self._leases.current(task)
            if task.is_done or (lease is not None and not self._leases.is_dead(lease)):
                try:
                    rule(Facts(task, lease, _no_task, tuple))
                except (AlreadyClaimed, AlreadyResolved):
                    raise
                except Conflict:
                    pass  # decided again under the lock
        return task.blocked_by

    def _update(self, wanted: _UpdateRequest, reading: Sequence[str], *, patient: bool) -> Task:
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
        # It has new blockers: retry with those locked.
        return self._update(wanted, task.blocked_by, patient=patient)

    def _save(
        self, hold: TaskLocks, wanted: _UpdateRequest, facts: Facts, seen: TaskFileState | None, losses: int
    ) -> Task:
        task, lease = wanted.rule(facts)
        first: Sequence[TaskWrite] = ()
        last: Sequence[TaskWrite] = ()
        if wanted.links is not None:
            first, task, last = plan_link_writes(self._files, facts.task, task, wanted.links, hold)
        if stored_fields(task) == stored_fields(facts.task):
            if first or last:  # an edge recorded only in the other tasks' files
                self._files.writer.commit(hold, wanted.act, (*first, *last))
            if lease != facts.lease:
                self._leases.write(task.id, lease, losses)
            return task._replace(lease=lease)
        task = task._replace(updated_at=now_ms(), lease=None)
        kept = 0 if task.is_done or (facts.task.is_held and not task.is_held) else losses
        record = (lease, kept) if (lease, kept) != (facts.lease, losses) else None
        self._files.writer.commit(hold, wanted.act, (*first, TaskWrite(task.id, seen, task, record), *last))
        return task._replace(lease=lease)

    def _lose(
        self, hold: TaskLocks, task: Task, seen: TaskFileState | None, lease: Lease, losses: int
    ) -> tuple[Task, TaskFileState | None, int]:
        """Release the task of a dead holder, as a separate change."""
        losses += 1
        back = requeue_lost(task, losses=losses, most=self._files.settings.lease_losses)._replace(updated_at=now_ms())
        self._files.writer.commit(
            hold, lease_lost_act(lease, losses), (TaskWrite(task.id, seen, back, (None, losses)),)
        )
        if back.is_held:
            self._quarantined.append(back)
        return back, self._files.tasks.reader.read(task.id), losses

    def release_dead(self, ids: Iterable[str]) -> bool:
        """Return tasks of dead holders to the pool; False if none could be written or all are locked.

        A task that cannot be locked is left until the next call and does not delay the others; only the first such
        task is waited for.
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
            self._persist(_UpdateRequest(task_id, _keep_unchanged, _READ_ACT, False, False, None), (), patient=patient)
            released = True
        except (TaskNotFound, Damaged):
            pass  # changed by another program; its lease is removed all the same
        finally:
            self._flush_quarantined()
        self._files.recovery.tidy_lease(task_id, timeout=None if patient else 0.0)
        return released


def _keep_unchanged(facts: Facts) -> Decision:
    """Change nothing: only a dead holder's task is released."""
    return Decision(facts.task, facts.lease)


def _no_task(_: str) -> Task | None:
    """Return no task: a decision about the holder alone ignores blockers."""
    return None


def adopt(files: ListFiles, tasks: Sequence[Task], act: Act, last: int) -> None:
    """Fill an empty list with tasks as they are; neither their ids nor any up to `last` is given out again.

    Raises:
        ListNotEmpty: it has tasks.
        Damaged: a file with one of those ids exists and cannot be read.
    """
    with files.hold(whole=True) as hold:
        if there := files.tasks.everything():
            raise ListNotEmpty(files.folder.name, len(there))
        now = now_ms()
        timed = [
            task._replace(created_at=task.created_at or now, updated_at=task.updated_at or now, lease=None)
            for task in tasks
        ]
        writes = [TaskWrite(task.id, _adopt_target(files, task.id, hold), task) for task in timed]
        files.raise_mark(max(last, *(int(task.id) for task in tasks), 0))
        if writes:
            files.writer.commit(hold, act, writes)


def _adopt_target(files: ListFiles, task_id: str, hold: TaskLocks) -> TaskFileState | None:
    """Return what is at the path of a task to add: nothing, or a file that marks it as deleted."""
    try:
        files.seen(task_id, hold)
    except TaskNotFound:
        return files.tasks.reader.read(task_id)
    raise ListNotEmpty(files.folder.name, 1)  # created by another program since the list was read


def last_id(files: ListFiles) -> int:
    """Return the highest id ever given out, as far as the files show. Read-only."""
    if not files.folder.exists():
        return 0
    known = files.known() or {}
    mark = leading_number((disk.read(files.folder.mark) or b"")[:64])
    return max(mark, *files.folder.ids_on_disk(), *map(int, known), 0)
