"""A job here, a server there, a job there: what one says the other has, whoever is killed on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.a2a_places import OurServer, Yard
from support.wait import until
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.remote_agent import RemoteAgent
from taskyard.jobs.model import Job, JobStatus

pytestmark = pytest.mark.req("K-03", "X-02")


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    """Ours, of this test's own home."""
    found = Jobs(os.environ["TASKYARD_HOME"])
    yield found
    found.close()


def reach(server: OurServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let config.toml name that server, and the environment hold its token."""
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "taskyard"
    folder.mkdir(parents=True, exist_ok=True)
    table = f'[remotes.there]\nbackend = "a2a"\nurl = "{server.url}"\ntoken_env = "THERE_TOKEN"\n'
    (folder / "config.toml").write_text(table, encoding="utf-8")
    monkeypatch.setenv("THERE_TOKEN", server.token)


def said(jobs: Jobs, job: Job) -> list[str]:
    return jobs.read(job.id).text.decode().splitlines()


def test_an_agent_elsewhere_works_asks_and_completes_as_if_it_were_here(
    jobs: Jobs, server: OurServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach(server, monkeypatch)
    job = jobs.start(RemoteAgent("one\n/tool Edit secret\n/ask Which?\nlast", "there"))
    until(lambda: jobs.get(job.id).needs_input)
    assert jobs.get(job.id).facts["question"] == "Which?"
    jobs.send(job.id, "blue\n")
    ended = jobs.wait(job.id, timeout=20)
    assert ended.status is JobStatus.COMPLETED, ended.end
    lines = said(jobs, job)
    assert [line for line in lines if not line.startswith("{")] == ["one", "told: blue", "last"]
    assert any('"tool_use"' in line and "secret" not in line for line in lines)
    there = server.yard.jobs().get(str(ended.facts["sessionId"]))
    assert (there.type, there.status) == ("local_agent", JobStatus.COMPLETED)


def test_a_stop_here_ends_the_job_there_with_proof(
    jobs: Jobs, server: OurServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach(server, monkeypatch)
    job = jobs.start(RemoteAgent("begun\n/forever", "there"))
    until(lambda: said(jobs, job) == ["begun"])
    [stopped] = jobs.stop(job.id)
    assert stopped.job.status is JobStatus.KILLED
    there = server.yard.jobs().get(str(stopped.job.facts["sessionId"]))
    assert there.end is not None and (there.end.cause, there.end.proof) == ("stopped", "proved")


def test_both_are_killed_in_the_middle_and_every_line_arrives_once(
    jobs: Jobs, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with yard.serve() as first:
        reach(first, monkeypatch)
        job = jobs.start(RemoteAgent("/count 150 0.01", "there"))
        until(lambda: said(jobs, job))
        pid = jobs.get(job.id).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)  # who follows it here
        first.stop(signal.SIGKILL)
    with yard.serve(port=first.url.rpartition(":")[2]) as second:
        assert second.url == first.url
        ended = jobs.wait(job.id, timeout=30)
    assert ended.status is JobStatus.COMPLETED, ended.end
    assert said(jobs, job) == [str(number) for number in range(1, 151)]
    assert len(yard.jobs().list(ended=True)) == 1
