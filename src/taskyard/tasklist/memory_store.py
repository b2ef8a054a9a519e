"""The list in memory: the same contract as the file store, for tests and for programs that need no disk."""

from __future__ import annotations

import threading
from contextlib import contextmanager

from taskyard.clock import now_ms
from taskyard.errors import Conflict, TaskNotFound
from taskyard.names import nearest_ids
from taskyard.tasklist import graph, planning, rules
from taskyard.tasklist.model import Act, Change, Draft, Facts, Lease, Links, Listing, Task, loss_of
from taskyard.tasklist.planning import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from taskyard.tasklist.graph import Edge
    from taskyard.tasklist.store import Rule


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

    # -- the list as it is: what plans are made on ---------------------------------------------

    def look(self, task_id: str) -> Task | None:
        """One task as it is."""
        return self._tasks.get(task_id)

    def everything(self) -> Sequence[Task]:
        """All tasks, by ascending id."""
        return graph.by_id(self._tasks.values())

    def lease(self, task_id: str) -> Lease | None:
        """Who holds a task."""
        return planning.current(self._tasks.get(task_id), self._leases.get(task_id))

    def last_seen(self, task_id: str) -> Task | None:
        """How a task that is gone last was."""
        past = [task for change in self._log if (task := change.tasks.get(task_id)) is not None]
        return past[-1] if past else None

    def missing(self, task_id: str) -> TaskNotFound:
        """The error for a task that is not there."""
        gone = any(task_id in change.tasks for change in self._log)
        return TaskNotFound(task_id, list_name=self.name, nearest=nearest_ids(task_id, self._tasks), restorable=gone)

    # -- reading -------------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """One task, with its lease."""
        with self._still(task_id):
            return planning.existing(self, task_id)._replace(lease=self.lease(task_id))

    def list(self) -> Listing:
        """Everything on the list."""
        with self._still(*self._leases):
            return Listing(task._replace(lease=self.lease(task.id)) for task in self.everything())

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Who waits for a task."""
        with self._lock:
            return [task.id for task in self.everything() if task_id in task.blocked_by]

    def is_finished(self) -> bool:
        """Whether nothing that people see is open."""
        with self._lock:
            return all(task.is_done or task.is_internal for task in self._tasks.values())

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

    # -- writing -------------------------------------------------------------------------------

    def reserve(self) -> str:
        """A fresh id, never given out again."""
        with self._lock:
            self._last += 1
            return str(self._last)

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Put a new task on the list."""
        with self._still():
            plan = planning.created(self, task_id or str(self._last + 1), draft, lease)
            if task_id is None:
                self._last += 1
            new_id = next(iter(plan.after))
            self._carry_out(act, plan)
            return self._tasks[new_id]._replace(lease=lease)

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
        with self._still(task_id):
            plan = planning.updated(self, task_id, rule, links)
            self._carry_out(act, plan)
            return self._tasks[task_id]._replace(lease=plan.leases[task_id])

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
        with self._still():
            self._carry_out(act, planning.linked(self, edges))

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Take dependencies away; which were there."""
        with self._still():
            plan = planning.unlinked(self, edges)
            self._carry_out(act, plan)
            return plan.edges

    def remove(
        self,
        task_ids: Sequence[str],
        act: Act,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        """Take tasks off the list, and out of everyone's dependencies."""
        with self._still(*task_ids):
            plan = planning.removed(self, task_ids, only_done=only_done, check=check)
            self._carry_out(act, plan)
            return plan.found

    def restore(self, task_id: str, act: Act) -> Task:
        """Bring a removed task back under its id."""
        with self._still():
            self._carry_out(act, planning.restored(self, task_id, list_name=self.name))
            return self._tasks[task_id]

    @contextmanager
    def _still(self, *task_ids: str) -> Generator[None]:
        """Nobody else changes anything; what was held for too long, of these tasks, is back in the pool."""
        with self._lock:
            for task_id in task_ids:
                lease = self.lease(task_id)
                if lease is not None and lease.expires is not None and lease.expires < now_ms():
                    self._lose(self._tasks[task_id], lease)
            yield

    def _lose(self, task: Task, lease: Lease) -> None:
        losses = self._losses[task.id] = self._losses.get(task.id, 0) + 1
        back = rules.lose(task, losses=losses, most=self._most_losses)
        self._carry_out(loss_of(lease, losses), Plan({task.id: back}, {task.id: None}))
        if back.is_held:
            self._on_aside(back)

    def _carry_out(self, act: Act, plan: Plan) -> None:
        changed = planning.changed(self, plan, now_ms())
        for task_id, task in changed.items():
            self._losses[task_id] = planning.losses_after(self._losses.get(task_id, 0), self._tasks.get(task_id), task)
            if task is None:
                del self._tasks[task_id]
            else:
                self._tasks[task_id] = task
        for task_id, lease in plan.leases.items():
            if lease is None:
                self._leases.pop(task_id, None)
            else:
                self._leases[task_id] = lease
        if changed:
            self._log.append(Change(len(self._log), now_ms(), act, changed))
            self._lock.notify_all()
