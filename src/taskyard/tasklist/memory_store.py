"""The list in memory: the same contract as the file store, for tests and for programs that need no disk."""

from __future__ import annotations

import threading

from taskyard.clock import now_ms
from taskyard.errors import Conflict, Cycle, NothingToRestore, TaskNotFound
from taskyard.names import nearest_ids
from taskyard.tasklist import graph, rules
from taskyard.tasklist.model import Act, Change, Decision, Draft, Facts, Lease, Links, Listing, Task, TaskStatus
from taskyard.tasklist.parents import NoParent, check_parent, parent_in, untangled
from taskyard.tasklist.relinking import Graph, may_be_missing, others, relinked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from taskyard.tasklist.graph import Edge
    from taskyard.tasklist.store import Rule

_STORED = Task._fields.index("lease")


class MemoryStore:
    """One list that lives as long as this object; shared by the threads of a process."""

    def __init__(self, name: str = "memory", *, lease_losses: int = 3) -> None:
        """`lease_losses`: so many lost holders set a task aside."""
        self.name = name
        self._most_losses = lease_losses
        self._on_aside: Callable[[Task], None] = lambda _: None
        self._losses: dict[str, int] = {}
        self._lock = threading.Condition(threading.RLock())
        self._waited: dict[int, int] = {}
        self._tasks: dict[str, Task] = {}
        self._leases: dict[str, Lease] = {}
        self._log: list[Change] = []
        self._last = 0

    def reserve(self) -> str:
        """A fresh id, never given out again."""
        with self._lock:
            self._last += 1
            return str(self._last)

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Put a new task on the list."""
        with self._lock:
            for other in (*draft.blocks, *draft.blocked_by):
                self._existing(other)
            for blocked in draft.blocks:
                for blocker in draft.blocked_by:
                    if trail := graph.path(self._tasks, blocker, blocked):
                        raise Cycle(trail)
            now = now_ms()
            task = Task(task_id or self.reserve(), *draft, created_at=now, updated_at=now)
            if (parent := parent_in(task.metadata)) is not None:
                try:
                    check_parent(task.id, parent, self._tasks.get)
                except NoParent:
                    raise self._missing(parent) from None
            self._save(act, {task.id: task, **self._mirrors(task)})
            if lease is not None:
                self._leases[task.id] = lease
            return task._replace(lease=lease)

    def _mirrors(self, task: Task) -> dict[str, Task]:
        """The neighbours of a new task, as they look with it."""
        found: dict[str, Task] = {}
        for other in task.blocks:
            was = self._tasks[other]
            found[other] = was._replace(blocked_by=(*was.blocked_by, task.id))
        for other in task.blocked_by:
            was = found.get(other, self._tasks[other])
            found[other] = was._replace(blocks=(*was.blocks, task.id))
        return found

    def get(self, task_id: str) -> Task:
        """One task, with its lease."""
        with self._lock:
            return self._existing(task_id)._replace(lease=self._lease(task_id))

    def list(self) -> Listing:
        """Everything on the list."""
        with self._lock:
            leases = {
                task_id: self._lease(task_id) for task_id in list(self._leases)
            }  # those that ran out are gone now
            return Listing(task._replace(lease=leases.get(task.id)) for task in graph.by_id(self._tasks.values()))

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Who waits for a task."""
        with self._lock:
            return [task.id for task in graph.by_id(self._tasks.values()) if task_id in task.blocked_by]

    def is_finished(self) -> bool:
        """Whether nothing that people see is open."""
        with self._lock:
            return all(task.is_done or task.is_internal for task in self._tasks.values())

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool = False,
        whole_list: bool = False,
        links: Links | None = None,
    ) -> Task:
        """Let `rule` decide about one task, and save what it says."""
        with self._lock:
            task, lease = self._existing(task_id), self._lease(task_id)
            decision = rule(Facts(task, lease, self._tasks.get, lambda: graph.by_id(self._tasks.values())))
            if links is None:
                return self._decided(act, task, decision)
            held = {
                other: self._existing(other) for other in others(task_id, links) if self._is_needed(task, other, links)
            }
            after = relinked({**held, task_id: decision.task}, links, self._graph)
            return self._decided(act, task, decision._replace(task=after.pop(task_id)), after)

    def _is_needed(self, task: Task, other: str, links: Links) -> bool:
        return other in self._tasks or not may_be_missing(task, other, links)

    def _graph(self, changed: Mapping[str, Task]) -> Graph:
        return Graph(self._tasks.get, lambda: list(self._tasks.values()), changed)

    def _decided(self, act: Act, was: Task, decision: Decision, beside: Mapping[str, Task] = {}) -> Task:
        task, lease = decision
        if lease is None:
            self._leases.pop(task.id, None)
        else:
            self._leases[task.id] = lease
        if task.is_done:
            self._losses.pop(task.id, None)
        if task[:_STORED] != was[:_STORED]:
            task = task._replace(updated_at=now_ms(), lease=None)
        after: dict[str, Task] = {**beside, task.id: task} if task[:_STORED] != was[:_STORED] else {**beside}
        self._save(act, after)
        return task._replace(lease=lease)

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """The first task, in the order given, that `rule` accepts."""
        with self._lock:
            for task_id in order(self.list()):
                try:
                    return self.update(task_id, rule, act)
                except (Conflict, TaskNotFound):
                    continue
        return None

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Make each (blocker, blocked) wait: all edges or none."""
        with self._lock:
            held = {task_id: self._existing(task_id) for edge in edges for task_id in edge}
            self._save(act, relinked(held, Links(new=tuple(edges)), self._graph))

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Take dependencies away; which were there."""
        with self._lock:
            there = tuple(edge for edge in edges if edge[0] in self._existing(edge[1]).blocked_by)
            for blocker, _ in set(edges).difference(there):
                self._existing(blocker)
            after = {blocked: self._existing(blocked) for _, blocked in edges}
            after.update({blocker: self._tasks[blocker] for blocker, _ in edges if blocker in self._tasks})
            for blocker, blocked in edges:
                after[blocked] = after[blocked]._replace(blocked_by=_less(after[blocked].blocked_by, {blocker}))
                if blocker in after:
                    after[blocker] = after[blocker]._replace(blocks=_less(after[blocker].blocks, {blocked}))
            self._save(act, after)
            return there

    def remove(
        self,
        task_ids: Sequence[str],
        act: Act,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        """Take tasks off the list, and out of everyone's dependencies."""
        with self._lock:
            gone = {task_id: self._existing(task_id) for task_id in task_ids}
            if only_done:
                graph.refuse_open(gone.values())
            if check is not None:
                for task_id, task in gone.items():
                    check(Facts(task, self._lease(task_id), self._tasks.get, lambda: graph.by_id(self._tasks.values())))
            doomed = set(gone)
            after: dict[str, Task | None] = dict.fromkeys(gone)
            for task in self._tasks.values():
                if task.id not in doomed and doomed.intersection((*task.blocks, *task.blocked_by)):
                    after[task.id] = task._replace(
                        blocks=_less(task.blocks, doomed), blocked_by=_less(task.blocked_by, doomed)
                    )
            self._save(act, after)
            return tuple(gone.values())

    def restore(self, task_id: str, act: Act) -> Task:
        """Bring a removed task back under its id."""
        with self._lock:
            if task_id in self._tasks:
                raise NothingToRestore(task_id, list_name=self.name)
            past = [change.tasks[task_id] for change in self._log if change.tasks.get(task_id) is not None]
            if not past or past[-1] is None:
                raise self._missing(task_id)
            was = past[-1]
            task = untangled(was._replace(blocks=(), blocked_by=(), updated_at=now_ms()), self._tasks.get)
            if not task.is_done:
                task = task._replace(status=TaskStatus.PENDING, owner=None)
            self._save(act, {task_id: task})
            edges = [(other, task_id) for other in was.blocked_by] + [(task_id, other) for other in was.blocks]
            for edge in edges:
                if all(end in self._tasks for end in edge) and not graph.closing_path(self._tasks, edge):
                    self.link([edge], act)
            return self._tasks[task_id]

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """The event log from an id on, oldest first."""
        with self._lock:
            found = [c for c in self._log[since:] if task_id is None or task_id in c.tasks]
        return iter(found)

    def position(self) -> int:
        """The id the next change will have."""
        return len(self._log)

    def wait(self, timeout: float) -> bool:
        """Sleep until something changed since the last wait, at most `timeout` seconds; whether it did."""
        with self._lock:
            thread = threading.get_ident()
            changed = self._lock.wait_for(lambda: len(self._log) > self._waited.get(thread, 0), timeout)
            self._waited[thread] = len(self._log)
            return changed

    def signal(self) -> None:
        """Whoever waits was woken by the change itself."""

    def listen(self, on_aside: Callable[[Task], None]) -> None:
        """Be told of tasks that are set aside."""
        self._on_aside = on_aside

    def close(self) -> None:
        """Nothing is open."""

    def _save(self, act: Act, after: Mapping[str, Task | None]) -> None:
        changed = {task_id: task for task_id, task in after.items() if self._tasks.get(task_id) != task}
        for task_id, task in changed.items():
            if task is None:
                del self._tasks[task_id]
                self._leases.pop(task_id, None)
            else:
                self._tasks[task_id] = task
        if changed:
            self._log.append(Change(len(self._log), now_ms(), act, changed))
            self._lock.notify_all()

    def _lease(self, task_id: str) -> Lease | None:
        lease, task = self._leases.get(task_id), self._tasks.get(task_id)
        if task is None or lease is None or lease.owner != task.owner or task.is_done:
            return None
        if lease.expires is None or lease.expires >= now_ms():
            return lease
        losses = self._losses[task_id] = self._losses.get(task_id, 0) + 1
        act = Act(lease.owner, "lease_lost", "watch", f"its holder {lease.instance} is gone (loss {losses})")
        back = rules.lose(task, losses=losses, most=self._most_losses)
        self._decided(act, task, Decision(back, None))
        if back.is_held:
            self._on_aside(back)
        return None

    def _existing(self, task_id: str) -> Task:
        self._lease(task_id)
        if task_id not in self._tasks:
            raise self._missing(task_id)
        return self._tasks[task_id]

    def _missing(self, task_id: str) -> TaskNotFound:
        gone = any(task_id in change.tasks for change in self._log)
        return TaskNotFound(task_id, list_name=self.name, nearest=nearest_ids(task_id, self._tasks), restorable=gone)


def _less(ids: tuple[str, ...], taken: set[str]) -> tuple[str, ...]:
    return tuple(task_id for task_id in ids if task_id not in taken)
