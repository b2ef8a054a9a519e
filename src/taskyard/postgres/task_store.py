"""The task list in PostgreSQL: the operations of `TaskStore`, for any number of hosts.

Optimistic concurrency: no operation waits for a client that is computing or disconnected. An operation plans on
the locally known state and sends the plan with the ticks (row versions) of everything it read; the server
commits it in one statement if those are unchanged, or refuses. Then the changes are read and the plan is made
again (`task_commit`). An error, or a result without a change, is never based on possibly stale data. A plan
refused too often locks the list for the length of one attempt.

Leases end by the server's clock (kind `time`), or when the holding process no longer counts as alive: by its
heartbeat (`heartbeat`), or on its own host by the kernel. `LeaseReaper` requeues tasks of dead holders, each as
its own change. `adopt` imports a whole list with its ids and times in one transaction.
"""

from __future__ import annotations

import threading

from taskyard.core.system import boottime
from taskyard.errors import Conflict, ListNotEmpty, StoreAway, TaskNotFound
from taskyard.postgres.task_commit import (
    CHANGE_COLUMNS,
    COMMIT,
    LOCK_LIST,
    RowWrite,
    TaskCommitter,
    commit_values,
    new_op_id,
    parse_change,
)
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
    metadata_parent,
)
from taskyard.tasks.rules import ClaimOrder, ClaimRule
from taskyard.tasks.transitions import Plan, current_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from taskyard.config import Settings
    from taskyard.postgres.connection import Database, PgConnection
    from taskyard.postgres.task_commit import CommittedPlan, ListView, Planner, TaskSnapshot
    from taskyard.tasks.graph import Edge
    from taskyard.tasks.rules import ClaimResult
    from taskyard.tasks.store import Rule


#: Restore the original times of the tasks; unknown ones stay unchanged.
_SET_TIMES = """
    UPDATE task t SET created_at = coalesce(w.created, t.created_at), updated_at = coalesce(w.updated, t.updated_at)
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS w(id, created, updated)
    WHERE t.list = %s AND t.id = w.id
"""

#: The same in the log, for the change just made.
_SET_LOG_TIMES = """
    UPDATE change c SET created = ARRAY(
        SELECT t.created_at FROM unnest(c.tasks) WITH ORDINALITY AS n(id, place)
        JOIN task t ON t.list = c.list AND t.id = n.id ORDER BY n.place
    )
    WHERE c.op = %s
"""


def adopt(commits: TaskCommitter, tasks: Sequence[Task], act: Act, last: int) -> None:
    """Put tasks on an empty list unchanged; no id up to `last`, nor any of theirs, is assigned again.

    Raises:
        ListNotEmpty: it has tasks.
    """
    list_id, op = commits.list_id(), new_op_id()
    values = commit_values(list_id, [RowWrite(task.id, False, True, task, None, 0) for task in tasks], act, op, seen={})
    times = [[int(task.id) for task in tasks], [t.created_at for t in tasks], [t.updated_at for t in tasks], list_id]

    def work(link: PgConnection) -> None:
        link.execute(LOCK_LIST, [list_id])
        if link.execute("SELECT FROM change WHERE op = %s", [op]).rowcount:
            return  # already committed; the answer was lost
        there = link.execute("SELECT FROM task WHERE list = %s AND NOT is_gone", [list_id]).rowcount
        if there:
            raise ListNotEmpty(commits.name, there)
        link.execute("UPDATE list SET last_id = greatest(last_id, %s) WHERE id = %s", [last, list_id])
        if tasks:
            link.execute(COMMIT, values)
            link.execute(_SET_TIMES, times)
            link.execute(_SET_LOG_TIMES, [op])

    commits.database.within(work)


class LeaseReaper:
    """Requeues the tasks of dead holders of one list."""

    def __init__(self, commits: TaskCommitter, alive: Callable[[Lease], bool | None], *, most_losses: int) -> None:
        """`alive` asks the kernel about a holder; a task is quarantined after `most_losses` lost holders."""
        self.on_quarantine: Callable[[Task], None] = lambda _: None  #: called with each task that is quarantined
        self.asked_at = 0.0  #: when the kernel was last asked about all holders (`boottime`)
        self._commits = commits
        self._alive = alive
        self._most_losses = most_losses

    def settled(self, ids: Collection[str]) -> ListView:
        """Return some tasks in their current state, after requeuing those of dead holders."""
        view = self._commits.view(ids, fresh=True)
        return self._commits.view(ids, fresh=True) if self.release(view, ids) else view

    def release_all(self) -> bool:
        """Requeue the tasks of dead holders; return whether there were any. If none, the list is not read."""
        self.asked_at = boottime()
        dead, holders = self._commits.holders()
        if not dead and not any(self._alive(lease) is False for lease in holders):
            return False
        return self.release_dead(self._commits.mirror.everything())

    def release_dead(self, known: TaskSnapshot) -> bool:
        """Requeue the tasks whose holders were dead at the last full read; return whether there were any."""
        suspects = [*known.dead, *self._orphans(known)]
        return bool(suspects) and self.release(self._commits.view_of(known, fresh=True), suspects)

    def _orphans(self, known: TaskSnapshot) -> Sequence[str]:
        """Return the tasks whose holders are dead according to the kernel, asked once per holder."""
        examples = {instance: task_id for task_id, instance in known.held.items()}
        leases = {instance: known[task_id].lease for instance, task_id in examples.items()}
        gone = {instance for instance, lease in leases.items() if lease is not None and self._alive(lease) is False}
        return [task_id for task_id, instance in known.held.items() if instance in gone] if gone else ()

    def release(self, view: ListView, ids: Collection[str]) -> bool:
        """Requeue those of some tasks whose holders are dead, each as its own change; return whether any were."""
        lost = [(task_id, lease) for task_id in ids if (lease := self._lost(view, task_id)) is not None]
        for task_id, lease in lost:
            row = view.row(task_id)
            assert row is not None, "what is held is there"
            losses = row.losses + 1
            back = rules.requeue_lost(row.task, losses=losses, most=self._most_losses)
            told = lease_lost_act(lease, losses)
            if self._commits.give_back(view, back, losses, told, only_dead=view.is_dead(task_id)) and back.is_held:
                self.on_quarantine(back)
        return bool(lost)

    def _lost(self, view: ListView, task_id: str) -> Lease | None:
        """Return the lease of a task whose holder is dead."""
        lease = view.lease(task_id)
        if lease is None or view.is_dead(task_id):
            return lease
        return lease if lease.kind == "process" and self._alive(lease) is False else None


#: Changes read per statement.
_PAGE_SIZE = 1000

#: Minimum seconds between two searches for dead holders by a process that claims task after task.
_REAP_INTERVAL = 1.0

#: How often tasks of dead holders are requeued before a claim reports that nothing is free.
_CLAIM_TRIES = 5


class PostgresStore:
    """One task list in one database."""

    def __init__(
        self,
        database: Database,
        name: str,
        settings: Settings,
        *,
        alive: Callable[[Lease], bool | None],
        keep_alive: Callable[[Lease], None] = lambda _: None,
    ) -> None:
        """Create the object; the list need not exist yet.

        Args:
            database: Where the list is.
            name: Name of the list.
            settings: Supplies the lease duration and the allowed number of lost holders.
            alive: Asks this host's kernel about a holder; None = unknown here.
            keep_alive: Keeps a holder alive by heartbeat; called when it obtains a lease.
        """
        self.name = name
        self._database = database
        self._keep_alive = keep_alive
        self._commits = TaskCommitter(database, name, settings)
        self._mirror = self._commits.mirror
        self._reaper = LeaseReaper(self._commits, alive, most_losses=settings.lease_losses)
        self._woken: dict[tuple[str, int], int] = {}

    # -- reading -------------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """Return one task with its lease."""
        view = self._reaper.settled([task_id])
        return transitions.require_task(view, task_id)._replace(lease=view.lease(task_id))

    def list(self) -> Listing:
        """Return all tasks, after requeuing those of dead holders."""
        if self._reaper.release_dead(self._mirror.everything()):
            self._mirror.everything()
        return self._mirror.listing()

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Return the tasks that a task blocks; its own row suffices, as both sides are written at once."""
        found = self._commits.view([task_id], fresh=True).look(task_id)
        return sorted(found.blocks, key=int) if found is not None else ()

    def is_finished(self) -> bool:
        """Return whether no visible task is open."""
        rows = self._mirror.everything().values()
        return all(row.is_gone or row.task.is_done or row.task.is_internal for row in rows)

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """Yield the event log from an id on, oldest first."""
        while True:
            rows = self._database.ask(
                f"SELECT {CHANGE_COLUMNS} FROM change c JOIN list l ON l.id = c.list WHERE l.name = %s AND c.id >= %s"  # noqa: S608
                " AND (%s::bigint IS NULL OR c.tasks @> ARRAY[%s::bigint]) ORDER BY c.id LIMIT %s",
                [self.name, since, _to_int(task_id), _to_int(task_id), _PAGE_SIZE],
            )
            yield from map(parse_change, rows)
            if len(rows) < _PAGE_SIZE:
                return
            since = rows[-1][0] + 1

    def position(self) -> int:
        """Return the id of the next change."""
        found = self._database.ask("SELECT changes FROM list WHERE name = %s", [self.name])
        return int(found[0][0]) if found else 0

    def wait(self, timeout: float) -> bool:
        """Sleep until something may have changed, at most `timeout` seconds; return whether it may have."""
        channel, thread = self._channel(), threading.get_ident()
        before = self._woken.get((channel, thread), 0)
        now = self._database.listener.subscription(channel).wait(before, timeout)
        self._woken[channel, thread] = now
        return now > before

    def _channel(self) -> str:
        """Return the NOTIFY channel of this list; "lists" while the list does not exist or is unknown."""
        if self._mirror.list_id is None:
            try:
                found = self._database.ask("SELECT id FROM list WHERE name = %s", [self.name], patience=0)
                self._mirror.list_id = int(found[0][0]) if found else None
            except StoreAway:
                pass  # its return also wakes the "lists" channel
        return "lists" if self._mirror.list_id is None else f"list_{self._mirror.list_id}"

    def signal(self) -> None:
        """Do nothing: the server notifies every listener of a change."""

    def listen(self, on_quarantine: Callable[[Task], None]) -> None:
        """Set the callback for tasks that are quarantined."""
        self._reaper.on_quarantine = on_quarantine

    def close(self) -> None:
        """Do nothing: connections belong to the process."""

    # -- writing -------------------------------------------------------------------------------

    def reserve(self) -> str:
        """Return a new id, never assigned again."""
        return self._commits.reserve()

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Create a task on the list."""
        if task_id is None and not (draft.blocks or draft.blocked_by or metadata_parent(draft.metadata)):
            return self._held(self._commits.add(draft, act, lease))
        others = [*draft.blocks, *draft.blocked_by]
        if task_id is None:
            transitions.plan_create(self._reaper.settled(others), "0", draft, lease)  # a refused draft uses no id
            task_id = self.reserve()
        new_id = task_id
        done = self._change(act, lambda view: transitions.plan_create(view, new_id, draft, lease), others)
        return self._held(done.after[new_id]._replace(lease=lease))

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
        """Apply `rule` to one task and save the result."""
        done = self._change(act, lambda view: transitions.plan_update(view, task_id, rule, links), [task_id])
        return self._held(
            done.after[task_id]._replace(lease=current_lease(done.after[task_id], done.plan.leases[task_id]))
        )

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """Claim the first task, in the given order, that `rule` accepts."""
        claim = rule.claim if isinstance(rule, ClaimRule) and isinstance(order, ClaimOrder) and order.is_plain else None
        if claim is not None:
            return self._claim_first(claim, act)
        for task_id in order(self.list()):
            try:
                return self.update(task_id, rule, act)
            except (Conflict, TaskNotFound):
                continue  # another process was faster, or it cannot be claimed
        return None

    def _claim_first(self, claim: ClaimResult, act: Act) -> Task | None:
        """Claim the first task open to every agent; the server selects it and gives it to one claimant only."""
        if boottime() - self._reaper.asked_at > _REAP_INTERVAL:
            self._reaper.release_all()
        for _ in range(_CLAIM_TRIES):
            found = self._commits.claim_first(claim, act)
            if found is not None:
                return self._held(found)
            if not self._reaper.release_all():
                return None  # no dead holder has a task either
        return None

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Add (blocker, blocked) dependencies: all or none."""
        self._change(act, lambda view: transitions.plan_link(view, edges), _edge_ids(edges))

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Remove dependencies; return those that existed."""
        return self._change(act, lambda view: transitions.plan_unlink(view, edges), _edge_ids(edges)).plan.edges

    def remove(
        self,
        task_ids: Sequence[str],
        act: Act,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        """Remove tasks from the list and from all dependencies."""

        def plan(view: ListView) -> Plan:
            return transitions.plan_remove(view, task_ids, only_done=only_done, check=check)

        return self._change(act, plan, task_ids).plan.found

    def restore(self, task_id: str, act: Act) -> Task:
        """Restore a removed task under its id."""

        def plan(view: ListView) -> Plan:
            return transitions.plan_restore(view, task_id, list_name=self.name)

        return self._change(act, plan, [task_id]).after[task_id]

    def last_id(self) -> int:
        """Return the highest id ever assigned."""
        found = self._database.ask("SELECT last_id FROM list WHERE name = %s", [self.name])
        return int(found[0][0]) if found else 0

    def adopt(self, tasks: Sequence[Task], act: Act, *, last: int = 0) -> None:
        """Fill an empty list with `tasks` unchanged."""
        adopt(self._commits, tasks, act, last)

    def _held(self, task: Task) -> Task:
        if task.lease is not None and task.lease.kind == "process":
            self._keep_alive(task.lease)
        return task

    def _change(self, act: Act, plan: Planner, ids: Collection[str]) -> CommittedPlan:
        return self._commits.carry_out(act, plan, ids, lambda view: self._reaper.release(view, ids))


def _edge_ids(edges: Sequence[Edge]) -> Sequence[str]:
    return list(dict.fromkeys(end for edge in edges for end in edge))


def _to_int(task_id: str | None) -> int | None:
    return None if task_id is None else int(task_id)
