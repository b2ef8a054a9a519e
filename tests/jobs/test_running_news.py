"""News of a job that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.job_outputs import made_by_hand
from taskyard.jobs.context import MAX_UNREAD, JobContext
from taskyard.jobs.notices import Outbox


@pytest.mark.req("N-04", "K-06")
def test_an_event_has_no_status_and_each_is_told_once(tmp_path: Path) -> None:
    folder = made_by_hand(tmp_path / "home", kind="monitor_mcp", letter="m")
    context = JobContext(folder, 1)

    assert context.notify("first", what="Monitor event") and context.notify("second")

    told = Outbox(folder.home).take()
    assert [(notice.status, notice.news["event"]) for notice in told] == [(None, "first"), (None, "second")]
    assert len({notice.id for notice in told}) == 2


@pytest.mark.req("K-06")
def test_a_receiver_that_reads_nothing_is_not_buried(tmp_path: Path) -> None:
    folder = made_by_hand(tmp_path / "home", kind="monitor_mcp", letter="m")
    context = JobContext(folder, 1)
    box = Outbox(folder.home)

    assert all(context.notify(f"event {number}") for number in range(MAX_UNREAD))
    assert not context.notify("one too many")
    box.ack([notice.id for notice in box.take(1)])
    assert context.notify("after the first was read")


@pytest.mark.req("K-06")
def test_however_long_an_event_is_its_notice_is_bounded(tmp_path: Path) -> None:
    folder = made_by_hand(tmp_path / "home", kind="monitor_mcp", letter="m")
    JobContext(folder, 1).notify("x" * 1_000_000)

    [notice] = Outbox(folder.home).take()
    assert len(str(notice.news["event"])) == 16_000
