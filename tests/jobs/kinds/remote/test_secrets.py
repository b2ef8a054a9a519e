"""The token for a place is nowhere: not in a file of ours, not on a command line, not in an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_places import FakePlace, set_up
from support.jobs import kill_keeper
from support.wait import until
from taskyard import RemoteAgent
from taskyard.errors import RemoteRefused
from taskyard.jobs.jobs import Jobs

TOKEN = "sesame-4711-never-to-be-seen"


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePlace]:
    place = FakePlace(tmp_path / "place", token=TOKEN)
    set_up(place, token_env="PLACE_TOKEN")
    monkeypatch.setenv("PLACE_TOKEN", TOKEN)
    yield place
    place.kill()


def places_of(token: str, home: str) -> list[str]:
    """Files of ours that hold it, and our processes that show it on their command lines."""
    found: list[str] = []
    for folder, _, names in os.walk(home):
        paths = [Path(folder, name) for name in names]
        found += [str(path) for path in paths if path.is_file() and token.encode() in path.read_bytes()]
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if token.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(f"process {name}")
        except OSError:
            continue
    return found


@pytest.mark.req("K-03", "X-02")
def test_a_token_is_in_no_file_and_on_no_command_line(jobs: Jobs, locked: FakePlace) -> None:
    job = jobs.start(RemoteAgent("one\n/ask More?", "here"))
    until(lambda: jobs.get(job.id).needs_input)
    assert places_of(TOKEN, jobs.home) == []
    kill_keeper(jobs, job)
    jobs.send(job.id, "no\n")

    assert jobs.wait(job.id, timeout=20).status == "completed"

    assert places_of(TOKEN, jobs.home) == []


@pytest.mark.req("K-03")
def test_a_token_that_is_not_taken_any_more_is_no_end_and_is_not_told(jobs: Jobs, locked: FakePlace) -> None:
    job = jobs.start(RemoteAgent("/count 40 0.02", "here"))
    until(lambda: "sessionId" in jobs.get(job.id).facts)
    locked.switch("token", "another")
    until(lambda: jobs.get(job.id).is_disconnected)
    assert "401: it does not take this token" in str(jobs.get(job.id).facts["disconnected"])

    locked.switch("token", TOKEN)

    assert jobs.wait(job.id, timeout=20).status == "completed"
    assert places_of(TOKEN, jobs.home) == []


@pytest.mark.req("K-03")
def test_a_wrong_token_refuses_the_work_and_a_missing_one_the_job(
    jobs: Jobs, locked: FakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE_TOKEN", "wrong")
    end = jobs.wait(jobs.start(RemoteAgent("hello", "here")).id, timeout=20).end
    assert end is not None and "401" in end.error and "wrong" not in end.error

    monkeypatch.delenv("PLACE_TOKEN")
    with pytest.raises(RemoteRefused, match="PLACE_TOKEN is not set"):
        jobs.start(RemoteAgent("hello", "here"))
