"""
The list in PostgreSQL: the verbs of `TaskStore`, for any number of machines.

Nobody ever waits for a machine that thinks, or is cut off. A verb looks at what is known here, plans, and sends the
plan with the ticks of all it looked at; the server carries it out if those are still the same, in one statement, or
refuses. Then what is new is read, and planned again. A refusal, and an answer without a change, are never given on
what may be old. Who is refused too often holds the list for the length of one plan.

Leases end by the server's clock (`time`), or when their process is no longer believed to live: it says so every now and
then (`heart`), and its own machine asks the kernel.
"""

from __future__ import annotations

import threading

from taskyard.clock import elapsed
from taskyard.errors import Conflict, StoreAway, TaskNotFound
from taskyard.tasklist import planning
from taskyard.tasklist.model import Act, Change, Draft, Facts, Lease, Links, Listing, Task
from taskyard.tasklist.parents import parent_in
from taskyard.tasklist.picking import InOrder, Pick
from taskyard.tasklist.planning import Plan, current
from taskyard.tasklist.postgres.adopting import adopt
from taskyard.tasklist.postgres.committing import Committing
from taskyard.tasklist.postgres.holding import Holding
from taskyard.tasklist.postgres.rows import CHANGE, change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from taskyard.config import Settings
    from taskyard.database.pool import Database
    from taskyard.tasklist.graph import Edge
    from taskyard.tasklist.picking import Claim
    from taskyard.tasklist.postgres.committing import Planned, Planner
    from taskyard.tasklist.postgres.view import ListView
    from taskyard.tasklist.store import Rule

#: Changes that are read at once.
_MANY = 1000

#: Seconds after which whoever claims one task after the other looks again who is gone.
_LOOK_EVERY = 1.0

#: How often what the dead held is brought back before one is told that nothing is free.
_LOOKS = 5


class PostgresStore:
    """One list in one database."""

    def __init__(
        self,
        database: Database,
        name: str,
        settings: Settings,
        *,
        alive: Callable[[Lease], bool | None],
        believe: Callable[[Lease], None] = lambda _: None,
    ) -> None:
        """The list of this name, whether it exists yet or not.

        Args:
            database: Where it is.
            name: Which.
            settings: How long a holder is believed to live, and how many may be lost.
            alive: This machine's kernel's word on a holder; None = it cannot be told from here.
            believe: Sees that a holder goes on to be believed in, called when it got something to hold.
        """
        self.name = name
        self._database = database
        self._believe = believe
        self._commits = Committing(database, name, settings)
        self._mirror = self._commits.mirror
        self._holding = Holding(self._commits, alive, most_losses=settings.lease_losses)
        self._woken: dict[tuple[str, int], int] = {}

    # -- reading -------------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """One task, with its lease."""
        view = self._holding.settled([task_id])
        return planning.existing(view, task_id)._replace(lease=view.lease(task_id))

    def list(self) -> Listing:
        """Everything on the list; what the dead held is back in the pool."""
        if self._holding.release_dead(self._mirror.everything()):
            self._mirror.everything()
        return self._mirror.listing()

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Who waits for a task: both sides of a dependency are written at once, so its own word counts."""
        found = self._commits.view([task_id], fresh=True).look(task_id)
        return sorted(found.blocks, key=int) if found is not None else ()

    def is_finished(self) -> bool:
        """Whether nothing that people see is open."""
        rows = self._mirror.everything().values()
        return all(row.is_gone or row.task.is_done or row.task.is_internal for row in rows)

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """The event log from an id on, oldest first."""
        while True:
            rows = self._database.ask(
                f"SELECT {CHANGE} FROM change c JOIN list l ON l.id = c.list WHERE l.name = %s AND c.id >= %s"  # noqa: S608
                " AND (%s::bigint IS NULL OR c.tasks @> ARRAY[%s::bigint]) ORDER BY c.id LIMIT %s",
                [self.name, since, _number(task_id), _number(task_id), _MANY],
            )
            yield from map(change, rows)
            if len(rows) < _MANY:
                return
            since = rows[-1][0] + 1

    def position(self) -> int:
        """The id the next change will have."""
        found = self._database.ask("SELECT changes FROM list WHERE name = %s", [self.name])
        return int(found[0][0]) if found else 0

    def wait(self, timeout: float) -> bool:
        """Sleep until something may have changed, at most `timeout` seconds; whether something may have."""
        channel, thread = self._channel(), threading.get_ident()
        before = self._woken.get((channel, thread), 0)
        now = self._database.ear.sound(channel).wait(before, timeout)
        self._woken[channel, thread] = now
        return now > before

    def _channel(self) -> str:
        """Where changes of this list are told; as long as there is none, or nobody can say, where lists are."""
        if self._mirror.list_id is None:
            try:
                found = self._database.ask("SELECT id FROM list WHERE name = %s", [self.name], patience=0)
                self._mirror.list_id = int(found[0][0]) if found else None
            except StoreAway:
                pass  # that it is back is told there as well
        return "lists" if self._mirror.list_id is None else f"list_{self._mirror.list_id}"

    def signal(self) -> None:
        """Whoever waits hears of the change from the server, as everybody does."""

    def listen(self, on_aside: Callable[[Task], None]) -> None:
        """Be told of tasks that are set aside."""
        self._holding.on_aside = on_aside

    def close(self) -> None:
        """Nothing is open that is ours alone."""

    # -- writing -------------------------------------------------------------------------------

    def reserve(self) -> str:
        """A fresh id, never given out again."""
        return self._commits.reserve()

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Put a new task on the list."""
        if task_id is None and not (draft.blocks or draft.blocked_by or parent_in(draft.metadata)):
            return self._held(self._commits.add(draft, act, lease))
        others = [*draft.blocks, *draft.blocked_by]
        if task_id is None:
            planning.created(self._holding.settled(others), "0", draft, lease)  # what is refused spends no id
            task_id = self.reserve()
        new_id = task_id
        done = self._change(act, lambda view: planning.created(view, new_id, draft, lease), others)
        return self._held(done.after[new_id]._replace(lease=lease))

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
        done = self._change(act, lambda view: planning.updated(view, task_id, rule, links), [task_id])
        return self._held(done.after[task_id]._replace(lease=current(done.after[task_id], done.plan.leases[task_id])))

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """The first task, in the order given, that `rule` accepts."""
        claim = rule.claim if isinstance(rule, Pick) and isinstance(order, InOrder) and order.is_plain else None
        if claim is not None:
            return self._claim_first(claim, act)
        for task_id in order(self.list()):
            try:
                return self.update(task_id, rule, act)
            except (Conflict, TaskNotFound):
                continue  # somebody was quicker, or it is not to be had
        return None

    def _claim_first(self, claim: Claim, act: Act) -> Task | None:
        """The first task that is offered to everybody: the server knows it, and has it claimed by one and no other."""
        if elapsed() - self._holding.asked_at > _LOOK_EVERY:
            self._holding.release_all()
        for _ in range(_LOOKS):
            found = self._commits.claim_first(claim, act)
            if found is not None:
                return self._held(found)
            if not self._holding.release_all():
                return None  # nobody who is gone holds anything either
        return None

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Make each (blocker, blocked) wait: all edges or none."""
        self._change(act, lambda view: planning.linked(view, edges), _ends(edges))

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Take dependencies away; which were there."""
        return self._change(act, lambda view: planning.unlinked(view, edges), _ends(edges)).plan.edges

    def remove(
        self,
        task_ids: Sequence[str],
        act: Act,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        """Take tasks off the list, and out of everyone's dependencies."""

        def plan(view: ListView) -> Plan:
            return planning.removed(view, task_ids, only_done=only_done, check=check)

        return self._change(act, plan, task_ids).plan.found

    def restore(self, task_id: str, act: Act) -> Task:
        """Bring a removed task back under its id."""

        def plan(view: ListView) -> Plan:
            return planning.restored(view, task_id, list_name=self.name)

        return self._change(act, plan, [task_id]).after[task_id]

    def last_id(self) -> int:
        """The highest id that was ever given out."""
        found = self._database.ask("SELECT last_id FROM list WHERE name = %s", [self.name])
        return int(found[0][0]) if found else 0

    def adopt(self, tasks: Sequence[Task], act: Act, *, last: int = 0) -> None:
        """Have an empty list hold `tasks` as they are."""
        adopt(self._commits, tasks, act, last)

    def _held(self, task: Task) -> Task:
        if task.lease is not None and task.lease.kind == "process":
            self._believe(task.lease)
        return task

    def _change(self, act: Act, plan: Planner, ids: Collection[str]) -> Planned:
        return self._commits.carry_out(act, plan, ids, lambda view: self._holding.release(view, ids))


def _ends(edges: Sequence[Edge]) -> Sequence[str]:
    return list(dict.fromkeys(end for edge in edges for end in edge))


def _number(task_id: str | None) -> int | None:
    return None if task_id is None else int(task_id)
