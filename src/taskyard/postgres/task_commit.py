"""Optimistic commits to a task list in PostgreSQL: views, row encoding, local mirror, committer.

`ListView` is a list to plan on that records the tick (row version) of everything read: the plan is valid while
none of those changed. `ListMirror` caches a list in this process: after the first full read only changes are
read, so a refresh costs what happened since, however long the list is; until then single tasks are fetched as
needed. `TaskCommitter` sends a plan with the ticks it depends on in one statement, and plans again on fresh
data if the server refuses.

A plan is first made on the mirror, which may be stale: if nothing it read has changed it is valid, and no read
was needed. A plan that raises an error or writes nothing is repeated on fresh data first.

Bodies and leases are stored as ASCII-only JSON, so that any text can be stored.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid

from taskyard.core.system import now_ms, this_host
from taskyard.core.values import NamedTuple, as_object, nearest_ids
from taskyard.errors import Damaged, Repeated, TaskNotFound, TaskyardError
from taskyard.tasks import transitions
from taskyard.tasks.list_folder import lease_from_json, lease_to_json
from taskyard.tasks.model import (
    Act,
    Change,
    Draft,
    Lease,
    Listing,
    Task,
    TaskStatus,
    priority_of,
    sort_by_id,
)
from taskyard.tasks.reader import UnreadableTask, decode_task
from taskyard.tasks.rules import is_claimable
from taskyard.tasks.transitions import Plan, current_lease, losses_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, LiteralString

    from taskyard.config import Settings
    from taskyard.postgres.connection import Database, PgConnection
    from taskyard.tasks.rules import ClaimResult


class ListView:
    """Some or all tasks of a list as of one moment; others are fetched on demand."""

    def __init__(self, name: str, known: TaskSnapshot, *, fresh: bool, load: Callable[[], TaskSnapshot]) -> None:
        """`fresh`: read for this very plan. `load` reads everything, if only some tasks are known."""
        self.is_fresh = fresh
        self.seen: dict[str, int] = {}  #: ticks of the tasks that were read; 0: there was none
        self.whole: int | None = None  #: tick of the list, if everything was read
        self._name = name
        self._known = known
        self._load = load

    def row(self, task_id: str) -> TaskRow | None:
        """Return the row of a task, even a removed one."""
        found = self._known.get(task_id)
        if found is None and not self._known.is_whole and task_id not in self.seen:
            self._whole()
            found = self._known.get(task_id)
        # Plans depend on the tick seen first, even if everything was read since.
        self.seen.setdefault(task_id, found.tick if found is not None else 0)
        return found

    def look(self, task_id: str) -> Task | None:
        """Return one task; None if there is none."""
        found = self.row(task_id)
        return None if found is None or found.is_gone else found.task

    def everything(self) -> Sequence[Task]:
        """Return all tasks by ascending id."""
        self._whole()
        self.whole = self._known.tick
        return sort_by_id(row.task for row in self._known.values() if not row.is_gone)

    def lease(self, task_id: str) -> Lease | None:
        """Return a task's lease; whether its holder is alive was checked before (`is_dead`)."""
        found = self.row(task_id)
        return None if found is None or found.is_gone else found.lease

    def is_dead(self, task_id: str) -> bool:
        """Return whether the holder of a task was dead by the server's clock."""
        return task_id in self._known.dead

    def last_seen(self, task_id: str) -> Task | None:
        """Return the last state of a removed task; None if it never existed."""
        found = self.row(task_id)
        return None if found is None else found.task

    def missing(self, task_id: str) -> TaskNotFound:
        """Return the error for a missing task."""
        was = self.row(task_id) is not None
        self._whole()
        there = [row.task.id for row in self._known.values() if not row.is_gone]
        return TaskNotFound(task_id, list_name=self._name, nearest=nearest_ids(task_id, there), restorable=was)

    def _whole(self) -> None:
        """Load everything. Ticks already seen stay: if they differ by now, the server refuses the plan."""
        if not self._known.is_whole:
            self._known = self._load()


#: Columns of a task, in the order of `parse_row`.
TASK_COLUMNS: LiteralString = (
    "t.id, t.tick, t.is_gone, t.status, t.owner, t.created_at, t.updated_at, t.body, t.lease, t.losses, t.instance"
)

#: Columns of a change, in the order of `parse_change`.
CHANGE_COLUMNS: LiteralString = (
    "c.id, c.at, c.actor, c.cause, c.via, c.note, c.tasks, c.statuses, c.owners, c.created, c.bodies"
)

_STATUS = {status.value: status for status in TaskStatus}


class TaskRow(NamedTuple):
    """One task as stored in the database."""

    tick: int
    is_gone: bool
    task: Task  #: current or last state
    body: str
    lease_text: str | None
    losses: int
    instance: str | None  #: the holder, if its lease lasts as long as a process

    @property
    def lease(self) -> Lease | None:
        """The lease, of a live or dead holder; parsed on demand, as most are never needed."""
        return None if self.lease_text is None else current_lease(self.task, parse_lease(self.lease_text))


def parse_row(columns: Sequence[Any], before: TaskRow | None = None) -> tuple[str, TaskRow]:
    """Return id and row from `TASK_COLUMNS`; `before`: the known row, most of which is reused."""
    number, tick, is_gone, status, owner, created, updated, body, lease, losses, instance = columns
    task_id = str(number)
    if before is not None and before.body == body:
        same = before.task
        task = same._replace(owner=owner, status=_STATUS[status], created_at=created, updated_at=updated)
    else:
        task = parse_task(task_id, body, status, owner, created, updated)
    return task_id, TaskRow(tick, is_gone, task, body, lease, losses, instance)


def parse_task(task_id: str, body: str, status: str, owner: str | None, created: int, updated: int) -> Task:
    """Return the task in some columns.

    Raises:
        Damaged: another program wrote them.
    """
    try:
        found = decode_task(task_id, as_object(json.loads(body)) or {})
        return found._replace(owner=owner, status=_STATUS[status], created_at=created, updated_at=updated)
    except (ValueError, UnreadableTask, KeyError) as error:
        raise Damaged(f"task {task_id} in the database", str(error)) from error


def parse_change(columns: Sequence[Any]) -> Change:
    """Return the change in `CHANGE_COLUMNS`."""
    number, at, actor, cause, via, note, ids, statuses, owners, created, bodies = columns
    tasks = {
        str(task_id): None if status is None else parse_task(str(task_id), body, status, owner, began, at)
        for task_id, status, owner, began, body in zip(ids, statuses, owners, created, bodies)
    }
    return Change(number, at, Act(actor, cause, via, note), tasks)


def encode_body(task: Task) -> str:
    """Return the fields that have no column of their own as JSON, without empty ones."""
    fields: dict[str, object] = {
        "subject": task.subject,
        "description": task.description,
        "activeForm": task.active_form,
        "blocks": task.blocks or None,
        "blockedBy": task.blocked_by or None,
        "metadata": task.metadata or None,
    }
    return _encode({name: value for name, value in fields.items() if value is not None})


def parse_lease(text: str) -> Lease | None:
    """Parse a lease."""
    return lease_from_json(as_object(json.loads(text)) or {})


def encode_lease(lease: Lease | None) -> str | None:
    """Return a lease as JSON."""
    return None if lease is None else _encode(lease_to_json(lease))


_encode = json.JSONEncoder(separators=(",", ":")).encode


class RowWrite(NamedTuple):
    """One row to be written."""

    task_id: str | None  #: None: a new task
    is_gone: bool
    is_told: bool  #: whether it is logged; a mere change of the lease is not
    task: Task
    lease: Lease | None
    losses: int


#: Lock a list against other writers for the rest of the transaction; see the migration.
LOCK_LIST: LiteralString = "SELECT pg_advisory_xact_lock(7265834, %s)"

COMMIT: LiteralString = (
    "SELECT tick, new_id, at FROM commit_change(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
    " %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)

ADD: LiteralString = "SELECT new_id, at FROM add_task(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

CLAIM: LiteralString = (
    "SELECT id, created_at, at, body FROM claim_first(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)

#: The result of an earlier request about one task.
OP_RESULT: LiteralString = "SELECT c.tasks[1], c.created[1], c.at, c.bodies[1] FROM change c WHERE c.op = %s"


def new_op_id() -> uuid.UUID:
    """Return an idempotency key: a repeated request is recognized by it."""
    return uuid.uuid4()


def plan_writes(
    view: ListView, changed: Mapping[str, Task | None], leases: Mapping[str, Lease | None]
) -> list[RowWrite]:
    """Return the rows that a plan writes: changed tasks and changed leases."""
    found: list[RowWrite] = []
    for task_id, task in changed.items():
        before = view.row(task_id)
        after = task or (before.task if before is not None else None)
        assert after is not None, "what is removed was there"
        held = leases.get(task_id, before.lease if before is not None else None)
        losses = losses_after(before.losses if before is not None else 0, before and before.task, task)
        found.append(RowWrite(task_id, task is None, True, after, current_lease(task, held), losses))
    for task_id, lease in leases.items():
        before = view.row(task_id)
        if task_id not in changed and before is not None and lease != before.lease:
            found.append(
                RowWrite(task_id, before.is_gone, False, before.task, current_lease(before.task, lease), before.losses)
            )
    return found


def commit_values(
    list_id: int,
    writes: Sequence[RowWrite],
    act: Act,
    op: uuid.UUID,
    *,
    seen: Mapping[str, int],
    whole: int | None = None,
    dead: str | None = None,
    host: str = "",
    silence: float = 0.0,
) -> list[object]:
    """Return the values for `COMMIT`."""
    return [
        list_id,
        [int(task_id) for task_id in seen],
        list(seen.values()),
        whole,
        None if dead is None else int(dead),
        [None if write.task_id is None else int(write.task_id) for write in writes],
        [write.is_gone for write in writes],
        [write.is_told for write in writes],
        [write.task.status.value for write in writes],
        [write.task.owner for write in writes],
        [encode_body(write.task) for write in writes],
        ["{" + ",".join(write.task.blocked_by) + "}" for write in writes],
        [priority_of(write.task) for write in writes],
        [not write.is_gone and is_claimable(write.task) for write in writes],
        [encode_lease(write.lease) for write in writes],
        [write.losses for write in writes],
        [holder_instance(write.lease) for write in writes],
        [lease_ms(write.lease) for write in writes],
        host,
        round(silence * 1000),
        *act,
        op,
    ]


def add_values(
    list_id: int, task: Task, lease: Lease | None, act: Act, op: uuid.UUID, *, host: str, silence: float
) -> list[object]:
    """Return the values for `ADD`."""
    return [
        list_id,
        task.status.value,
        task.owner,
        encode_body(task),
        priority_of(task),
        is_claimable(task),
        encode_lease(lease),
        holder_instance(lease),
        lease_ms(lease),
        host,
        round(silence * 1000),
        *act,
        op,
    ]


def holder_instance(lease: Lease | None) -> str | None:
    """Return the instance of a lease that lasts as long as a process."""
    return lease.instance if lease is not None and lease.kind == "process" else None


def lease_ms(lease: Lease | None) -> int | None:
    """Return the milliseconds until a timed lease ends; the server adds them to its own clock."""
    return lease.expires - now_ms() if lease is not None and lease.expires is not None else None


def claim_values(
    list_id: int, claim: ClaimResult, act: Act, op: uuid.UUID, *, host: str, silence: float
) -> list[object]:
    """Return the values for `CLAIM`."""
    return [
        list_id,
        claim.status.value,
        claim.owner,
        encode_lease(claim.lease),
        holder_instance(claim.lease),
        lease_ms(claim.lease),
        host,
        round(silence * 1000),
        *act,
        op,
    ]


if TYPE_CHECKING:
    Ask = Callable[[LiteralString, Sequence[object]], list[Any]]

_SELECT_CHANGED: LiteralString = f"""
    WITH l AS MATERIALIZED (SELECT id, tick, dead_in(id) AS dead FROM list WHERE name = %s)
    SELECT l.id, l.tick, l.dead, {TASK_COLUMNS} FROM l LEFT JOIN task t ON t.list = l.id AND t.tick > %s
"""  # noqa: S608  # our own columns

_SELECT_SOME: LiteralString = f"""
    WITH l AS MATERIALIZED (SELECT id, tick FROM list WHERE name = %s),
    wanted AS MATERIALIZED (
        SELECT unnest(%s::bigint[]) AS id
        UNION SELECT unnest(b.blocked_by) FROM task b, l WHERE b.list = l.id AND b.id = ANY (%s::bigint[])
    )
    SELECT l.id, l.tick, CASE WHEN is_dead(t.instance, t.until) THEN ARRAY[t.id] ELSE ARRAY[]::bigint[] END,
           {TASK_COLUMNS}
    FROM l LEFT JOIN task t ON t.list = l.id AND t.id IN (SELECT w.id FROM wanted w)
"""  # noqa: S608


class TaskSnapshot(dict[str, TaskRow]):
    """Tasks by id as of one moment."""

    def __init__(self, before: TaskSnapshot | None = None) -> None:
        """Start from the snapshot `before`, to be brought up to date."""
        super().__init__(before or {})
        self.tick = 0  #: tick of the list
        self.is_whole = False  #: whether it contains every task
        self.dead: frozenset[str] = frozenset()  #: tasks whose holders are dead by the server's clock
        #: Task id → instance whose process lease holds it.
        self.held: dict[str, str] = dict(before.held) if before is not None else {}

    def put(self, task_id: str, row: TaskRow) -> None:
        """Store the new row of a task."""
        if row.instance is not None:
            self.held[task_id] = row.instance
        else:
            self.held.pop(task_id, None)
        self[task_id] = row


class ListMirror:
    """The locally cached state of one list."""

    def __init__(self, database: Database, name: str) -> None:
        self.list_id: int | None = None  #: None: the list did not exist at the last read
        self._database = database
        self._name = name
        self._known = TaskSnapshot()
        self._listing: Listing | None = None
        self._lock = threading.Lock()

    @property
    def known(self) -> TaskSnapshot:
        """Everything as of the last read; not to be changed."""
        return self._known

    def some(self, ids: Collection[str], *, ask: Ask | None = None) -> TaskSnapshot:
        """Return tasks with their blockers in their current state; `ask` runs in the caller's transaction."""
        numbers = [int(task_id) for task_id in ids]
        found = TaskSnapshot()
        self._take_in(found, (ask or self._database.ask)(_SELECT_SOME, [self._name, numbers, numbers]))
        return found

    def everything(self, *, ask: Ask | None = None) -> TaskSnapshot:
        """Return all tasks in their current state. Snapshots returned earlier stay unchanged."""
        with self._lock:
            since = self._known.tick if self._known.is_whole else -1
            answer = (ask or self._database.ask)(_SELECT_CHANGED, [self._name, since])
            if self._known.is_whole and _is_unchanged(answer, self._known):
                return self._known
            found = TaskSnapshot(self._known if self._known.is_whole else None)
            found.is_whole = True
            self._take_in(found, answer)
            self._known, self._listing = found, None
            return found

    def listing(self) -> Listing:
        """Return everything as of the last read, as a listing."""
        with self._lock:
            if self._listing is None:
                rows = sorted(self._known.values(), key=lambda row: int(row.task.id))
                self._listing = Listing(row.task._replace(lease=row.lease) for row in rows if not row.is_gone)
            return self._listing

    def _take_in(self, found: TaskSnapshot, answer: Iterable[tuple[object, ...]]) -> None:
        dead: set[str] = set()
        for list_id, tick, gone, *columns in answer:
            self.list_id, found.tick = list_id, tick  # type: ignore[assignment]  # as the statement says
            dead.update(map(str, gone))  # type: ignore[call-overload]
            if columns[0] is not None:
                found.put(*parse_row(columns, found.get(str(columns[0]))))
        found.dead = frozenset(dead)


def _is_unchanged(answer: list[tuple[object, ...]], known: TaskSnapshot) -> bool:
    """Return whether a read found no change."""
    if len(answer) != 1 or answer[0][3] is not None or answer[0][1] != known.tick:
        return False
    return frozenset(map(str, answer[0][2])) == known.dead  # type: ignore[call-overload]


if TYPE_CHECKING:
    Planner = Callable[[ListView], Plan]
    Release = Callable[[ListView], bool]

#: Refusals of a plan before the list is locked for it, and the longest pause between two tries in seconds.
_MAX_TRIES, _MAX_PAUSE = 6, 0.01

#: Maximum tries of a transaction that locks the list: dead holders that it finds are released outside of it.
_LOCKED_TRIES = 20


_SELECT_HOLDERS: LiteralString = """
    SELECT dead_in(l.id), h.lease FROM list l LEFT JOIN LATERAL (
        SELECT (SELECT t.lease FROM task t WHERE t.list = l.id AND t.instance = i.id LIMIT 1) AS lease
        FROM holders_in(l.id) AS held(id) JOIN instance i ON i.id = held.id WHERE i.host = %s
    ) h ON true WHERE l.name = %s
"""


class CommittedPlan(NamedTuple):
    """A plan that was committed."""

    plan: Plan
    after: dict[str, Task]  #: every task of the plan in its new state


class _StalePlan(Exception):
    """What a plan depends on has changed, or may have."""


class TaskCommitter:
    """The writing half of a task store in PostgreSQL."""

    def __init__(self, database: Database, name: str, settings: Settings) -> None:
        self.database = database
        self.mirror = ListMirror(database, name)
        self.name = name
        self.host = this_host()
        self.silence = settings.holder_silence

    # -- reading -------------------------------------------------------------------------------

    def view(self, ids: Collection[str], *, fresh: bool, ask: Ask | None = None) -> ListView:
        """Return a view of some tasks, or of all where all are known; `fresh`: in their current state."""
        if not self.mirror.known.is_whole:
            return self.view_of(self.mirror.some(ids, ask=ask), fresh=True, ask=ask)
        return self.view_of(self.mirror.everything(ask=ask) if fresh else self.mirror.known, fresh=fresh, ask=ask)

    def view_of(self, known: TaskSnapshot, *, fresh: bool, ask: Ask | None = None) -> ListView:
        """Return a view of a snapshot."""
        return ListView(self.name, known, fresh=fresh, load=lambda: self.mirror.everything(ask=ask))

    def list_id(self) -> int:
        """Return the list's id; the list is created if missing."""
        if self.mirror.list_id is None:
            self.mirror.list_id = int(self.database.ask("SELECT list_named(%s)", [self.name])[0][0])
        return self.mirror.list_id

    def holders(self) -> tuple[list[int], list[Lease]]:
        """Return the tasks of holders dead by the server's clock, and one lease of each holder on this host."""
        rows = self.database.ask(_SELECT_HOLDERS, [self.host, self.name])
        leases = [parse_lease(text) for _, text in rows if text is not None]
        return (rows[0][0] if rows else []), [lease for lease in leases if lease is not None]

    # -- writing -------------------------------------------------------------------------------

    def reserve(self) -> str:
        """Return a new id, never assigned again."""
        return str(self.database.ask("SELECT reserve_id(%s)", [self.list_id()])[0][0])

    def add(self, draft: Draft, act: Act, lease: Lease | None) -> Task:
        """Create a task without dependencies; no read is needed."""
        task = Task("0", *draft)
        op = new_op_id()
        values = add_values(
            self.list_id(), task, transitions.current_lease(task, lease), act, op, host=self.host, silence=self.silence
        )
        try:
            new_id, at = self.database.ask(ADD, values)[0]
        except Repeated:
            new_id, _, at, _ = self.database.ask(OP_RESULT, [op])[0]
        return task._replace(id=str(new_id), created_at=at, updated_at=at, lease=lease)

    def claim_first(self, claim: ClaimResult, act: Act) -> Task | None:
        """Claim the first task that is open to every agent."""
        op = new_op_id()
        values = claim_values(self.list_id(), claim, act, op, host=self.host, silence=self.silence)
        try:
            number, created, at, body = self.database.ask(CLAIM, values)[0]
        except Repeated:
            number, created, at, body = self.database.ask(OP_RESULT, [op])[0]
        if number is None:
            return None
        task = parse_task(str(number), body, claim.status.value, claim.owner, created, at)
        return task._replace(lease=claim.lease)

    def carry_out(self, act: Act, plan: Planner, ids: Collection[str], release: Release) -> CommittedPlan:
        """Plan and commit until the server accepts the plan.

        Raises:
            TaskyardError: what the planner refuses on fresh data.
        """
        op, view = new_op_id(), self.view(ids, fresh=False)
        for attempt in range(_MAX_TRIES):
            if release(view):
                view = self.view(ids, fresh=True)
            try:
                return self._tried(act, plan, view, op)
            except TaskyardError:
                if view.is_fresh:
                    raise
            except _StalePlan:
                time.sleep(random.uniform(0, _MAX_PAUSE) if attempt else 0)  # noqa: S311  # so that not all come back at once
            view = self.view(ids, fresh=True)
        return self._carry_out_locked(act, plan, ids, release, op)

    def _carry_out_locked(
        self, act: Act, plan: Planner, ids: Collection[str], release: Release, op: uuid.UUID
    ) -> CommittedPlan:
        """Plan and commit while the list is locked, after too many refusals."""
        list_id = self.list_id()

        def work(link: PgConnection) -> CommittedPlan:
            link.execute(LOCK_LIST, [list_id])
            ask: Ask = lambda sql, values: link.execute(sql, values).fetchall()  # noqa: E731
            view = self.view(ids, fresh=True, ask=ask)
            return self._tried(act, plan, view, op, ask=ask)

        for _ in range(_LOCKED_TRIES):
            release(self.view(ids, fresh=True))
            try:
                return self.database.within(work)
            except _StalePlan:
                continue  # its holder exited at this moment
        raise AssertionError("a plan was refused although nothing could change")

    def _tried(
        self, act: Act, plan: Planner, view: ListView, op: uuid.UUID, *, ask: Ask | None = None
    ) -> CommittedPlan:
        planned = plan(view)
        changed = transitions.changed_tasks(view, planned, 1)
        wanted = plan_writes(view, changed, planned.leases)
        if not wanted:
            if not view.is_fresh:
                raise _StalePlan
            return CommittedPlan(planned, _current_tasks(view, planned))
        tick, _, at = self._sent(wanted, act, op, view, ask=ask)
        if tick is None:
            raise _StalePlan
        after = _current_tasks(view, planned)
        for task_id, task in changed.items():
            if task is not None:
                was = view.row(task_id)
                began = was.task.created_at if was is not None else at
                after[task_id] = task._replace(created_at=began, updated_at=at)
        return CommittedPlan(planned, after)

    def give_back(self, view: ListView, task: Task, losses: int, act: Act, *, only_dead: bool) -> bool:
        """Requeue a dead holder's task; False if its lease was renewed or another process was faster."""
        seen = {task.id: view.seen[task.id]}
        values = commit_values(
            self.list_id(),
            [RowWrite(task.id, False, True, task, None, losses)],
            act,
            new_op_id(),
            seen=seen,
            dead=task.id if only_dead else None,
        )
        return self.database.ask(COMMIT, values)[0][0] is not None

    def _sent(
        self, wanted: list[RowWrite], act: Act, op: uuid.UUID, view: ListView, *, ask: Ask | None = None
    ) -> tuple[int | None, int, int]:
        """Return tick, new id and time of a change; no tick: it was refused."""
        values = commit_values(
            self.list_id(), wanted, act, op, seen=view.seen, whole=view.whole, host=self.host, silence=self.silence
        )
        tick, new_id, at = (ask or self.database.ask)(COMMIT, values)[0]
        return tick, new_id, at


def _current_tasks(view: ListView, plan: Plan) -> dict[str, Task]:
    """Return the tasks of a plan as they were before."""
    return {task_id: task for task_id in plan.after if (task := view.look(task_id)) is not None}
