"""What tests of the stores in PostgreSQL share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cutting_proxy import Proxy, proxy
from support.postgres import Server
from taskyard.postgres import heartbeat
from taskyard.postgres.connection import Database


@pytest.fixture
def leaky(postgres: Server, address: str) -> Iterator[tuple[Proxy, Database]]:
    """A way to a database of the test's own that can lose answers."""
    name = address.split("?")[0].rpartition("/")[2]
    with proxy(postgres.folder) as way:
        found = Database(f"postgresql://postgres@127.0.0.1:{way.port}/{name}?sslmode=disable", patience=10)
        yield way, found
        heartbeat.stop_heartbeat(found.address)
        found.close()
