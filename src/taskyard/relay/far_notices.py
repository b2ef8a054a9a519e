"""Notices in the database, beside taking and acknowledging them: filed as read, looked up by id or job."""

from __future__ import annotations

import json

from taskyard.relay import spool
from taskyard.runtime import outboxes
from taskyard.runtime.notice import Notice, from_news
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.database.pool import Database
    from taskyard.relay.host import Host
    from taskyard.runtime.model import Job

_READ = """
    UPDATE notice SET state = 'read', holder = NULL, until = NULL, op = NULL, changed = clock_timestamp()
    WHERE job = %s AND state <> 'read' RETURNING id
"""

_COLUMNS = "SELECT body, is_again, state, host, recipient FROM notice "


class Issued(NamedTuple):
    """A notice that the database has."""

    notice: Notice
    state: str  #: stored, delivered, read
    host: str  #: the id of the home that issued it


def read_about(host: Host, database: Database, job: Job, here: Sequence[str]) -> tuple[str, ...]:
    """Have everything that is told about a job count as read, also what was filed `here` before it was sent."""
    filed = [notice for notice_id in here if (notice := outboxes.with_id(host.home, notice_id)) is not None]
    spool.put_as_read(host, database, filed)
    return (*here, *(str(row[0]) for row in database.ask(_READ, [job.id]) if row[0] not in here))


def with_id(database: Database, notice_id: str) -> Issued | None:
    """The notice with this id; None if none was ever brought here."""
    return next(iter(_issued(database.ask(_COLUMNS + "WHERE id = %s", [notice_id]))), None)


def of_job(database: Database, job_id: str) -> list[Issued]:
    """Every notice of a job: waiting, in somebody's hands, or read."""
    return _issued(database.ask(_COLUMNS + "WHERE job = %s ORDER BY at, id", [job_id]))


def notice_in(body: str, *, is_again: bool) -> Notice | None:
    """The notice in what was brought here; None if it is none."""
    try:
        news = as_object((as_object(json.loads(body)) or {}).get("news"))
    except (ValueError, RecursionError):
        return None
    notice = None if news is None else from_news(news)
    return None if notice is None else notice._replace(redelivered=is_again)


def _issued(rows: Sequence[Sequence[object]]) -> list[Issued]:
    found = [(notice_in(str(row[0]), is_again=bool(row[1])), row) for row in rows]
    return [Issued(notice, str(row[2]), str(row[3])) for notice, row in found if notice is not None]
