"""How a job stands and what it printed, in one answer; whoever sees its end so has heard of it."""

from __future__ import annotations

import asyncio

import pytest
from countdown import Countdown

from taskyard import Shell
from taskyard.jobs.async_jobs import AsyncJobs
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import JobStatus
from taskyard.jobs.notices import Outbox

pytestmark = pytest.mark.req("N-07", "O-07")


def waiting(home: str, recipient: str) -> list[str]:
    return [notice.task_id for notice in Outbox(home, recipient).waiting()]


def test_seeing_the_end_counts_as_its_notice(jobs: Jobs) -> None:
    mine = Jobs(jobs.home, agent="ada")
    job = mine.start(Shell("echo done"))

    seen = mine.output(job.id, timeout=20)
    mine.close()

    assert (seen.job.status, seen.output, len(seen.delivered)) == (JobStatus.COMPLETED, "done\n", 1)
    assert waiting(jobs.home, "ada") == []
    assert mine.output(job.id).delivered == (), "one notice counted twice"


def test_somebody_elses_look_takes_no_notice_from_whoever_it_is_for(jobs: Jobs) -> None:
    mine = Jobs(jobs.home, agent="ada")
    job = mine.start(Shell("true"))
    mine.wait(job.id, timeout=20)

    assert Jobs(jobs.home, agent="bob").output(job.id).delivered == ()
    assert Jobs(jobs.home).output(job.id).delivered == ()
    mine.close()

    assert waiting(jobs.home, "ada") == [job.id]


def test_a_job_that_goes_on_is_shown_as_it_is_after_the_time_and_stays_to_be_told(jobs: Jobs) -> None:
    job = jobs.start(Shell(["cat"], stdin=True))
    assert jobs.output(job.id, timeout=0.05)[:2] == (jobs.get(job.id), "")

    jobs.send(job.id, "more\n", close=True)
    jobs.wait(job.id, timeout=20)

    assert waiting(jobs.home, "me") == [job.id]


def test_it_is_cut_to_what_a_model_is_given_and_says_where_all_of_it_is(jobs: Jobs) -> None:
    job = jobs.start(Shell("seq 100000"))

    seen = jobs.output(job.id, timeout=20, limit=1000)

    assert (seen.was_truncated, len(seen.output)) == (True, 1000)
    assert seen.output.startswith(f"[Truncated. Full output: {job.output_file}]\n\n")
    assert seen.output.endswith("100000\n")


@pytest.mark.req("T-02")
def test_of_a_job_with_a_final_answer_that_is_shown_and_its_transcript_only_when_asked_for(
    plugin: None, jobs: Jobs
) -> None:
    job = jobs.start(Countdown(2))

    assert jobs.output(job.id, timeout=20).output == "lift-off"
    assert jobs.output(job.id, transcript=True).output == "2\n1\n"


def test_a_program_with_an_event_loop_awaits_it(jobs: Jobs) -> None:
    async def main() -> str:
        mine = AsyncJobs(jobs)
        job = await mine.start(Shell("echo done"))
        return (await mine.output(job.id, timeout=20)).output

    assert asyncio.run(main()) == "done\n"
