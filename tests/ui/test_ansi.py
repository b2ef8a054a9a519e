"""Text with colours in it as runs that a screen can draw."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.output import for_terminal
from taskyard.ui.ansi import LONGEST_LINE, PLAIN, Run, apply_sgr, parse_ansi, plain_text


def words(text: str) -> list[list[tuple[str, str]]]:
    return [[(run.text, run.pen.words) for run in line] for line in parse_ansi(text)[0]]


@pytest.mark.req("O-05")
@pytest.mark.parametrize(
    ("codes", "shown"),
    [
        ("31", "fg1"),
        ("1;4;92", "fg10 bold underline"),
        ("44;97", "fg15 bg4"),
        ("103", "bg11"),
        ("38;5;9", "fg9"),
        ("38;5;196", "fg9"),
        ("48;5;232", "bg0"),
        ("38;2;0;0;230", "fg4"),
        ("38:2:255:255:255", "fg15"),
        ("1;22", ""),
        ("31;39", ""),
        ("7;31;0", ""),
        ("38;7", ""),
        ("99999;31", "fg1"),
        ("", ""),
        ("38;5", ""),
    ],
)
def test_codes_become_the_sixteen_colours_and_emphasis(codes: str, shown: str) -> None:
    assert apply_sgr(PLAIN, codes).words == shown


@pytest.mark.req("O-05")
def test_a_colour_lasts_over_lines_until_it_ends() -> None:
    assert words("a\x1b[31mb\nc\x1b[0md\n") == [[("a", ""), ("b", "fg1")], [("c", "fg1"), ("d", "")]]
    assert parse_ansi("\x1b[1m")[1].words == "bold"


@pytest.mark.req("O-05")
def test_empty_lines_stay_and_no_line_is_longer_than_a_screen_could_show() -> None:
    assert words("a\n\nb") == [[("a", "")], [], [("b", "")]]
    assert words("") == []
    assert len(plain_text(parse_ansi("x" * 99_999)[0][0])) == LONGEST_LINE
    assert len(plain_text(parse_ansi("\x1b[31mx\x1b[32m" * 30_000)[0][0])) == LONGEST_LINE


@given(st.binary(max_size=300))
def test_nothing_that_acts_survives_and_nothing_readable_is_lost(data: bytes) -> None:
    lines, _ = parse_ansi(for_terminal(data, colours=True))

    assert "\n".join(map(plain_text, lines)) == for_terminal(data).removesuffix("\n")
    assert all(run != Run("") and "\x1b" not in run.text for line in lines for run in line)
