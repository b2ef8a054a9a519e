"""The subtypes of agents elsewhere: when each is complete, where it stands, what its answer is."""

from __future__ import annotations

import json

import pytest

from support.fake_places import FakePlace
from support.wait import until
from taskyard import RemoteAgent
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import JobStatus
from taskyard.jobs.notices import Outbox
from taskyard.ui.jobs import status_summary


def says(text: str) -> str:
    return json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})


def uses(tool: str, **given: str) -> str:
    block = {"type": "tool_use", "name": tool, "input": given}
    return json.dumps({"type": "assistant", "message": {"content": [block]}})


@pytest.mark.req("K-03")
def test_a_checker_of_somebody_elses_package_says_when_it_is_complete(jobs: Jobs, place: FakePlace) -> None:
    work = RemoteAgent("one\n/wait 0.3\n/meta merged true\n/forever", "here", metadata={"by": "ada"})

    job = jobs.wait(jobs.start(work).id, timeout=20)

    assert (job.status, job.facts["result"], job.facts["stopConfirmed"]) == (
        JobStatus.COMPLETED,
        "Merged by ada.",
        True,
    )
    until(lambda: jobs.get(job.id).notified)
    [notice] = Outbox(jobs.home, "ada").take()
    assert (notice.summary, notice.news["result"]) == ('Remote agent "one" completed: Merged by ada.', "Merged by ada.")


@pytest.mark.req("K-03")
def test_a_checker_that_breaks_is_shown_and_ends_nothing(jobs: Jobs, place: FakePlace) -> None:
    job = jobs.start(RemoteAgent("/meta odd 1\n/wait 0.5\n/meta odd 0\n/result ok", "here"))
    until(lambda: jobs.get(job.id).facts.get("checkerError") == "RuntimeError: I cannot look at that")

    done = jobs.wait(job.id, timeout=20)

    assert (done.status, done.facts["result"], "checkerError" in done.facts) == (JobStatus.COMPLETED, "ok", False)


@pytest.mark.req("K-03", "U-02")
def test_an_ultraplan_shows_that_it_asks_and_that_its_plan_is_ready(jobs: Jobs, place: FakePlace) -> None:
    plan, answer = uses("ExitPlanMode", plan="First this."), json.dumps({"type": "user"})
    script = f"/ask Which way?\n{answer}\n{plan}\n/ask Go?\n{answer}\n/result approved"
    job = jobs.start(RemoteAgent(script, "here", "ultraplan"))

    until(lambda: jobs.get(job.id).facts.get("ultraplanPhase") == "needs_input")
    assert status_summary(jobs.list(), now=0).in_words() == "◇ ultraplan needs your input   ! 1 waits"
    jobs.send(job.id, "left\n")
    until(lambda: jobs.get(job.id).facts.get("ultraplanPhase") == "plan_ready")
    jobs.send(job.id, "yes\n")

    done = jobs.wait(job.id, timeout=20)
    assert (done.facts["result"], done.facts.get("ultraplanPhase")) == ("First this.", None)


@pytest.mark.req("K-03")
def test_the_answer_of_an_ultrareview_is_its_review_also_when_it_comes_in_two(jobs: Jobs, place: FakePlace) -> None:
    script = f"{says('I begin. <remote-review>Two')}\n/wait 0.2\n{says(' bugs.</remote-review>')}\n/result whatever"

    job = jobs.wait(jobs.start(RemoteAgent(script, "here", "ultrareview")).id, timeout=20)

    assert job.facts["result"] == "Two bugs."


@pytest.mark.req("K-03")
def test_a_pull_request_that_was_merged_ends_an_autofix(jobs: Jobs, place: FakePlace) -> None:
    work = RemoteAgent('/meta pullRequest {"state": "merged", "number": 7}\n/forever', "here", "autofix-pr")

    assert jobs.wait(jobs.start(work).id, timeout=20).facts["result"] == "Pull request #7 was merged."
