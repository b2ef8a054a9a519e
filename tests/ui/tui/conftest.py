"""A real list and real jobs behind the view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import taskyard
from taskyard.jobs.jobs import Jobs
from taskyard.ui.live import LiveFeed, LiveView


@pytest.fixture
def release(tmp_path: Path) -> Iterator[LiveView]:
    """The list `release`, kept in view; every job that is left is ended."""
    with (
        taskyard.open(tasks_dir=tmp_path / "lists", list="release", is_person=True) as yard,
        LiveFeed(yard) as live,
    ):
        yield live.watch()
        _end_all(yard.jobs)


def _end_all(jobs: Jobs) -> None:
    if living := [job.id for job in jobs.list()]:
        jobs.stop(*living, grace=0.0)
