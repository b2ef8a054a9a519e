"""A connection on which the same statements are asked again and again."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator

import psycopg
import pytest

from support.wait import until
from taskyard.postgres.connection import PreparedConnection, connect

pytestmark = pytest.mark.req("X-01")


@pytest.fixture
def line(address: str) -> Iterator[PreparedConnection]:
    made = PreparedConnection(connect(address))
    yield made
    made.link.close()


def test_values_go_there_and_come_back_as_the_driver_has_them(line: PreparedConnection) -> None:
    values = [1, 2**40, "zwölf", None, True, [1, 2], ["a", None], uuid.UUID(int=7), 0.5]
    asked = "SELECT %s::int, %s::bigint, %s::text, %s::text, %s::bool, %s::bigint[], %s::text[], %s::uuid, %s::float8"
    assert line.ask(asked, values) == [tuple(values)]
    assert line.ask("SELECT 1 WHERE false") == []
    assert line.ask("CREATE TABLE one (n integer)") == []
    assert line.is_idle


def test_a_statement_is_prepared_once_and_again_for_values_of_another_type(line: PreparedConnection) -> None:
    for value in (1, 2, 3, 2**40):
        assert line.ask("SELECT %s + 1", [value]) == [(value + 1,)]
    assert line.ask("SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT $1 + 1'") == [(2,)]


def test_what_is_larger_than_any_buffer_gets_there_and_back(line: PreparedConnection) -> None:
    large = "x" * 5_000_000
    assert line.ask("SELECT %s::text, length(%s)", [large, large]) == [(large, len(large))]


def test_after_a_refusal_the_next_is_answered(line: PreparedConnection) -> None:
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            line.ask("SELECT 1 / %s", [0])
        with pytest.raises(psycopg.errors.UndefinedTable):
            line.ask("SELECT * FROM nowhere")
        with pytest.raises(psycopg.DataError):
            line.ask("SELECT %s::text", ["a\0b"])
    assert line.ask("SELECT 1") == [(1,)]


def test_who_is_cut_off_is_told_why(line: PreparedConnection, address: str) -> None:
    (pid,) = line.ask("SELECT pg_backend_pid()")[0]
    with connect(address) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
    with pytest.raises(psycopg.OperationalError, match="terminat"):
        line.ask("SELECT 1")
    assert line.link.closed
    assert not line.is_idle


class Interrupted(Exception):
    """What the signal raises."""


def test_a_signal_interrupts_the_wait_and_the_server_stops_as_well(line: PreparedConnection, address: str) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    with connect(address) as other:
        running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'"

        def is_running() -> bool:
            row = other.execute(running).fetchone()
            return row is not None and row[0] > 0

        def kill_when_it_runs() -> None:
            until(is_running)
            os.kill(os.getpid(), signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, interrupt)
        killer = threading.Thread(target=kill_when_it_runs)
        began = time.monotonic()
        try:
            killer.start()
            with pytest.raises(Interrupted):
                line.ask("SELECT pg_sleep(25)")
        finally:
            signal.signal(signal.SIGUSR1, before)
            killer.join()
        assert time.monotonic() - began < 20
        until(lambda: not is_running())
    assert not line.is_idle  # nobody takes it for one that may be used again
