"""What a process keeps alive in a database: believed in while it lives, and not much longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from support.postgres import server
from support.wait import until
from taskyard.postgres.connection import Database, database
from taskyard.postgres.heartbeat import process_heartbeat, stop_heartbeat

pytestmark = pytest.mark.req("X-01")

#: Seconds of silence that a test can wait for.
SHORT = 0.6

KEEPER = f"""
import sys, time
from taskyard.postgres.connection import database
from taskyard.postgres.heartbeat import process_heartbeat as heart
heart(database(sys.argv[1])).keep("ada", silence={SHORT})
print("kept", flush=True)
sys.stdin.read()
"""


def believed(yard: Database) -> list[str]:
    """Who is believed to live."""
    return [row[0] for row in yard.ask("SELECT id FROM instance WHERE until >= clock_timestamp() ORDER BY id")]


def beats(yard: Database, instance: str) -> object:
    """Until when an instance is believed in: another moment after each beat."""
    return yard.ask("SELECT until FROM instance WHERE id = %s", [instance])[0][0]


def keeper(address: str) -> subprocess.Popen[bytes]:
    """Another process that keeps "ada" until its input ends."""
    started = subprocess.Popen([sys.executable, "-c", KEEPER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert started.stdout is not None
    assert started.stdout.readline() == b"kept\n"
    return started


def test_what_is_kept_is_renewed_again_and_again(address: str) -> None:
    yard = database(address)
    process_heartbeat(yard).keep("ada", silence=SHORT)
    process_heartbeat(yard).keep("bob", silence=30)

    seen: set[object] = set()

    def many() -> bool:
        seen.add(beats(yard, "bob"))
        return len(seen) > 6

    until(many)

    assert believed(yard) == ["ada", "bob"]


def test_what_is_let_go_of_is_gone_at_once(address: str) -> None:
    yard = database(address)
    process_heartbeat(yard).keep("ada")
    process_heartbeat(yard).keep("bob")

    process_heartbeat(yard).let_go("ada")

    assert believed(yard) == ["bob"]


def test_who_is_killed_is_gone_after_its_silence(address: str) -> None:
    yard = database(address)
    other = keeper(address)
    try:
        assert believed(yard) == ["ada"]
    finally:
        other.kill()
        other.communicate()

    until(lambda: believed(yard) == [], timeout=5)
    assert yard.ask("SELECT id FROM instance") == [("ada",)]


def test_who_ends_in_order_is_gone_at_once(address: str) -> None:
    other = keeper(address)

    other.communicate(timeout=10)

    assert database(address).ask("SELECT id FROM instance") == []


def test_a_stopped_process_that_goes_on_is_believed_in_again(address: str) -> None:
    yard = database(address)
    other = keeper(address)
    try:
        other.send_signal(signal.SIGSTOP)
        until(lambda: believed(yard) == [], timeout=5)
        other.send_signal(signal.SIGCONT)
        until(lambda: believed(yard) == ["ada"], timeout=5)
    finally:
        other.kill()
        other.communicate()


def test_a_forked_child_keeps_nothing_of_its_parents(address: str) -> None:
    yard = database(address)
    process_heartbeat(yard).keep("ada", silence=SHORT)

    child = os.fork()
    if child == 0:
        process_heartbeat(yard).let_go("ada")
        process_heartbeat(yard).keep("bob", silence=30)
        os._exit(0)
    os.waitpid(child, 0)

    assert believed(yard) == ["ada", "bob"]


def test_a_server_that_was_away_hears_of_it_again() -> None:
    with server() as own:
        yard = database(own.address(), patience=30)
        try:
            process_heartbeat(yard).keep("ada", silence=SHORT)
            own.stop(signal.SIGINT)
            own.start()
            last = beats(yard, "ada")
            until(lambda: beats(yard, "ada") != last)
        finally:
            stop_heartbeat(own.address())


def test_those_who_died_long_ago_are_forgotten(address: str) -> None:
    yard = database(address)
    yard.ask("INSERT INTO instance VALUES ('old', 'h', clock_timestamp() - interval '2 hours')")
    yard.ask("INSERT INTO instance VALUES ('new', 'h', clock_timestamp() - interval '2 minutes')")

    process_heartbeat(yard).keep("ada", silence=SHORT)

    until(lambda: yard.ask("SELECT id FROM instance ORDER BY id") == [("ada",), ("new",)])
