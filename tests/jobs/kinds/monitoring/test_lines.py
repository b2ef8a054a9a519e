"""A stream of bytes as lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.kinds.monitor_run import MAX_LINE_BYTES, LineSplitter, format_line


@pytest.mark.req("K-06")
@given(chunks=st.lists(st.binary(max_size=50)))
def test_lines_are_the_same_however_they_come(chunks: list[bytes]) -> None:
    lines = LineSplitter()
    found = [line for chunk in chunks for line in lines.feed(chunk)]

    *ended, last = b"".join(chunks).split(b"\n")
    assert (found, list(lines.rest())) == (ended, [last] if last else [])


@pytest.mark.req("K-06")
def test_of_a_line_without_end_the_beginning_is_kept() -> None:
    lines = LineSplitter()
    for _ in range(100):
        assert list(lines.feed(b"x" * 10_000)) == []

    assert list(lines.feed(b"\nnext\n")) == [b"x" * MAX_LINE_BYTES, b"next"]


@pytest.mark.req("K-06")
@given(line=st.binary(max_size=200))
def test_whatever_a_line_holds_it_can_be_shown(line: bytes) -> None:
    assert format_line(line).isprintable() or set(format_line(line)) & {"\u200c", "\u200d"}
