"""What a program switched on at our terminal is known, wherever its output is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.cli.attach import ScreenModes

OUTPUT = b"hello \x1b[?1049h\x1b[31m\x1b[?25lworld\x1b[?1000;1006hx\x1b[?2004h\x1b[?2004l\x1b[?7h\x1b[?9999h end"
UNDONE = "\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l\x1b[0m"


@pytest.mark.req("B-11")
@given(st.lists(st.integers(0, len(OUTPUT)), max_size=8))
def test_modes_are_seen_wherever_the_output_is_cut(cuts: list[int]) -> None:
    modes = ScreenModes()
    edges = [0, *sorted(cuts), len(OUTPUT)]
    for begin, end in pairwise(edges):
        modes.printed(OUTPUT[begin:end])

    assert modes.reset() == UNDONE
    assert modes.reset() == "\x1b[0m"


@pytest.mark.req("B-11")
@given(st.lists(st.binary(max_size=200), max_size=10))
def test_no_output_confuses_it(pieces: list[bytes]) -> None:
    modes = ScreenModes()
    for piece in pieces:
        modes.printed(piece)

    assert modes.reset().endswith("\x1b[0m")
