"""What a relay says again and again: which jobs of its home live, and who of its home has which name."""

from __future__ import annotations

from taskyard import instances
from taskyard.disk.processes import this_host
from taskyard.errors import TaskyardError
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.recipients import box_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.database.pool import Database
    from taskyard.relay.host import Host

#: A job holds what is claimed inside it for as long as it lives.
_RENEW = """
    INSERT INTO instance AS i (id, host, until)
    SELECT n, %s, clock_timestamp() + %s * interval '1 second' FROM unnest(%s::text[]) AS n ORDER BY n
    ON CONFLICT (id) DO UPDATE SET until = greatest(i.until, excluded.until)
"""

_NAMES = """
    INSERT INTO receiver (instance, box)
    SELECT n.instance, n.box FROM unnest(%s::text[], %s::text[]) AS n(instance, box)
    WHERE EXISTS (SELECT FROM instance i WHERE i.id = n.instance) ORDER BY n.instance
    ON CONFLICT (instance) DO UPDATE SET box = excluded.box
"""

#: What is over and done with; half an hour is as long as anybody looks for an answer, a month for a notice.
_SWEEP = """
    WITH answered AS (
        DELETE FROM request WHERE state IN ('done', 'withdrawn') AND changed < clock_timestamp() - interval '30 min'
    ), told AS (
        DELETE FROM notice WHERE state = 'read' AND changed < clock_timestamp() - interval '30 days'
    )
    DELETE FROM receiver r WHERE NOT EXISTS (SELECT FROM instance i WHERE i.id = r.instance)
"""

_FAREWELL = "UPDATE host SET until = least(until, clock_timestamp()) WHERE id = %s"


def renew(host: Host, database: Database, living: Iterable[str], silence: float) -> None:
    """Have everybody believe for `silence` seconds more in what lives here by the kernel's word."""
    jobs = [job_id for job_id in living if keeper_of(JobFolder(host.home, job_id)) is not None]
    if jobs:
        database.ask(_RENEW, [this_host(), silence, jobs])
    names = {record.id: box_name(record.name) for record in instances.living(host.home)}
    if names:
        database.ask(_NAMES, [list(names), list(names.values())])


def sweep(database: Database) -> None:
    """Remove what is over and done with, of every host."""
    database.ask(_SWEEP)


def farewell(host: Host, database: Database) -> None:
    """Say that nobody answers here any more, so that nobody waits for it."""
    try:
        database.ask(_FAREWELL, [host.id], patience=0.0)
    except TaskyardError:
        pass  # they will find out
