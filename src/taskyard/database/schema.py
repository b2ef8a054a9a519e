"""
The tables, in numbered steps: `migrations/0001_….sql` and so on, each run once, all under one lock.

A client works with exactly the version it knows: an older database is upgraded first (`taskyard db upgrade`), a newer
one is refused. Steps are never changed once they are released; a change is another step.
"""

from __future__ import annotations

from taskyard.errors import SchemaMismatch
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.database.connection import Link

#: Where our tables are in a database that may hold others.
NAME = "taskyard"

#: The advisory lock under which a database is upgraded; any number that is ours.
_LOCK = 7_265_834_201

_BOOK = f"{NAME}.migration"


class Step(NamedTuple):
    """One migration."""

    number: int
    name: str
    sql: str


def steps() -> list[Step]:
    """Every migration this version has, in order."""
    from importlib.resources import files

    found = [
        Step(int(entry.name[:4]), entry.name[5:-4], entry.read_text(encoding="utf-8"))
        for entry in files("taskyard.database").joinpath("migrations").iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)


def known() -> int:
    """The version this Taskyard works with."""
    from importlib.resources import files

    names = (entry.name for entry in files("taskyard.database").joinpath("migrations").iterdir())
    return max(int(name[:4]) for name in names if name.endswith(".sql"))


def version(link: Link) -> int:
    """The version of the tables in a database; 0 if there are none."""
    row = link.execute("SELECT to_regclass(%s) IS NOT NULL", [_BOOK]).fetchone()
    if row is None or not row[0]:
        return 0
    row = link.execute(f"SELECT coalesce(max(number), 0) FROM {_BOOK}").fetchone()  # noqa: S608  # our own name
    return int(row[0]) if row is not None else 0


def check(link: Link, where: str) -> None:
    """Refuse a database of another version.

    Raises:
        SchemaMismatch: its tables are older, newer, or not there.
    """
    found, ours = version(link), known()
    if found != ours:
        raise SchemaMismatch(where, found=found, known=ours)


def upgrade(link: Link, where: str, report: Callable[[Step], None] = lambda _: None) -> list[Step]:
    """Bring the tables to our version, one step after the other; those that were taken. Whoever comes meanwhile waits.

    Raises:
        SchemaMismatch: they are newer than this version.
    """
    taken: list[Step] = []
    link.execute("SET lock_timeout = 0")
    link.execute("SET statement_timeout = 0")  # a step may rewrite what is large
    link.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
    try:
        found, ours = version(link), steps()
        if found > ours[-1].number:
            raise SchemaMismatch(where, found=found, known=ours[-1].number)
        for step in ours:
            if step.number > found:
                report(step)
                _take(link, step)
                taken.append(step)
    finally:
        link.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
    return taken


def _take(link: Link, step: Step) -> None:
    with link.transaction():
        link.execute(f"CREATE SCHEMA IF NOT EXISTS {NAME}")
        link.execute(
            f"CREATE TABLE IF NOT EXISTS {_BOOK}"
            " (number integer PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())"
        )
        link.execute(step.sql.encode())
        link.execute(f"INSERT INTO {_BOOK} (number, name) VALUES (%s, %s)", [step.number, step.name])  # noqa: S608
