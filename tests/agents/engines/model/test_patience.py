"""How long to wait for a provider that has too much to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.agents.engines.model_loop import MOST_SECONDS, MOST_TRIES, retry_delay


@pytest.mark.req("B-10")
@given(asked=st.floats(0, 500), jitter=st.floats(0, 1), tries=st.integers(1, MOST_TRIES - 1))
def test_the_time_a_provider_asks_for_is_always_given_and_little_more(asked: float, jitter: float, tries: int) -> None:
    seconds = retry_delay(tries, 0.0, asked, jitter)
    if seconds is None:
        assert asked * 1.25 + 0.25 > MOST_SECONDS
    else:
        assert asked <= seconds <= asked * 1.25 + 0.25


@pytest.mark.req("B-10")
@given(jitter=st.lists(st.floats(0, 1), min_size=MOST_TRIES, max_size=MOST_TRIES), asked=st.none() | st.floats(0, 1e9))
def test_tries_and_waiting_come_to_an_end(jitter: list[float], asked: float | None) -> None:
    waited, tries = 0.0, 1
    while (seconds := retry_delay(tries, waited, asked, jitter[tries - 1])) is not None:
        waited += seconds
        tries += 1
    assert tries <= MOST_TRIES
    assert waited <= MOST_SECONDS


@pytest.mark.req("B-10")
def test_without_a_word_of_the_provider_each_pause_is_longer_and_none_is_the_same_for_all() -> None:
    assert [retry_delay(tries, 0.0, None, 1.0) for tries in range(1, 8)] == [1, 2, 4, 8, 16, 32, 60]
    assert retry_delay(3, 0.0, None, 0.0) == 2
    assert retry_delay(1, 0.0, -5.0, 0.0) == 0
