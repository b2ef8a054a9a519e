"""What a monitor hears and tells, with a disk that refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.job_outputs import made_by_hand
from taskyard.errors import StorageError
from taskyard.jobs.context import JobContext
from taskyard.jobs.kinds.monitor_run import EventReporter
from taskyard.jobs.notices import Outbox


@pytest.mark.req("K-06", "O-09")
def test_what_a_full_disk_keeps_from_being_told_is_counted_and_told_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made_by_hand(tmp_path / "home", kind="monitor_mcp", letter="m")
    with Path(folder.output).open("ab") as output:
        context = JobContext(folder, output.fileno())
        watch = EventReporter(context, every=2.0)

        def refused(event: str, *, what: str) -> bool:
            raise StorageError("outbox", "No space left on device")

        with monkeypatch.context() as full:
            full.setattr(context, "notify", refused)
            watch.event("one")
            asyncio.run(watch.notify_remaining())
        asyncio.run(watch.notify_remaining())

    [notice] = Outbox(folder.home).take()
    assert notice.news["event"] == "… and 1 more line held back"
