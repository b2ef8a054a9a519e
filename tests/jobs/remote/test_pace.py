"""How long to wait before the next poll: quick while things move, far between after trouble, never without bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import BadValue
from taskyard.jobs.remote.backend import POLL_INTERVAL, next_delay, poll_interval
from taskyard.jobs.remote.remotes import Remote


@pytest.mark.req("K-03")
def test_it_is_quick_while_things_move_and_slower_while_nothing_does() -> None:
    waits = [next_delay(quiet=quiet) for quiet in range(12)]

    assert waits[0] == POLL_INTERVAL
    assert waits == sorted(waits)
    assert waits[-1] == 5.0


@pytest.mark.req("K-03")
def test_after_trouble_the_bound_doubles_from_one_second_to_thirty() -> None:
    assert [next_delay(trouble=count) for count in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.req("K-03")
@given(quiet=st.integers(0, 10_000), trouble=st.integers(0, 10_000), chance=st.floats(0, 1))
def test_every_wait_is_bounded_and_none_is_nothing(quiet: int, trouble: int, chance: float) -> None:
    assert 0 < next_delay(quiet=quiet, trouble=trouble, chance=chance) <= 30


@pytest.mark.req("K-03")
def test_chance_spreads_those_who_come_back_over_the_whole_wait() -> None:
    assert [next_delay(trouble=6, chance=chance) for chance in (0.0, 0.5, 1.0)] == [0.05, 15.0, 30.0]


def test_a_place_says_how_often_it_wants_to_be_asked() -> None:
    assert poll_interval(Remote("x", "fake")) == POLL_INTERVAL
    assert poll_interval(Remote("x", "fake", options={"poll_seconds": 7})) == next_delay(quick=7.0, quiet=3) == 7.0
    for odd in (0, -1, "often", True):
        with pytest.raises(BadValue, match="poll_seconds"):
            poll_interval(Remote("x", "fake", options={"poll_seconds": odd}))
