"""Connections that are not to be had, and databases that keep their texts in other ways."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

import taskyard
from support.cli import taskyard as command
from support.postgres import Server
from taskyard.errors import StorageError, StoreAway
from taskyard.postgres.connection import translate_error

pytestmark = pytest.mark.req("X-01")


def asked(server: Server, name: str, *statements: str) -> None:
    with psycopg.connect(server.address(name), autocommit=True) as link:
        for statement in statements:
            link.execute(statement.encode())


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_texts_are_the_same_whatever_the_database_keeps_them_in(postgres: Server, encoding: str) -> None:
    name = f"in_{encoding.lower()}"
    made = sql.SQL("CREATE DATABASE {} ENCODING {} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with psycopg.connect(postgres.address("postgres"), autocommit=True) as link:
        link.execute(made.format(sql.Identifier(name), sql.Literal(encoding)))
    assert command("db", "upgrade", "--store", postgres.address(name)).code == 0

    with taskyard.open(store=postgres.address(name), list="x", agent="ada") as yard:
        yard.tasks.create("Zwölf ☃", description="日本")
        assert yard.tasks.claim_next() is not None
        assert [(task.subject, task.description, task.owner) for task in yard.tasks.list()] == [
            ("Zwölf ☃", "日本", "ada")
        ]


def test_what_a_role_may_not_do_is_said_in_words_and_with_what_to_do(postgres: Server, address: str) -> None:
    name = address.split("?")[0].rpartition("/")[2]
    asked(postgres, name, "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
    as_guest = address.replace("postgres@", "guest@")

    for words in (["db", "status"], ["db", "upgrade"]):
        ran = command(*words, "--store", as_guest)
        assert ran.code == 1
        assert "permission denied" in ran.err and "GRANT" in ran.err
        assert "Traceback" not in ran.err


def test_a_role_that_may_only_look_is_told_so(postgres: Server, address: str) -> None:
    name = address.split("?")[0].rpartition("/")[2]
    asked(
        postgres, name,
        "DROP ROLE IF EXISTS looker", "CREATE ROLE looker LOGIN", "GRANT USAGE ON SCHEMA taskyard TO looker",
        "GRANT SELECT ON ALL TABLES IN SCHEMA taskyard TO looker",
    )  # fmt: skip
    as_looker = address.replace("postgres@", "looker@")

    ran = command("db", "status", "--store", as_looker)

    assert (ran.code, ran.out.split()[0]) == (1, "read_only")
    assert command("db", "status", "--store", address).code == 0
    with taskyard.open(store=as_looker, list="x") as yard, pytest.raises(StorageError, match="GRANT"):
        yard.tasks.create("One")


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ('connection to server on socket "x" failed: fe_sendauth: no password supplied', "~/.pgpass"),
        ('connection failed: FATAL:  password authentication failed for user "ada"', "PGPASSWORD"),
        ('connection failed: FATAL:  database "yrad" does not exist', "createdb"),
        ("Servname not supported for ai_socktype", ""),
    ],
)
def test_what_will_not_pass_is_no_outage(said: str, advice: str) -> None:
    found = translate_error("postgresql://ada@db.example/yard", psycopg.OperationalError(said))

    assert isinstance(found, StorageError)
    assert advice in str(found)


def test_what_passes_is_an_outage() -> None:
    refused = psycopg.OperationalError("connection refused")
    starting = psycopg.OperationalError("FATAL:  the database system is starting up")

    for error in (refused, starting):
        assert isinstance(translate_error("postgresql://ada@db.example/yard", error), StoreAway)
