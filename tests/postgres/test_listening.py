"""Hearing of others' changes: at once, by name, and nothing missed while the link was broken."""

from __future__ import annotations

import pytest

from support.postgres import server
from support.wait import until
from taskyard.postgres.connection import Database, database

pytestmark = pytest.mark.req("X-01")


def test_what_others_tell_is_heard(address: str) -> None:
    listener = database(address).listener
    subscription, other = listener.subscription("news"), listener.subscription("else")
    began, silent = subscription.wait(0, 10), other.wait(0, 10)
    assert (began, silent) == (1, 1), "what is heard begins with a ring"

    database(address).ask("SELECT pg_notify('news', '')")

    assert subscription.wait(began, 10) == began + 1
    assert other.wait(silent, 0.01) == silent
    assert listener.is_connected


def test_a_wait_ends_in_time_without_a_sound(address: str) -> None:
    subscription = database(address).listener.subscription("news")
    count = subscription.wait(0, 10)

    assert subscription.wait(count, 0.01) == count


def test_a_link_that_is_made_again_rings_since_something_may_have_been_missed() -> None:
    with server() as made:
        yard = Database(made.address(), patience=30)
        subscription = yard.listener.subscription("news")
        count = subscription.wait(0, 10)
        made.stop()
        until(lambda: not yard.listener.is_connected)
        assert "cannot be reached" in yard.listener.why or yard.listener.why
        made.start()
        until(lambda: yard.listener.is_connected)

        count = subscription.wait(count, 10)
        yard.ask("SELECT pg_notify('news', '')")
        assert subscription.wait(count, 10) > count
        yard.close()


def test_something_is_called_each_time_and_no_longer_afterwards(address: str) -> None:
    calls: list[str] = []
    subscription = database(address).listener.subscription("news")
    with subscription.callback(lambda: calls.append("rang")):
        assert calls, "what happened before may not have been heard"
        subscription.wait(0, 10)
        before = len(calls)
        database(address).ask("SELECT pg_notify('news', '')")
        until(lambda: len(calls) == before + 1)
    count = subscription.count
    database(address).ask("SELECT pg_notify('news', '')")
    subscription.wait(count, 10)

    assert len(calls) == before + 1


def test_closing_wakes_whoever_waits(address: str) -> None:
    yard = Database(address)
    subscription = yard.listener.subscription("news")
    count = subscription.wait(0, 10)
    yard.close()

    assert subscription.count > count
