"""How states look."""

from __future__ import annotations

import pytest

from taskyard.core.text import ANSI, JOB_GLYPHS, TASK_GLYPHS, Style, colorize, glyph, style_for


@pytest.mark.req("U-01", "U-03")
def test_every_state_has_a_sign_in_both_sets_a_word_and_a_colour() -> None:
    for looks in (TASK_GLYPHS, JOB_GLYPHS):
        assert len({look.glyph for look in looks.values()}) == len(looks)
        assert len({look.ascii for look in looks.values()}) == len(looks)
        assert all(look.ascii.isascii() and look.word and look.token in ANSI for look in looks.values())


@pytest.mark.req("U-01")
def test_jobs_have_the_colours_people_know() -> None:
    colours = {state: ANSI[look.token] for state, look in JOB_GLYPHS.items()}
    assert colours["pending"] == "33"
    assert colours["running"] == "34"
    assert colours["completed"] == "32"
    assert colours["failed"] == "31"
    assert colours["killed"] == "90"


@pytest.mark.req("U-03")
@pytest.mark.parametrize(
    ("terminal", "env", "colour"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (False, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colour_follows_the_terminal_and_the_persons_wish(terminal: bool, env: dict[str, str], colour: bool) -> None:
    assert style_for(terminal=terminal, env=env).colour is colour


@pytest.mark.req("U-03")
def test_ascii_is_used_on_request_and_where_there_are_no_glyphs() -> None:
    assert not style_for(terminal=True, env={}).ascii
    assert style_for(terminal=True, env={"TASKYARD_ASCII": "1"}).ascii
    assert not style_for(terminal=True, env={"TASKYARD_ASCII": "0"}).ascii
    assert style_for(terminal=True, encoding="ANSI_X3.4-1968", env={}).ascii


@pytest.mark.req("U-03")
def test_paint_stays_off_a_plain_stream_and_ends_where_it_began() -> None:
    assert colorize("x", "fail", Style()) == "x"
    assert colorize("x", "fail", Style(colour=True)) == "\x1b[31mx\x1b[0m"
    assert colorize("x", "default", Style(colour=True)) == "x"
    assert glyph(TASK_GLYPHS["done"], Style(ascii=True)) == "+"
