"""The list in PostgreSQL keeps every promise that the list in files does."""

from __future__ import annotations

import itertools

import pytest

from taskyard.config import Settings
from taskyard.postgres.connection import database
from taskyard.postgres.task_store import PostgresStore
from taskyard.testing import check_task_store


@pytest.mark.req("X-01", "L-03", "L-06")
def test_the_store_in_postgresql_keeps_every_promise(address: str) -> None:
    names = (f"list-{number}" for number in itertools.count())

    check_task_store(lambda: PostgresStore(database(address), next(names), Settings(), alive=lambda _: None))
