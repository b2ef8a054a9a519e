"""Lists in files, and in a database: what the verbs promise, they promise wherever the tasks are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support import yards

if TYPE_CHECKING:
    from support.postgres import Server


@pytest.fixture(scope="session")
def one_database(postgres: Server) -> str:
    """A database that many tests use one after the other."""
    return postgres.new_database()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have whoever uses `store` run on each; what is `in_files` looks at the files themselves."""
    if "store" in metafunc.fixturenames:
        in_files = metafunc.definition.get_closest_marker("in_files") is not None
        metafunc.parametrize("store", ["files"] if in_files else ["files", "postgresql"], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have `open_yard` open lists there; they are empty."""
    if request.param == "files":
        yield "files"
        return
    from taskyard.database.pool import database

    address: str = request.getfixturevalue("one_database")
    database(address).ask("DELETE FROM list")
    monkeypatch.setattr(yards, "STORE", address)
    yield address
