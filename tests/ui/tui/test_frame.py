"""The footer: the pill, and the keys that work now, as far as there is room."""

from __future__ import annotations

import pytest

from support.tui import scene
from taskyard.core.text import Style, width
from taskyard.ui.jobs import StatusSummary
from taskyard.ui.snapshot import build_snapshot
from taskyard.ui.tui.frame import footer, header

BUSY = StatusSummary("2 shells", waits="! 1 waits", flash="✗ make lint", flash_token="fail", running=2)


def line(pill: StatusSummary, place: str, columns: int, **more: str) -> str:
    return "".join(piece.text for piece in footer(pill, place, {}, columns, **more))


@pytest.mark.req("U-02")
def test_the_pill_names_the_key_that_opens_the_list() -> None:
    assert line(BUSY, "tasks", 120).startswith(" 2 shells (2)   ! 1 waits   ✗ make lint ")
    assert line(StatusSummary("◇ ultraplan needs your input", " · ↓ to view"), "tasks", 120).startswith(
        " ◇ ultraplan needs your input · 2 to view "
    )
    assert line(StatusSummary(), "tasks", 120).startswith(" enter open  ")


@pytest.mark.req("U-02")
def test_each_part_of_the_pill_has_its_colour() -> None:
    looks = {piece.text.strip(): piece.look for piece in footer(BUSY, "tasks", {}, 120)}

    assert (looks["! 1 waits"], looks["✗ make lint"]) == ("warn bold", "fail")


def test_hints_are_in_full_in_short_or_as_keys_alone() -> None:
    assert "c claim for me" in line(StatusSummary(), "tasks", 200)
    assert "c claim  d done" in line(StatusSummary(), "tasks", 100)
    assert line(BUSY, "tasks", 60).split()[-5:] == ["c", "d", "/", "a", "s"]
    assert "f follow" in line(StatusSummary(), "output", 80)


@pytest.mark.parametrize("columns", range(20, 200, 7))
def test_nothing_runs_over_the_edge(columns: int) -> None:
    shown = build_snapshot(scene())

    assert width("".join(piece.text for piece in header(shown, max(columns, 60), 0, Style()))) <= max(columns, 60)
    assert width(line(StatusSummary("1 shell"), "jobs", columns)) <= columns


@pytest.mark.req("X-01")
def test_a_list_whose_database_is_away_is_called_disconnected_at_the_top() -> None:
    shown = build_snapshot(scene())._replace(problems=("Disconnected from the database …",), is_disconnected=True)
    text = "".join(piece.text for piece in header(shown, 100, 0, Style()))

    assert "! disconnected" in text
    assert "unreadable" not in text


def test_another_key_is_shown_where_another_is_set() -> None:
    pieces = footer(BUSY, "tasks", {"claim": "C", "background": "f2"}, 200)

    assert "C claim" in "".join(piece.text for piece in pieces)
    assert "2 shells (f2)" in "".join(piece.text for piece in pieces)
