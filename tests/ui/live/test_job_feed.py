"""Every job of this user, kept in memory: the living, and the latest of those that are over."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskyard
from support.wait import until
from taskyard.jobs.job_dir import live_folder
from taskyard.ui import live
from taskyard.ui.live import JobFeed


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[taskyard.Yard]:
    with taskyard.open(tasks_dir=tmp_path / "tasks", list="release") as found:
        yield found
        found.jobs.stop(*(job.id for job in found.jobs.list()))


@pytest.fixture
def feed(yard: taskyard.Yard) -> Iterator[JobFeed]:
    found = JobFeed(yard.home, threading.Event())
    yield found
    found.close()


def looked(feed: JobFeed) -> JobFeed:
    feed.look()
    return feed


@pytest.mark.req("U-01", "B-06")
def test_of_those_that_are_over_the_latest_are_kept(
    yard: taskyard.Yard, feed: JobFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_ENDED", 2)
    ended = [yard.jobs.run(taskyard.Shell("true")).id for _ in range(4)]
    living = yard.jobs.start(taskyard.Shell("sleep 60")).id

    assert feed.look()
    assert set(feed.jobs) == {*ended[-2:], living}
    assert feed.is_busy

    yard.jobs.stop(living)
    until(lambda: looked(feed).jobs[living].is_final)
    assert set(feed.jobs) == {ended[-1], living}
    assert not feed.is_busy


@pytest.mark.req("U-01")
def test_one_that_is_collected_during_the_first_look_hides_no_other(
    yard: taskyard.Yard, feed: JobFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = yard.jobs.run(taskyard.Shell("true")).id
    lists = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*lists(path), "b00000000"])  # gone as soon as it was named

    shutil.rmtree(live_folder(yard.home))

    feed.look()
    assert set(feed.jobs) == {kept}


@pytest.mark.req("U-01")
def test_a_job_that_is_collected_is_gone(yard: taskyard.Yard, feed: JobFeed) -> None:
    job = yard.jobs.run(taskyard.Shell("true"))
    feed.look()
    assert job.id in feed.jobs

    shutil.rmtree(f"{yard.home}/jobs/{job.id}")

    assert feed.look()
    assert feed.jobs == {}


@pytest.mark.req("U-01")
def test_a_job_that_cannot_be_read_is_told_and_hides_no_other(yard: taskyard.Yard, feed: JobFeed) -> None:
    broken, fine = (yard.jobs.run(taskyard.Shell("true")).id for _ in range(2))
    shutil.rmtree(f"{yard.home}/jobs/{broken}")
    Path(f"{yard.home}/jobs/{broken}").write_text("no folder", encoding="utf-8")

    feed.look()

    assert set(feed.jobs) == {fine}
    assert list(feed.problems) == [broken]


@pytest.mark.req("U-01")
def test_a_flood_of_output_is_looked_at_now_and_then(yard: taskyard.Yard, feed: JobFeed) -> None:
    job = yard.jobs.start(taskyard.Shell("yes"))
    until(lambda: looked(feed).last_lines.get(job.id) == "y")
    due = feed.lines_due

    assert not feed.look()
    assert due is None or due <= live.LINES_EVERY
    yard.jobs.stop(job.id)


@pytest.mark.req("U-01")
def test_where_no_job_lives_those_that_are_over_are_not_looked_at_again(
    yard: taskyard.Yard, feed: JobFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = yard.jobs.run(taskyard.Shell("true"))
    shutil.rmtree(f"{yard.home}/jobs/.living")
    until(lambda: job.id in looked(feed).jobs and feed.lines_due is None)
    monkeypatch.setattr("taskyard.jobs.query.read_job", lambda *_: pytest.fail("nothing had changed"))

    assert not feed.look()
