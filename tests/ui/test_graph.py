"""Where tasks stand in the graph."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasks.model import Task, TaskStatus
from taskyard.ui.graph import graph_positions


def tasks(*edges: tuple[str, str], alone: str = "", done: str = "") -> dict[str, Task]:
    ids = sorted({*alone, *(one for edge in edges for one in edge)})
    return {
        one: Task(
            one,
            one,
            status=TaskStatus.COMPLETED if one in done else TaskStatus.PENDING,
            blocked_by=tuple(a for a, b in edges if b == one),
            blocks=tuple(b for a, b in edges if a == one),
        )
        for one in ids
    }


@pytest.mark.req("U-04")
def test_a_level_is_how_many_steps_of_waiting_lie_before_a_task() -> None:
    found = graph_positions(tasks(("1", "2"), ("2", "3"), ("1", "3"), alone="4"))

    assert {one: place.level for one, place in found.items()} == {"1": 0, "2": 1, "3": 2, "4": 0}


@pytest.mark.req("U-04")
def test_a_task_stands_near_those_it_waits_for() -> None:
    found = graph_positions(tasks(("1", "6"), ("2", "5"), ("3", "4")))

    assert [found[one].rank for one in "654"] == [0, 1, 2]


@pytest.mark.req("U-04")
def test_the_longest_way_through_what_is_open_is_marked_and_nothing_else() -> None:
    chain = (("1", "2"), ("2", "3"), ("3", "4"), ("5", "4"))

    assert [one for one, place in graph_positions(tasks(*chain)).items() if place.is_critical] == ["1", "2", "3", "4"]
    assert [one for one, place in graph_positions(tasks(*chain, done="123")).items() if place.is_critical] == ["4", "5"]
    assert not any(place.is_critical for place in graph_positions(tasks(alone="12")).values())


@pytest.mark.req("U-04")
def test_trackers_have_no_place() -> None:
    hidden = Task("9", "tracker", metadata={"_internal": True})

    assert "9" not in graph_positions({"9": hidden, **tasks(("1", "2"))})


@pytest.mark.req("U-04")
@given(st.lists(st.tuples(st.sampled_from("12345678"), st.sampled_from("12345678")), max_size=20))
def test_every_task_has_a_place_of_its_own_also_in_circles(edges: list[tuple[str, str]]) -> None:
    found = graph_positions(tasks(*edges, alone="12345678"))

    assert len({(place.level, place.rank) for place in found.values()}) == len(found) == 8
