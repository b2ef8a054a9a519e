"""What a row says, for every width."""

from __future__ import annotations

import pytest
from rich.color import Color

from support.tui import NOW, scene
from taskyard.core.text import Style, width
from taskyard.ui.snapshot import build_snapshot
from taskyard.ui.tui.keys import Piece, style_of
from taskyard.ui.tui.rows import agent_row, job_row, next_age_change, task_row

SHOWN = build_snapshot(scene())


def text(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


@pytest.mark.parametrize("columns", [40, 46, 56, 76, 196])
def test_rows_are_as_wide_as_they_may_be(columns: int) -> None:
    for task in SHOWN.tasks:
        assert width(text(task_row(task, columns=columns, ids=2, now=NOW, style=Style())).rstrip()) <= columns
    for job in SHOWN.jobs:
        for line in job_row(job, columns=columns, now=NOW, style=Style(), costs=5):
            assert width(text(line).rstrip()) <= columns
    for person in SHOWN.people:
        assert width(text(agent_row(person, columns=columns, names=3, now=NOW, style=Style())).rstrip()) <= columns


@pytest.mark.req("U-01", "U-03")
def test_a_row_says_what_is_being_done_and_turns_with_the_focus() -> None:
    doing = SHOWN.tasks[0]
    still = text(task_row(doing, columns=60, ids=2, now=NOW, style=Style()))
    turned = [text(task_row(doing, columns=60, ids=2, now=NOW, style=Style(), turn=at))[:25] for at in range(4)]

    assert still.startswith("◐ 12 Migrating the schema")
    assert turned == [f"{sign} 12 Migrating the schema"[:25] for sign in "◐◓◑◒"]


@pytest.mark.req("K-04")
def test_a_member_is_drawn_in_the_colour_of_its_team() -> None:
    ada = SHOWN.people[0]._replace(colour="purple", state="idle")
    name = agent_row(ada, columns=60, names=3, now=NOW, style=Style())[1]
    plain = agent_row(ada._replace(colour="no colour"), columns=60, names=3, now=NOW, style=Style())[1]

    assert (name.text, style_of(name.look).color) == ("ada ", Color.parse("magenta"))
    assert style_of(plain.look).color is None


@pytest.mark.req("U-01")
def test_people_are_idle_or_working_in_a_sign_and_a_word() -> None:
    working = text(agent_row(SHOWN.people[0], columns=60, names=3, now=NOW, style=Style()))
    idle = SHOWN.people[0]._replace(state="idle", glyph="…", ascii="-", token="muted", doing="", since=None)

    assert working.startswith("▶ ada working  Migrating the schema")
    assert text(agent_row(idle, columns=60, names=3, now=NOW, style=Style())).startswith("… ada idle")


@pytest.mark.parametrize(
    ("ages", "wait"),
    [
        ([], None),
        ([500], 1_000),
        ([8_200, 8_300, 8_999], 1_000),
        ([61_000], 59_000),
        ([61_000, 2_000], 1_000),
        ([90_000_000], 82_800_000),
    ],
)
def test_an_age_reads_differently_after_a_second_a_minute_or_a_day_and_all_of_one_second_together(
    ages: list[int], wait: int | None
) -> None:
    assert next_age_change([NOW - age for age in ages], NOW) == wait
