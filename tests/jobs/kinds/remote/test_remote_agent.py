"""An agent elsewhere, as a job: what it says is the output, how it stands is shown, what it is told reaches it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from support.fake_places import FakePlace
from support.wait import until
from taskyard import RemoteAgent, Shell
from taskyard.errors import BadText, BadValue, Conflict, RemoteNotFound
from taskyard.jobs.events import Events
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job, JobStatus
from taskyard.jobs.notices import Outbox
from taskyard.testing import check_job_handler


def said(job: Job) -> list[str]:
    return Path(job.output_file).read_text(encoding="utf-8").splitlines()


def ended(jobs: Jobs, prompt: str, **more: object) -> Job:
    return jobs.wait(jobs.start(RemoteAgent(prompt, "here", **more)).id, timeout=20)  # type: ignore[arg-type]


def progress(jobs: Jobs, job_id: str, key: str) -> list[object]:
    told = [event.data for event in Events(jobs.home) if event.task_id == job_id]
    return [data[key] for data in told if data["subtype"] == "task_progress" and key in data]


@pytest.mark.req("B-01", "K-03", "K-08")
def test_an_agent_elsewhere_keeps_the_promises_of_a_job(place: FakePlace) -> None:
    check_job_handler(
        quick=lambda: RemoteAgent("hello", "here"),
        failing=lambda: RemoteAgent("/fail no fuel", "here"),
        endless=lambda: RemoteAgent("/forever", "here"),
    )


@pytest.mark.req("B-01", "O-03", "K-03")
def test_what_it_says_is_appended_and_its_answer_is_told(jobs: Jobs, place: FakePlace) -> None:
    job = ended(jobs, "one\n/wait 0.3\ntwo\n/result All is well.", metadata={"pr": "7"}, name="afar")

    assert (job.id[0], job.type, job.status, said(job)) == ("r", "remote_agent", JobStatus.COMPLETED, ["one", "two"])
    assert job.facts["result"] == "All is well."
    assert (job.facts["remoteTaskType"], job.facts["prompt"]) == ("remote-agent", job.facts["prompt"])
    assert str(job.facts["sessionId"]).startswith("fake-")
    until(lambda: jobs.get(job.id).notified)
    [notice] = Outbox(jobs.home, "ada").take()
    assert (notice.task_id, notice.status, notice.news["result"]) == (job.id, "completed", "All is well.")
    assert notice.summary == 'Remote agent "one" completed'


@pytest.mark.req("K-03")
def test_what_fails_elsewhere_says_why(jobs: Jobs, place: FakePlace) -> None:
    job = ended(jobs, "one\n/fail no fuel")

    assert (job.status, job.end and job.end.error) == (JobStatus.FAILED, "no fuel")


@pytest.mark.req("K-03", "B-08")
def test_a_session_that_is_forgotten_there_is_a_failure_that_says_so(jobs: Jobs, place: FakePlace) -> None:
    job = jobs.start(RemoteAgent("/forever", "here"))
    until(lambda: "sessionId" in jobs.get(job.id).facts)
    place.switch(f"forgotten/{jobs.get(job.id).facts['sessionId']}")

    end = jobs.wait(job.id, timeout=20).end
    assert end is not None and "here does not know session fake-" in end.error


@pytest.mark.req("K-03", "O-08")
def test_a_question_is_shown_and_answered(jobs: Jobs, place: FakePlace) -> None:
    job = jobs.start(RemoteAgent("/ask Which one?\nthanks", "here"))
    until(lambda: jobs.get(job.id).needs_input)
    assert jobs.get(job.id).facts["question"] == "Which one?"

    assert jobs.send(job.id, "the blue one\n")

    done = jobs.wait(job.id, timeout=20)
    assert (done.status, said(done), done.needs_input) == (JobStatus.COMPLETED, ["the blue one", "thanks"], False)
    assert progress(jobs, job.id, "needs_input")[0] is True


@pytest.mark.req("K-03")
def test_what_it_does_not_take_is_told_to_whoever_started_it(jobs: Jobs, place: FakePlace) -> None:
    job = jobs.start(RemoteAgent("/wait 0.6", "here"))
    until(lambda: "sessionId" in jobs.get(job.id).facts)

    jobs.send(job.id, "hello\n")

    box = Outbox(jobs.home, "ada")
    until(box.waiting, what="the notice")
    [notice] = box.take(1)
    assert "it asks nothing now" in str(notice.news["event"])
    jobs.wait(job.id, timeout=20)


@pytest.mark.req("K-03", "B-03")
def test_a_place_that_is_away_is_shown_as_disconnected_and_told_when_it_is_back(jobs: Jobs, place: FakePlace) -> None:
    job = jobs.start(RemoteAgent("/count 40 0.01\n/result done", "here"))
    until(lambda: said(jobs.get(job.id)))
    place.switch("away")
    until(lambda: jobs.get(job.id).is_disconnected)
    cut_off = jobs.get(job.id)
    assert (cut_off.status, cut_off.facts["disconnected"]["why"]) == (  # type: ignore[index]
        JobStatus.RUNNING,
        "here cannot be reached: it hung up.",
    )

    place.clear("away")

    done = jobs.wait(job.id, timeout=20)
    assert (done.status, done.is_disconnected, "disconnected" in done.facts) == (JobStatus.COMPLETED, False, False)
    assert said(done) == [*map(str, range(1, 41))]
    assert progress(jobs, job.id, "disconnected") == [True, False]


@pytest.mark.req("K-03")
def test_one_that_cannot_be_handed_over_yet_waits_for_its_place(jobs: Jobs, place: FakePlace) -> None:
    place.switch("away")
    job = jobs.start(RemoteAgent("hello", "here"))
    until(lambda: jobs.get(job.id).is_disconnected)

    place.clear("away")

    done = jobs.wait(job.id, timeout=20)
    assert (done.status, said(done)) == (JobStatus.COMPLETED, ["hello"])


@pytest.mark.req("B-09", "K-08")
def test_a_stop_that_nobody_could_confirm_is_best_effort_and_says_so(jobs: Jobs, place: FakePlace) -> None:
    job = jobs.start(RemoteAgent("/forever", "here"))
    until(lambda: "sessionId" in jobs.get(job.id).facts)
    place.switch("away")

    [stopped] = jobs.stop(job.id)

    assert (stopped.outcome, stopped.job.status) == ("best_effort", JobStatus.KILLED)
    assert stopped.job.end is not None and "it may still run at here: here cannot be reached" in stopped.job.end.error


@pytest.mark.req("B-09", "K-08")
def test_a_stop_is_carried_out_also_when_the_process_that_follows_was_just_killed(jobs: Jobs, place: FakePlace) -> None:
    job = jobs.start(RemoteAgent("/forever", "here"))
    until(lambda: "sessionId" in jobs.get(job.id).facts)
    os.kill(jobs.get(job.id).pid or 0, 9)

    [stopped] = jobs.stop(job.id)

    assert (stopped.outcome, stopped.job.facts["stopConfirmed"]) == ("stopped", True)


@pytest.mark.req("K-03")
def test_a_time_limit_ends_the_session_too(jobs: Jobs, place: FakePlace) -> None:
    done = ended(jobs, "/forever", timeout=1.0)

    assert (done.end and done.end.cause, done.facts["stopConfirmed"]) == ("timeout", True)


@pytest.mark.req("K-03")
def test_a_session_that_is_there_is_followed_and_told_something(jobs: Jobs, place: FakePlace) -> None:
    first = jobs.start(RemoteAgent("one\n/ask More?\n/result both", "here"))
    until(lambda: jobs.get(first.id).needs_input)
    session = str(jobs.get(first.id).facts["sessionId"])

    second = ended(jobs, "yes", session=session)

    assert (second.status, said(second), second.facts["result"]) == (JobStatus.COMPLETED, ["one", "yes"], "both")
    assert jobs.wait(first.id, timeout=20).status is JobStatus.COMPLETED
    third = jobs.wait(jobs.start(RemoteAgent.resume(first.id, home=jobs.home)).id, timeout=20)
    assert (third.facts["sessionId"], said(third)) == (session, ["one", "yes"])
    with pytest.raises(Conflict, match="is not a remote agent"):
        RemoteAgent.resume(jobs.start(Shell("true")).id, home=jobs.home)


@pytest.mark.req("K-03")
def test_its_sidecar_says_where_it_goes_on_and_is_gone_with_its_end(jobs: Jobs, place: FakePlace) -> None:
    job = jobs.start(RemoteAgent("one\n/ask More?", "here", metadata={"pr": "7"}))
    until(lambda: jobs.get(job.id).needs_input)
    path = Path(JobPaths(jobs.home, job.id).elsewhere)
    known = json.loads(path.read_text(encoding="utf-8"))
    assert known == {
        "taskId": job.id,
        "sessionId": jobs.get(job.id).facts["sessionId"],
        "remote": "here",
        "remoteTaskType": "remote-agent",
        "remoteTaskMetadata": {"pr": "7"},
        "cursor": "4",
        "outputSize": 4,
    }
    assert path.stat().st_mode & 0o777 == 0o600

    jobs.send(job.id, "no\n")

    jobs.wait(job.id, timeout=20)
    until(lambda: not path.exists())


@pytest.mark.req("K-03", "B-01")
@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (RemoteAgent("hello", "nowhere"), RemoteNotFound),
        (RemoteAgent(" ", "here"), BadText),
        (RemoteAgent("hello", "here", remote_task_type="party"), BadValue),
        (RemoteAgent("hello", "here", session="x", command="y"), BadValue),
        (RemoteAgent("hello", "here", timeout=-1), BadValue),
    ],
)
def test_what_cannot_be_is_refused_before_there_is_a_job(
    jobs: Jobs, place: FakePlace, spec: RemoteAgent, error: type[Exception]
) -> None:
    with pytest.raises(error):
        jobs.start(spec)
    assert jobs.list(ended=True) == []


@pytest.mark.req("K-03")
def test_a_place_that_hangs_is_no_answer(jobs: Jobs, place: FakePlace) -> None:
    place.switch("slow", "30")
    job = jobs.start(RemoteAgent("hello", "here"))
    until(lambda: os.path.exists(JobPaths(jobs.home, job.id).elsewhere), what="that it is handed over")

    began = time.monotonic()
    [stopped] = jobs.stop(job.id)

    assert time.monotonic() - began < 5
    assert (stopped.outcome, stopped.job.end and stopped.job.end.error) == (
        "best_effort",
        "whether it had started at here is unknown",
    )
