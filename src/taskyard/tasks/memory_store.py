"""The task store in memory: same contract as the file store, for tests and programs without a disk."""

from __future__ import annotations

import threading
from contextlib import contextmanager

from taskyard.core.system import now_ms
from taskyard.core.values import nearest_ids
from taskyard.errors import Conflict, ListNotEmpty, TaskNotFound
from taskyard.tasks import rules, transitions
from taskyard.tasks.model import (
    Act,
    Change,
    Draft,
    Facts,
    Lease,
    LinkChange,
    Listing,
    Task,
    lease_lost_act,
    sort_by_id,
)
from taskyard.tasks.transitions import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from taskyard.tasks.graph import Edge
    from taskyard.tasks.store import Rule


class MemoryStore:
    """One list that exists as long as this object; shared by the threads of a process."""

    def __init__(self, name: str = "memory", *, lease_losses: int = 3) -> None:
        """Create an empty list; `lease_losses` lost holders quarantine a task."""
        self.name = name
        self._most_losses = lease_losses
        self._on_quarantine: Callable[[Task], None] = lambda _: None
        self._losses: dict[str, int] = {}
        self._lock = threading.Condition(threading.RLock())
        self._waited: dict[int, int] = {}
        self._tasks: dict[str, Task] = {}
        self._leases: dict[str, Lease] = {}
        self._log: list[Change] = []
        self._last = 0

    # -- the list view on which plans are made -----------------------------------------------

    def look(self, task_id: str) -> Task | None:
        """Return a task as it is; None if there is none."""
        return self._tasks.get(task_id)

    def everything(self) -> Sequence[Task]:
        """Return all tasks, by ascending id."""
        return sort_by_id(self._tasks.values())

    def lease(self, task_id: str) -> Lease | None:
        """Return the current lease of a task."""
        return transitions.current_lease(self._tasks.get(task_id), self._leases.get(task_id))

    def last_seen(self, task_id: str) -> Task | None:
        """Return the last state of a removed task."""
        past = [task for change in self._log if (task := change.tasks.get(task_id)) is not None]
        return past[-1] if past else None

    def missing(self, task_id: str) -> TaskNotFound:
        """Return the error for a missing task."""
        gone = any(task_id in change.tasks for change in self._log)
        return TaskNotFound(task_id, list_name=self.name, nearest=nearest_ids(task_id, self._tasks), restorable=gone)

    # -- reading -------------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """Return a task with its lease."""
        with self._still(task_id):
            return transitions.require_task(self, task_id)._replace(lease=self.lease(task_id))

    def list(self) -> Listing:
        """Return all tasks."""
        with self._still(*self._leases):
            return Listing(task._replace(lease=self.lease(task.id)) for task in self.everything())

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Return the ids of tasks that wait for a task."""
        with self._lock:
            return [task.id for task in self.everything() if task_id in task.blocked_by]

    def is_finished(self) -> bool:
        """Return whether no visible task is open."""
        with self._lock:
            return all(task.is_done or task.is_internal for task in self._tasks.values())

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """Yield the event log from an entry id on, oldest first."""
        with self._lock:
            found = [c for c in self._log[since:] if task_id is None or task_id in c.tasks]
        return iter(found)

    def position(self) -> int:
        """Return the id of the next change."""
        return len(self._log)

    def wait(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for a change since the last wait; return whether there was one."""
        with self._lock:
            thread = threading.get_ident()
            changed = self._lock.wait_for(lambda: len(self._log) > self._waited.get(thread, 0), timeout)
            self._waited[thread] = len(self._log)
            return changed

    def signal(self) -> None:
        """Do nothing: the change itself has woken all waiters."""

    def listen(self, on_quarantine: Callable[[Task], None]) -> None:
        """Call `on_quarantine` for quarantined tasks."""
        self._on_quarantine = on_quarantine

    def close(self) -> None:
        """Do nothing."""

    # -- writing -------------------------------------------------------------------------------

    def reserve(self) -> str:
        """Reserve a fresh id, never given out again."""
        with self._lock:
            self._last += 1
            return str(self._last)

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Create a task."""
        with self._still():
            plan = transitions.plan_create(self, task_id or str(self._last + 1), draft, lease)
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
        links: LinkChange | None = None,
    ) -> Task:
        """Let `rule` decide about a task, and save its decision."""
        with self._still(task_id):
            plan = transitions.plan_update(self, task_id, rule, links)
            self._carry_out(act, plan)
            return self._tasks[task_id]._replace(lease=plan.leases[task_id])

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """Claim the first task, in the given order, that `rule` accepts."""
        with self._lock:
            for task_id in order(self.list()):
                try:
                    return self.update(task_id, rule, act)
                except (Conflict, TaskNotFound):
                    continue
        return None

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Add dependencies (blocker, blocked): all or none."""
        with self._still():
            self._carry_out(act, transitions.plan_link(self, edges))

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Remove dependencies; return those that existed."""
        with self._still():
            plan = transitions.plan_unlink(self, edges)
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
        """Remove tasks from the list and from all dependencies."""
        with self._still(*task_ids):
            plan = transitions.plan_remove(self, task_ids, only_done=only_done, check=check)
            self._carry_out(act, plan)
            return plan.found

    def restore(self, task_id: str, act: Act) -> Task:
        """Restore a removed task under its id."""
        with self._still():
            self._carry_out(act, transitions.plan_restore(self, task_id, list_name=self.name))
            return self._tasks[task_id]

    def last_id(self) -> int:
        """Return the highest id ever given out."""
        return self._last

    def adopt(self, tasks: Sequence[Task], act: Act, *, last: int = 0) -> None:
        """Fill an empty list with `tasks` as they are."""
        with self._still():
            if self._tasks:
                raise ListNotEmpty(self.name, len(self._tasks))
            now = now_ms()
            self._tasks = {
                task.id: task._replace(created_at=task.created_at or now, updated_at=task.updated_at or now, lease=None)
                for task in tasks
            }
            self._last = max(self._last, last, *map(int, self._tasks), 0)
            if self._tasks:
                self._log.append(Change(len(self._log), now, act, dict(self._tasks)))
                self._lock.notify_all()

    @contextmanager
    def _still(self, *task_ids: str) -> Generator[None]:
        """Lock the list, after releasing expired leases of these tasks."""
        with self._lock:
            for task_id in task_ids:
                lease = self.lease(task_id)
                if lease is not None and lease.expires is not None and lease.expires < now_ms():
                    self._lose(self._tasks[task_id], lease)
            yield

    def _lose(self, task: Task, lease: Lease) -> None:
        losses = self._losses[task.id] = self._losses.get(task.id, 0) + 1
        back = rules.requeue_lost(task, losses=losses, most=self._most_losses)
        self._carry_out(lease_lost_act(lease, losses), Plan({task.id: back}, {task.id: None}))
        if back.is_held:
            self._on_quarantine(back)

    def _carry_out(self, act: Act, plan: Plan) -> None:
        changed = transitions.changed_tasks(self, plan, now_ms())
        for task_id, task in changed.items():
            self._losses[task_id] = transitions.losses_after(
                self._losses.get(task_id, 0), self._tasks.get(task_id), task
            )
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
