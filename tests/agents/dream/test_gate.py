"""Whether it is time to dream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.agents.dream.staging import (
    HOURS,
    OFF,
    RUNNING,
    SESSIONS,
    Readiness,
    check_readiness,
    format_reasons,
)

DAY = 86_400.0
NOW = 1_800_000_000.0


def gate(*, ago: float | None = 2 * DAY, sessions: int = 5, is_running: bool = False, is_on: bool = True) -> Readiness:
    last = 0.0 if ago is None else NOW - ago
    return check_readiness(
        now=NOW, last_done=last, sessions=sessions, is_running=is_running, hours=24.0, least=5, is_on=is_on
    )


@pytest.mark.req("K-07")
@pytest.mark.parametrize(
    ("found", "held_by"),
    [
        (gate(), ()),
        (gate(ago=None), ()),
        (gate(ago=DAY), ()),
        (gate(ago=DAY - 1), (HOURS,)),
        (gate(sessions=4), (SESSIONS,)),
        (gate(is_running=True), (RUNNING,)),
        (gate(is_on=False), (OFF,)),
        (gate(ago=0, sessions=0, is_running=True, is_on=False), (OFF, RUNNING, HOURS, SESSIONS)),
    ],
)
def test_each_thing_that_is_missing_holds_it_back(found: Readiness, held_by: tuple[str, ...]) -> None:
    assert (found.held_by, found.is_open) == (held_by, not held_by)


@pytest.mark.req("K-07")
def test_when_it_opens_is_known_only_where_time_alone_opens_it() -> None:
    assert gate(ago=DAY / 2).opens_at == NOW + DAY / 2
    assert gate(ago=DAY / 2, sessions=1).opens_at is None
    assert gate().opens_at is None


@pytest.mark.req("K-07")
def test_a_time_in_the_future_was_not_written_by_a_dream_and_holds_nothing_back() -> None:
    assert gate(ago=-DAY).is_open
    assert gate(ago=-DAY).last_done == 0
    assert gate(ago=-30).held_by == (HOURS,)  # two clocks may differ a little


def test_it_says_in_words_what_is_missing_and_when_it_opens() -> None:
    assert format_reasons(gate(), now=NOW) == ""
    told = format_reasons(gate(ago=20 * 3600 + 1200), now=NOW)
    assert told == "the last one was 20h 20m ago; the gate opens in 3h 40m"
    assert format_reasons(gate(ago=None, sessions=2), now=NOW) == "2 of 5 sessions since the last one are there"
    assert "turned off" in format_reasons(gate(is_on=False), now=NOW)


@given(st.floats(0, 3e9), st.integers(0, 50), st.floats(0, 1000), st.integers(0, 50))
def test_whatever_the_numbers_an_hour_that_is_named_is_in_the_future(
    last: float, sessions: int, hours: float, least: int
) -> None:
    found = check_readiness(now=NOW, last_done=last, sessions=sessions, is_running=False, hours=hours, least=least)
    assert found.opens_at is None or found.opens_at > NOW
    assert bool(format_reasons(found, now=NOW)) is not found.is_open
