"""Every key is in the table, has words of its own, and leads to an action that is there."""

from __future__ import annotations

import re

import pytest

from taskyard.ui.tui.app import YardApp
from taskyard.ui.tui.keys import KEYS, PLACES, format_keys, help_lines, hints, keys_at

#: STYLE: what a person can press.
WANTED = "1 2 3 j k ↓ ↑ g G enter esc [ ] / n N a c s d b u r x m f w t y o Ctrl+P ? q"


def test_every_key_that_people_expect_is_there() -> None:
    there = {key for row in KEYS for key in format_keys(row.keys).split()}

    assert [key for key in WANTED.split() if key not in there] == []


def test_ids_and_keys_are_unique() -> None:
    keys = [key for row in KEYS for key in row.keys.split(",") if key]

    assert len({row.id for row in KEYS}) == len(KEYS)
    assert len(set(keys)) == len(keys)


def test_every_key_is_a_binding_with_an_id_and_leads_to_an_action() -> None:
    assert {getattr(binding, "id", None) for binding in YardApp.BINDINGS} == {row.id for row in KEYS}
    for row in KEYS:
        name = re.match(r"\w+", row.action)
        assert name is not None
        assert hasattr(YardApp, f"action_{name[0]}"), row.action
        assert set(row.places) <= set(PLACES)


@pytest.mark.parametrize("place", [place for place in PLACES if place])
def test_help_has_the_keys_of_its_place_first_and_those_of_everywhere(place: str) -> None:
    lines = ["".join(piece.text for piece in line).strip() for line in help_lines(place, {})]

    assert lines.index("") == sum(place in row.places for row in KEYS)
    assert any(line.endswith("Leave; jobs keep running") for line in lines)


def test_in_the_details_of_a_job_there_are_no_keys_of_tasks() -> None:
    assert "claim" in {row.id for row in keys_at("details", "task")}
    assert "claim" not in {row.id for row in keys_at("details", "job")}
    assert "stop" in {row.id for row in hints("details", "job")}
    assert "stop" not in {row.id for row in hints("details", "task")}


def test_help_shows_the_keys_as_they_are_set() -> None:
    lines = ["".join(piece.text for piece in line).split() for line in help_lines("jobs", {"stop": "ctrl+x,delete"})]

    assert ["Ctrl+X", "delete", "Stop"] in [line[:3] for line in lines]
