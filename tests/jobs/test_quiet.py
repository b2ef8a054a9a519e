"""A glance that tells whether there can be news."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ended_jobs import end_job
from support.jobs import kill_keeper
from support.wait import until
from taskyard import config
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.notices import Outbox
from taskyard.jobs.pending_notices import has_none_pending


@pytest.fixture
def home() -> str:
    return config.home()


@pytest.mark.req("N-07")
def test_it_is_quiet_until_something_waits_and_again_when_it_was_read(home: str) -> None:
    assert has_none_pending(home)
    end_job(home, "ada")
    assert not has_none_pending(home)

    with Outbox(home, "ada") as outbox:
        (notice,) = outbox.take()
        assert not has_none_pending(home)  # it may come back
        outbox.ack([notice.id])
    Outbox(home, "ada").waiting()
    assert has_none_pending(home)


@pytest.mark.req("B-08")
def test_a_job_that_runs_is_no_news_and_one_whose_keeper_was_killed_is(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 60"))
    assert has_none_pending(jobs.home)

    kill_keeper(jobs, job)
    until(lambda: not has_none_pending(jobs.home), what="the end of the keeper")


def test_what_cannot_be_looked_into_is_not_called_quiet(home: str) -> None:
    Path(home).mkdir()
    Path(home, "outbox").write_text("", encoding="utf-8")
    assert not has_none_pending(home)
