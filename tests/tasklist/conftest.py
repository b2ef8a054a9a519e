"""Lists in files, and in a database: what the verbs promise, they promise wherever the tasks are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from support import yards

if TYPE_CHECKING:
    from support.postgres import Server


@pytest.fixture(scope="session")
def one_database(postgres: Server) -> Iterator[Callable[[], str]]:
    """A database that many tests use one after the other: empties it, and answers with its address."""
    from psycopg import connect, sql

    from taskyard import heart
    from taskyard.database import pool

    made = postgres.new_database()
    with connect(made, autocommit=True) as link:
        rows = link.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'taskyard'").fetchall()
        tables = [sql.Identifier("taskyard", name) for (name,) in rows]
        count = sql.SQL("SELECT FROM {} LIMIT 1")
        filled = [table for table in tables if not link.execute(count.format(table)).rowcount]
        empty = sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(table) for table in filled)

        def emptied() -> str:
            heart.forget(made)
            link.execute(empty)
            return made

        yield emptied
    heart.forget(made)
    pool.forget(made)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have whoever uses `kept_in` run on each; what is `in_files` looks at the files themselves."""
    if "kept_in" in metafunc.fixturenames:
        in_files = metafunc.definition.get_closest_marker("in_files") is not None
        metafunc.parametrize("kept_in", ["files"] if in_files else ["files", "postgresql"], indirect=True)


@pytest.fixture
def kept_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have `open_yard` open lists there; they are empty."""
    if request.param == "files":
        return "files"
    address: str = request.getfixturevalue("one_database")()
    monkeypatch.setattr(yards, "STORE", address)
    return address
