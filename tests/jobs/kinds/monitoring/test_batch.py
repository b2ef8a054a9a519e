"""Events gathered into notices, at a bounded pace and size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.kinds.monitor_run import MAX_NOTICE_BYTES, MIN_NOTICE_INTERVAL, NoticeBatch, escaped_size


@pytest.mark.req("K-06")
@given(lines=st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=3000)))
def test_whatever_comes_one_notice_fits_and_every_event_is_told_or_counted(lines: list[str]) -> None:
    batch = NoticeBatch()
    for line in lines:
        batch.add(line, 0.0)
        batch.note("the source is lost: " + line, 0.0)
    text, held = batch.take(1.0)

    assert escaped_size(text) <= MAX_NOTICE_BYTES
    assert (f"{held:,} more" in text) is (held > 0)
    shown = text.split("\n")[: len(lines) - held]
    assert all(told.startswith(line[:1000]) for told, line in zip(shown, lines))


@pytest.mark.req("K-06")
def test_a_burst_comes_together_and_the_next_waits_its_time() -> None:
    batch = NoticeBatch(every=5)
    moments = [batch.due]
    batch.add("one", 10.0)
    moments.append(batch.due)
    assert moments == [None, 10.2]
    batch.take(10.2)
    batch.add("two", 10.3)

    assert (batch.due, batch.earliest_notice(10.3), batch.earliest_notice(20.0)) == (
        15.2,
        10.2 + MIN_NOTICE_INTERVAL,
        20.0,
    )


@pytest.mark.req("K-06")
def test_what_was_left_out_is_counted_and_nothing_later_takes_its_place() -> None:
    batch = NoticeBatch()
    for _ in range(6):
        batch.add("x" * 900, 0.0)
    batch.add("small", 0.0)
    batch.count(1000, 0.0)

    text, held = batch.take(0.2)
    assert (text.count("x" * 900), held, "small" in text) == (3, 1004, False)
    assert text.endswith("… and 1,004 more lines held back")
