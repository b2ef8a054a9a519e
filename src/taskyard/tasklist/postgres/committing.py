"""
Plans on a list, carried out: sent with what they rest on, and planned again on what is new if that has changed.

A plan is first made on what is known here, which may be old: if nothing it looked at has changed, it holds, and no look
was needed. What refuses, or writes nothing, is made again on a fresh look before it is believed.
"""

from __future__ import annotations

import random
import time

from taskyard.disk.processes import this_host
from taskyard.errors import TaskyardError
from taskyard.errors.elsewhere import Repeated
from taskyard.tasklist import planning
from taskyard.tasklist.model import Act, Draft, Lease, Task
from taskyard.tasklist.planning import Plan
from taskyard.tasklist.postgres.mirror import Mirror
from taskyard.tasklist.postgres.rows import lease_of, task_of
from taskyard.tasklist.postgres.view import ListView
from taskyard.tasklist.postgres.writes import (
    ADD,
    CAME_OF,
    CLAIM,
    COMMIT,
    HAVE_LIST,
    Write,
    add_values,
    claim_values,
    commit_values,
    new_op,
    writes,
)
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection
    from typing import LiteralString

    from taskyard.config import Settings
    from taskyard.database.connection import Link
    from taskyard.database.pool import Database
    from taskyard.tasklist.picking import Claim
    from taskyard.tasklist.postgres.mirror import Ask, Known

    #: Plans on a view.
    Planner = Callable[[ListView], Plan]

    #: Gives back what the dead held of some tasks; whether there was anything. No lock is held.
    Release = Callable[[ListView], bool]

#: How often a plan may be refused before the list is held for it, and the longest pause between two tries in seconds.
_TRIES, _PAUSE = 6, 0.01

#: The most that a transaction which holds the list is tried: the dead that it finds are released outside of it.
_HELD_TRIES = 20


_HOLDERS: LiteralString = """
    SELECT dead_in(l.id), h.lease FROM list l LEFT JOIN LATERAL (
        SELECT (SELECT t.lease FROM task t WHERE t.list = l.id AND t.instance = i.id LIMIT 1) AS lease
        FROM holders_in(l.id) AS held(id) JOIN instance i ON i.id = held.id WHERE i.host = %s
    ) h ON true WHERE l.name = %s
"""


class Planned(NamedTuple):
    """A plan that was carried out."""

    plan: Plan
    after: dict[str, Task]  #: every task that it was about, as it is now


class _Refused(Exception):
    """What a plan rests on has changed, or may have."""


class Committing:
    """The writing half of a store in PostgreSQL."""

    def __init__(self, database: Database, name: str, settings: Settings) -> None:
        self.database = database
        self.mirror = Mirror(database, name)
        self.name = name
        self.host = this_host()
        self.silence = settings.holder_silence

    # -- looking -------------------------------------------------------------------------------

    def view(self, ids: Collection[str], *, fresh: bool, ask: Ask | None = None) -> ListView:
        """A view with some tasks, or all where all are known; `fresh`: as they are now."""
        if not self.mirror.known.is_whole:
            return self.view_of(self.mirror.some(ids, ask=ask), fresh=True, ask=ask)
        return self.view_of(self.mirror.everything(ask=ask) if fresh else self.mirror.known, fresh=fresh, ask=ask)

    def view_of(self, known: Known, *, fresh: bool, ask: Ask | None = None) -> ListView:
        """A view on what is known."""
        return ListView(self.name, known, fresh=fresh, load=lambda: self.mirror.everything(ask=ask))

    def list_id(self) -> int:
        """The list's own id; it is made if there is none."""
        if self.mirror.list_id is None:
            self.mirror.list_id = int(self.database.ask("SELECT list_named(%s)", [self.name])[0][0])
        return self.mirror.list_id

    def holders(self) -> tuple[list[int], list[Lease]]:
        """Tasks whose holders are gone by the server's clock, and a lease of each holder on this machine."""
        rows = self.database.ask(_HOLDERS, [self.host, self.name])
        leases = [lease_of(text) for _, text in rows if text is not None]
        return (rows[0][0] if rows else []), [lease for lease in leases if lease is not None]

    # -- writing -------------------------------------------------------------------------------

    def reserve(self) -> str:
        """A fresh id, never given out again."""
        return str(self.database.ask("SELECT reserve_id(%s)", [self.list_id()])[0][0])

    def add(self, draft: Draft, act: Act, lease: Lease | None) -> Task:
        """A new task that depends on nothing: no look is needed."""
        task = Task("0", *draft)
        op = new_op()
        values = add_values(
            self.list_id(), task, planning.current(task, lease), act, op, host=self.host, silence=self.silence
        )
        try:
            new_id, at = self.database.ask(ADD, values)[0]
        except Repeated:
            new_id, _, at, _ = self.database.ask(CAME_OF, [op])[0]
        return task._replace(id=str(new_id), created_at=at, updated_at=at, lease=lease)

    def claim_first(self, claim: Claim, act: Act) -> Task | None:
        """The first task that is offered to everybody, claimed."""
        op = new_op()
        values = claim_values(self.list_id(), claim, act, op, host=self.host, silence=self.silence)
        try:
            number, created, at, body = self.database.ask(CLAIM, values)[0]
        except Repeated:
            number, created, at, body = self.database.ask(CAME_OF, [op])[0]
        if number is None:
            return None
        task = task_of(str(number), body, claim.status.value, claim.owner, created, at)
        return task._replace(lease=claim.lease)

    def carry_out(self, act: Act, plan: Planner, ids: Collection[str], release: Release) -> Planned:
        """Plan until the plan holds.

        Raises:
            TaskyardError: what the planner refuses on a fresh look.
        """
        op, view = new_op(), self.view(ids, fresh=False)
        for attempt in range(_TRIES):
            if release(view):
                view = self.view(ids, fresh=True)
            try:
                return self._tried(act, plan, view, op)
            except TaskyardError:
                if view.is_fresh:
                    raise
            except _Refused:
                time.sleep(random.uniform(0, _PAUSE) if attempt else 0)  # noqa: S311  # so that not all come back at once
            view = self.view(ids, fresh=True)
        return self._carry_out_alone(act, plan, ids, release, op)

    def _carry_out_alone(
        self, act: Act, plan: Planner, ids: Collection[str], release: Release, op: uuid.UUID
    ) -> Planned:
        """Plan while nobody else can change the list: for whoever was refused again and again."""
        list_id = self.list_id()

        def work(link: Link) -> Planned:
            link.execute(HAVE_LIST, [list_id])
            ask: Ask = lambda sql, values: link.execute(sql, values).fetchall()  # noqa: E731
            view = self.view(ids, fresh=True, ask=ask)
            return self._tried(act, plan, view, op, ask=ask)

        for _ in range(_HELD_TRIES):
            release(self.view(ids, fresh=True))
            try:
                return self.database.within(work)
            except _Refused:
                continue  # its holder died this moment
        raise AssertionError("a plan was refused although nothing could change")

    def _tried(self, act: Act, plan: Planner, view: ListView, op: uuid.UUID, *, ask: Ask | None = None) -> Planned:
        planned = plan(view)
        changed = planning.changed(view, planned, 1)
        wanted = writes(view, changed, planned.leases)
        if not wanted:
            if not view.is_fresh:
                raise _Refused
            return Planned(planned, _present(view, planned))
        tick, _, at = self._sent(wanted, act, op, view, ask=ask)
        if tick is None:
            raise _Refused
        after = _present(view, planned)
        for task_id, task in changed.items():
            if task is not None:
                was = view.row(task_id)
                began = was.task.created_at if was is not None else at
                after[task_id] = task._replace(created_at=began, updated_at=at)
        return Planned(planned, after)

    def give_back(self, view: ListView, task: Task, losses: int, act: Act, *, only_dead: bool) -> bool:
        """Put a dead holder's task back; False if it was renewed, or somebody was quicker."""
        seen = {task.id: view.seen[task.id]}
        values = commit_values(
            self.list_id(),
            [Write(task.id, False, True, task, None, losses)],
            act,
            new_op(),
            seen=seen,
            dead=task.id if only_dead else None,
        )
        return self.database.ask(COMMIT, values)[0][0] is not None

    def _sent(
        self, wanted: list[Write], act: Act, op: uuid.UUID, view: ListView, *, ask: Ask | None = None
    ) -> tuple[int | None, int, int]:
        """The tick, the new id and the time of a change; no tick: it was refused."""
        values = commit_values(
            self.list_id(), wanted, act, op, seen=view.seen, whole=view.whole, host=self.host, silence=self.silence
        )
        tick, new_id, at = (ask or self.database.ask)(COMMIT, values)[0]
        return tick, new_id, at


def _present(view: ListView, plan: Plan) -> dict[str, Task]:
    """The tasks of a plan as they were."""
    return {task_id: task for task_id in plan.after if (task := view.look(task_id)) is not None}
