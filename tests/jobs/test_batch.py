"""What waits at a turn: in order, bounded, counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.notice import Notice, select_batch

pytestmark = pytest.mark.req("N-03")


def notices() -> st.SearchStrategy[list[Notice]]:
    one = st.builds(
        lambda number, priority, at: Notice(f"n{number}", "me", priority, "b00000000", "s", at=at),
        st.integers(0, 10**6),
        st.sampled_from(["next", "later"]),
        st.integers(0, 5),
    )
    return st.lists(one, max_size=20, unique_by=lambda notice: notice.id)


@given(notices(), st.integers(1, 25), st.integers(0, 60))
def test_a_batch_is_the_head_of_the_line_within_its_bounds_and_counts_the_rest(
    waiting: list[Notice], most: int, characters: int
) -> None:
    batch = select_batch(waiting, most=most, characters=characters, size=lambda notice: 3 + notice.at)

    line = sorted(waiting, key=lambda notice: (notice.priority == "later", notice.at, notice.id))
    count = len(batch.notices)
    assert list(batch.notices) == line[:count]
    assert batch.rest == len(line) - count
    assert count <= most
    assert sum(3 + notice.at for notice in batch.notices) <= characters or count == 1
    if count < min(most, len(line)):
        assert sum(3 + notice.at for notice in line[: count + 1]) > characters  # the next one does not fit
    assert count or not waiting
    assert [*batch.first, *batch.later] == list(batch.notices)


def test_without_a_bound_on_characters_only_the_count_bounds() -> None:
    waiting = [Notice(f"n{number}", "me", "later", "b00000000", "s" * 10_000) for number in range(60)]

    batch = select_batch(waiting, size=lambda notice: len(notice.summary))

    assert (len(batch.notices), batch.rest) == (50, 10)
