"""Snapshots of lists in a database: as they change, and while it is away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import taskyard
from support.gate import Gate, gate
from support.wait import until
from taskyard.ui.live import LiveFeed, LiveView

pytestmark = pytest.mark.req("X-01", "L-18")


@pytest.fixture
def door(address: str) -> Iterator[Gate]:
    with gate(address) as made:
        yield made


@pytest.fixture
def view(door: Gate) -> Iterator[LiveView]:
    with taskyard.open(store=door.address, list="plan", agent="ada") as yard, LiveFeed(yard) as live:
        yield live.watch()


def add(address: str, subject: str, *, to: str = "plan") -> None:
    with taskyard.open(store=address, list=to) as yard:
        yard.tasks.create(subject)


def subjects(view: LiveView) -> list[str]:
    return [task.subject for task in view.snapshot.tasks]


def test_what_others_do_is_shown_at_once_and_so_are_new_lists(address: str, view: LiveView) -> None:
    assert (subjects(view), view.snapshot.problems) == ([], ())

    add(address, "One")
    until(lambda: subjects(view) == ["One"], timeout=2)
    add(address, "Two")
    until(lambda: subjects(view) == ["One", "Two"], timeout=2)
    add(address, "Else", to="other")
    until(lambda: view.snapshot.lists == ("other", "plan"), timeout=2)


def test_a_database_that_goes_away_is_shown_as_that_and_comes_back_by_itself(
    address: str, door: Gate, view: LiveView
) -> None:
    add(address, "One")
    until(lambda: subjects(view) == ["One"])

    door.shut()
    until(lambda: view.snapshot.is_disconnected, timeout=3)
    [problem] = view.snapshot.problems
    assert problem.startswith("Disconnected from the database ")
    assert "trying again" in problem
    assert subjects(view) == ["One"], "what was known is no longer shown"
    add(address, "Two")
    door.open()

    until(lambda: subjects(view) == ["One", "Two"])
    until(lambda: view.snapshot.problems == () and not view.snapshot.is_disconnected)


def test_a_list_that_is_first_looked_at_while_the_database_is_away_is_there_when_it_is_back(
    address: str, door: Gate
) -> None:
    add(address, "One")
    door.shut()
    with taskyard.open(store=door.address, list="plan") as yard, LiveFeed(yard) as live:
        view = live.watch()
        assert view.snapshot.is_disconnected
        door.open()

        until(lambda: subjects(view) == ["One"])
        until(lambda: not view.snapshot.is_disconnected)
