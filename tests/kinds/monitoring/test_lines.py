"""A stream of bytes as lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.kinds.monitoring.lines import LONGEST, Lines, shown


@pytest.mark.req("K-06")
@given(chunks=st.lists(st.binary(max_size=50)))
def test_lines_are_the_same_however_they_come(chunks: list[bytes]) -> None:
    lines = Lines()
    found = [line for chunk in chunks for line in lines.fed(chunk)]

    *ended, last = b"".join(chunks).split(b"\n")
    assert (found, list(lines.rest())) == (ended, [last] if last else [])


@pytest.mark.req("K-06")
def test_of_a_line_without_end_the_beginning_is_kept() -> None:
    lines = Lines()
    for _ in range(100):
        assert list(lines.fed(b"x" * 10_000)) == []

    assert list(lines.fed(b"\nnext\n")) == [b"x" * LONGEST, b"next"]


@pytest.mark.req("K-06")
@given(line=st.binary(max_size=200))
def test_whatever_a_line_holds_it_can_be_shown(line: bytes) -> None:
    assert shown(line).isprintable() or set(shown(line)) & {"\u200c", "\u200d"}
