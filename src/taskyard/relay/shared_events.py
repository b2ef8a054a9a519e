"""
The stream of events of all machines, read from the database: from any id on, then as it grows.

Ids are the database's, in one order for everybody. What is told while somebody follows is heard at once (LISTEN), and
nothing is missed while the link is broken: whoever is woken looks by its own position. Events that are no longer kept
are never skipped in silence: `EventsGone` says so.
"""

from __future__ import annotations

import json

from taskyard.errors import BadValue, EventsGone, JobNotFound
from taskyard.runtime.events import Event, Events
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard.database.pool import Database

#: Read at once.
_BATCH = 500

#: One sleep of those who follow, in seconds: nobody tells that the machine of a job fell silent.
_LONG = 30.0

_ENDS = "SELECT (SELECT value FROM tally WHERE name = 'event_floor'), (SELECT value FROM tally WHERE name = 'event')"

_READ = """
    SELECT id, at, subtype, job, body FROM event
    WHERE id > %s AND (%s::text IS NULL OR job = %s) ORDER BY id LIMIT %s
"""


class SharedEvents(Events):
    """Events of the jobs of every machine, in order; `for` and `async for` go on where the last one stopped."""

    def __init__(
        self, database: Database, since: int | None = None, *, follow: bool = False, job: str | None = None
    ) -> None:
        """Find where to begin; the arguments are those of `Events`.

        Raises:
            EventsGone: some events after `since` are no longer kept, or the stream never came that far.
            BadValue: it cannot be an id.
            JobNotFound: no machine knows such a job.
        """
        self.unreadable = 0
        self._database = database
        self._follows = follow
        self._job = job
        self._is_closed = False
        self._sound = database.ear.sound("events")
        if since is not None and since < 0:
            raise BadValue("since", since, "the id of an event, or 0")
        if job is not None and not self._rows_of_job():
            raise JobNotFound(job)
        first, last = self._ends()
        self.position = since if since is not None else first
        self._check(first, last)

    def skip(self) -> int:
        """Pass over everything that is there; where to go on from."""
        self.position = self._ends()[1]
        return self.position

    def close(self) -> None:
        """Let whoever waits for more, in any thread, come to its end."""
        self._is_closed = True
        self._sound.ring()

    def _steps(self) -> Iterator[Event | Callable[[], object]]:
        """Each event, and in between what must be waited for."""
        count = self._sound.count
        while not self._is_closed:
            is_over = not self._follows or self._is_job_over()
            yield from self._fresh()
            if is_over:
                return
            before = count
            yield lambda before=before: self._sound.wait(before, _LONG)  # type: ignore[misc]
            count = self._sound.count

    def _fresh(self) -> Iterator[Event]:
        """What came since last asked."""
        while not self._is_closed:
            self._check(*self._ends())
            rows = self._database.ask(_READ, [self.position, self._job, self._job, _BATCH])
            for event_id, at, subtype, job, body in rows:
                self.position = int(event_id)
                yield Event(self.position, int(at), str(subtype), str(job), as_object(json.loads(body)) or {})
            if len(rows) < _BATCH:
                return

    def _check(self, first: int, last: int) -> None:
        if not first <= self.position <= last:
            raise EventsGone(self.position, first=first, last=last)

    def _ends(self) -> tuple[int, int]:
        row = self._database.ask(_ENDS)[0]
        return int(row[0]), int(row[1])

    def _is_job_over(self) -> bool:
        return self._job is not None and all(bool(row[0]) for row in self._rows_of_job())

    def _rows_of_job(self) -> list[tuple[bool]]:
        return self._database.ask("SELECT is_final FROM job WHERE id = %s", [self._job])
