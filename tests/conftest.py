"""
Every test alone with itself: its own home, its own state, and nothing of the person who runs it.

Property tests run by profile: `dev` (fewer examples, new ones each time), `ci` (the same examples
each time; chosen by CI=1), `soak` (many; chosen by TASKYARD_SOAK=1).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from support import yards
from support.repo import SOURCE
from support.scale import FULL

if TYPE_CHECKING:
    from support.postgres import Server

#: Variables that would bring the outside in. TASKYARD_SOAK stays: it is ours, and tests read it.
OUTSIDE = (
    "TASKYARD_", "CLAUDE_", "CLAUDECODE", "CODEX_", "GEMINI_", "OPENAI_", "ANTHROPIC_", "GOOGLE_", "XDG_", "GIT_",
    "PG", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS",
)  # fmt: skip

# Thousands of processes are started here: what they import is compiled once, also where Python is told not to.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No deadlines: a loaded machine is slow, not wrong. The fixtures below are made once per test, not
# per example, which is what a property test of a pure function wants.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
settings.register_profile("dev", _COMMON, max_examples=50)
settings.register_profile("ci", _COMMON, max_examples=100, derandomize=True, database=None)
settings.register_profile("soak", _COMMON, max_examples=5_000)
settings.load_profile("soak" if FULL else "ci" if os.environ.get("CI") else "dev")


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, beside `tmp_path`, and no variable that points anywhere else."""
    for name in list(os.environ):
        if name.startswith(OUTSIDE) and name != "TASKYARD_SOAK":
            monkeypatch.delenv(name)
    for name in ("COLUMNS", "LINES"):
        os.unsetenv(name)  # readline sets them behind Python's back, and children inherit that
    home = tmp_path.with_name(f"{tmp_path.name}-home")
    home.mkdir(mode=0o700)
    for name, folder in {
        "HOME": "",
        "TASKYARD_HOME": "taskyard",
        "CLAUDE_CONFIG_DIR": ".claude",
        "XDG_CONFIG_HOME": ".config",
        "XDG_DATA_HOME": ".local/share",
        "XDG_STATE_HOME": ".local/state",
        "XDG_CACHE_HOME": ".cache",
        "XDG_RUNTIME_DIR": "run",
    }.items():
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))  # children import what we test, wherever they run
    return home


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's package that adds a kind of job, installed for every process that a test starts."""
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real PostgreSQL, for as long as the tests run."""
    from support.postgres import server

    with server() as made:
        yield made


@pytest.fixture
def address(postgres: Server) -> Iterator[str]:
    """The address of a database of the test's own, with our tables in it."""
    from taskyard.postgres import connection, heartbeat

    made = postgres.new_database()
    yield made
    heartbeat.stop_heartbeat(made)
    connection.close_database(made)


@pytest.fixture(scope="session")
def one_database(postgres: Server) -> Iterator[Callable[[], str]]:
    """A database that many tests use one after the other: empties it, and answers with its address."""
    from psycopg import connect, sql

    from taskyard.postgres import connection, heartbeat

    made = postgres.new_database()
    with connect(made, autocommit=True) as link:
        rows = link.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'taskyard'").fetchall()
        tables = [sql.Identifier("taskyard", name) for (name,) in rows]
        count = sql.SQL("SELECT FROM {} LIMIT 1")
        filled = [table for table in tables if not link.execute(count.format(table)).rowcount]
        empty = sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(table) for table in filled)

        def emptied() -> str:
            heartbeat.stop_heartbeat(made)
            link.execute(empty)
            return made

        yield emptied
    heartbeat.stop_heartbeat(made)
    connection.close_database(made)


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
