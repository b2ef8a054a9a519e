from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.a2a_places import OurServer, Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """A home for servers that a test starts and ends; jobs that outlive their server are stopped."""
    found = Yard(tmp_path)
    yield found
    found.stop_jobs()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurServer]:
    """One server for the tests of a file: each has contexts and messages of its own."""
    yard = Yard(tmp_path_factory.mktemp("offered"))
    with yard.serve() as found:
        yield found
    yard.stop_jobs()
