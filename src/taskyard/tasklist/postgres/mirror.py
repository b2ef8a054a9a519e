"""
What of a list is known in this process, and since when.

Once somebody asked for everything, everything is kept, and from then on only what changed is read: a look costs what
happened since the last one, however long the list is. Until then single tasks are fetched as they are needed.
"""

from __future__ import annotations

import threading

from taskyard.tasklist.model import Listing
from taskyard.tasklist.postgres.rows import COLUMNS, Row, row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any, LiteralString

    from taskyard.database.pool import Database

    #: Asks one statement.
    Ask = Callable[[LiteralString, Sequence[object]], list[Any]]

_CHANGED: LiteralString = f"""
    WITH l AS MATERIALIZED (SELECT id, tick, dead_in(id) AS dead FROM list WHERE name = %s)
    SELECT l.id, l.tick, l.dead, {COLUMNS} FROM l LEFT JOIN task t ON t.list = l.id AND t.tick > %s
"""  # noqa: S608  # our own columns

_SOME: LiteralString = f"""
    WITH l AS MATERIALIZED (SELECT id, tick FROM list WHERE name = %s),
    wanted AS MATERIALIZED (
        SELECT unnest(%s::bigint[]) AS id
        UNION SELECT unnest(b.blocked_by) FROM task b, l WHERE b.list = l.id AND b.id = ANY (%s::bigint[])
    )
    SELECT l.id, l.tick, CASE WHEN is_dead(t.instance, t.until) THEN ARRAY[t.id] ELSE ARRAY[]::bigint[] END, {COLUMNS}
    FROM l LEFT JOIN task t ON t.list = l.id AND t.id IN (SELECT w.id FROM wanted w)
"""  # noqa: S608


class Known(dict[str, Row]):
    """Tasks by id, as of one moment."""

    def __init__(self, before: Known | None = None) -> None:
        """What was known `before`, to be brought up to date."""
        super().__init__(before or {})
        self.tick = 0  #: of the list
        self.is_whole = False  #: whether there are no others
        self.dead: frozenset[str] = frozenset()  #: whose holders are gone, by the server's clock
        #: Which instance holds what for as long as its process lives.
        self.held: dict[str, str] = dict(before.held) if before is not None else {}

    def put(self, task_id: str, row: Row) -> None:
        """Take in that a task is different now."""
        if row.instance is not None:
            self.held[task_id] = row.instance
        else:
            self.held.pop(task_id, None)
        self[task_id] = row


class Mirror:
    """What is known of one list."""

    def __init__(self, database: Database, name: str) -> None:
        self.list_id: int | None = None  #: None: there was no such list when we last looked
        self._database = database
        self._name = name
        self._known = Known()
        self._listing: Listing | None = None
        self._lock = threading.Lock()

    @property
    def known(self) -> Known:
        """Everything, as of the last look; not to be changed."""
        return self._known

    def some(self, ids: Collection[str], *, ask: Ask | None = None) -> Known:
        """Tasks with their blockers, as they are now; `ask` asks within a transaction of the caller's."""
        numbers = [int(task_id) for task_id in ids]
        found = Known()
        self._take_in(found, (ask or self._database.ask)(_SOME, [self._name, numbers, numbers]))
        return found

    def everything(self, *, ask: Ask | None = None) -> Known:
        """All tasks as they are now. What it returned before stays as it was."""
        with self._lock:
            since = self._known.tick if self._known.is_whole else -1
            answer = (ask or self._database.ask)(_CHANGED, [self._name, since])
            if self._known.is_whole and _is_same(answer, self._known):
                return self._known
            found = Known(self._known if self._known.is_whole else None)
            found.is_whole = True
            self._take_in(found, answer)
            self._known, self._listing = found, None
            return found

    def listing(self) -> Listing:
        """Everything as of the last look, for people."""
        with self._lock:
            if self._listing is None:
                rows = sorted(self._known.values(), key=lambda row: int(row.task.id))
                self._listing = Listing(row.task._replace(lease=row.lease) for row in rows if not row.is_gone)
            return self._listing

    def _take_in(self, found: Known, answer: Iterable[tuple[object, ...]]) -> None:
        dead: set[str] = set()
        for list_id, tick, gone, *columns in answer:
            self.list_id, found.tick = list_id, tick  # type: ignore[assignment]  # as the statement says
            dead.update(map(str, gone))  # type: ignore[call-overload]
            if columns[0] is not None:
                found.put(*row(columns, found.get(str(columns[0]))))
        found.dead = frozenset(dead)


def _is_same(answer: list[tuple[object, ...]], known: Known) -> bool:
    """Whether a look found nothing new."""
    if len(answer) != 1 or answer[0][3] is not None or answer[0][1] != known.tick:
        return False
    return frozenset(map(str, answer[0][2])) == known.dead  # type: ignore[call-overload]
