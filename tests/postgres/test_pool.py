"""Statements that are asked of a database: answered, tried again while it is away, refused in words."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from support.postgres import Server, server
from support.wait import until
from taskyard.core.system import process_alive, process_start
from taskyard.errors import BadValue, SchemaMismatch, StorageError, StoreAway
from taskyard.postgres.connection import Database, database

pytestmark = pytest.mark.req("X-01")


def asked_meanwhile(yard: Database, away: Server) -> list[object]:
    """What a statement answers that is asked while the server is away, and comes back."""
    found: list[object] = []
    asking = threading.Thread(target=lambda: found.extend(yard.ask("SELECT 2")))
    asking.start()
    until(lambda: yard.away_since is not None)
    away.start()
    asking.join(30)
    return found


def test_a_statement_is_answered(address: str) -> None:
    assert database(address).ask("SELECT %s + 1, %s", [1, "two"]) == [(2, "two")]


def test_statements_of_many_threads_share_few_connections(address: str) -> None:
    found: list[int] = []

    def ask() -> None:
        for _ in range(20):
            found.append(database(address).ask("SELECT pg_backend_pid()")[0][0])

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(found) == 400
    assert len(set(found)) <= 8


def test_a_transaction_is_made_whole_or_not_at_all(address: str) -> None:
    yard = database(address)
    yard.ask("CREATE TABLE kept (n integer)")

    def work(link: object) -> None:
        link.execute("INSERT INTO kept VALUES (1)")  # type: ignore[attr-defined]
        raise StorageError("here", "no")

    with pytest.raises(StorageError):
        yard.within(work)
    assert yard.ask("SELECT * FROM kept") == []
    yard.within(lambda link: link.execute("INSERT INTO kept VALUES (2)"))
    assert yard.ask("SELECT * FROM kept") == [(2,)]


def test_a_connection_that_broke_while_it_lay_about_is_replaced_at_once(address: str) -> None:
    yard = Database(address, patience=0)
    pid = yard.ask("SELECT pg_backend_pid()")[0][0]
    other = Database(address)
    other.ask("SELECT pg_terminate_backend(%s)", [pid])

    assert yard.ask("SELECT 1") == [(1,)]
    yard.close()
    other.close()


def test_a_server_that_comes_back_is_asked_again() -> None:
    with server() as made:
        yard = Database(made.address(), patience=30)
        yard.ask("SELECT 1")
        made.stop()

        assert asked_meanwhile(yard, made) == [(2,)]

        yard.close()


def test_a_server_that_is_away_is_named_without_its_password(tmp_path: object) -> None:
    yard = Database(f"postgresql://ada:geheim@/yard?host={tmp_path}", patience=0.2)

    with pytest.raises(StoreAway, match="cannot be reached") as caught:
        yard.ask("SELECT 1")

    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(caught.value.__dict__)
    assert str(tmp_path) in caught.value.where
    assert yard.away_since is not None


def test_an_address_that_cannot_be_is_refused_without_its_password() -> None:
    with pytest.raises(BadValue) as caught:
        database("postgresql://ada:geheim@host:port/x?nonsense=1")

    assert "geheim" not in str(caught.value)


def test_what_the_server_will_never_do_is_not_tried_again(postgres: Server) -> None:
    yard = Database(postgres.address("nowhere"), patience=30)

    with pytest.raises(StorageError, match='"nowhere" does not exist'):
        yard.ask("SELECT 1")
    with pytest.raises(SchemaMismatch, match="taskyard db upgrade"):
        Database(postgres.address("postgres")).ask("SELECT 1")


def test_a_forked_child_leaves_its_parents_connections_alone(address: str) -> None:
    yard = database(address)
    pid = yard.ask("SELECT pg_backend_pid()")[0][0]
    child = os.fork()
    if not child:
        answered = yard.ask("SELECT pg_backend_pid()")[0][0] != pid
        yard.close()
        os._exit(0 if answered else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    assert yard.ask("SELECT pg_backend_pid()")[0][0] == pid


def test_a_client_that_falls_silent_in_a_transaction_keeps_nobody_waiting(address: str) -> None:
    assert database(address).ask("SHOW idle_in_transaction_session_timeout") == [("5s",)]
    assert database(address).ask("SHOW lock_timeout") == [("10s",)]
    assert database(address).ask("SHOW statement_timeout") == [("30s",)]


def test_a_crash_of_the_server_is_survived() -> None:
    with server() as made:
        yard = Database(made.address(), patience=30)
        yard.ask("CREATE TABLE kept (n integer)")
        ours = yard.ask("SELECT pg_backend_pid()")[0][0]
        born = process_start(ours)
        made.stop(signal.SIGKILL)
        until(lambda: not process_alive(ours, born))  # what a server started outlives it for a moment, and answers

        assert asked_meanwhile(yard, made) == [(2,)]

        assert yard.ask("SELECT count(*) FROM kept") == [(0,)]
        yard.close()
