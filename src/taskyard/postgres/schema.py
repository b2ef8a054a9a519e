"""The database schema: numbered migrations (`migrations/0001_….sql`), each run once, under one lock.

A client works with exactly the version it knows: an older database is upgraded first (`taskyard db upgrade`), a
newer one is refused. Released migrations never change; a change is another migration.
"""

from __future__ import annotations

from taskyard.core.values import NamedTuple
from taskyard.errors import SchemaMismatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.postgres.connection import PgConnection

#: Schema of our tables, in a database that may hold others.
SCHEMA = "taskyard"

#: Advisory lock for upgrades; an arbitrary number.
_UPGRADE_LOCK = 7_265_834_201

_TABLE = f"{SCHEMA}.migration"


class Migration(NamedTuple):
    """One migration."""

    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """Return every migration of this version, in order."""
    from importlib.resources import files

    found = [
        Migration(int(entry.name[:4]), entry.name[5:-4], entry.read_text(encoding="utf-8"))
        for entry in files("taskyard.postgres").joinpath("migrations").iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)


def expected_version() -> int:
    """Return the schema version this Taskyard works with."""
    from importlib.resources import files

    names = (entry.name for entry in files("taskyard.postgres").joinpath("migrations").iterdir())
    return max(int(name[:4]) for name in names if name.endswith(".sql"))


def version(link: PgConnection) -> int:
    """Return the schema version of a database; 0 if there are no tables."""
    row = link.execute("SELECT to_regclass(%s) IS NOT NULL", [_TABLE]).fetchone()
    if row is None or not row[0]:
        return 0
    row = link.execute(f"SELECT coalesce(max(number), 0) FROM {_TABLE}").fetchone()  # noqa: S608  # our own name
    return int(row[0]) if row is not None else 0


def check_version(link: PgConnection, where: str) -> None:
    """Refuse a database of another version.

    Raises:
        SchemaMismatch: its tables are older, newer, or not there.
    """
    found, ours = version(link), expected_version()
    if found != ours:
        raise SchemaMismatch(where, found=found, known=ours)


def upgrade(link: PgConnection, where: str, report: Callable[[Migration], None] = lambda _: None) -> list[Migration]:
    """Run the missing migrations in order and return them. Concurrent upgrades wait.

    Raises:
        SchemaMismatch: the tables are newer than this version.
    """
    taken: list[Migration] = []
    link.execute("SET lock_timeout = 0")
    link.execute("SET statement_timeout = 0")  # a migration may rewrite large tables
    link.execute("SELECT pg_advisory_lock(%s)", [_UPGRADE_LOCK])
    try:
        found, ours = version(link), migrations()
        if found > ours[-1].number:
            raise SchemaMismatch(where, found=found, known=ours[-1].number)
        for step in ours:
            if step.number > found:
                report(step)
                _apply(link, step)
                taken.append(step)
    finally:
        link.execute("SELECT pg_advisory_unlock(%s)", [_UPGRADE_LOCK])
    return taken


def _apply(link: PgConnection, step: Migration) -> None:
    with link.transaction():
        link.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        link.execute(
            f"CREATE TABLE IF NOT EXISTS {_TABLE}"
            " (number integer PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())"
        )
        link.execute(step.sql.encode())
        link.execute(f"INSERT INTO {_TABLE} (number, name) VALUES (%s, %s)", [step.number, step.name])  # noqa: S608
