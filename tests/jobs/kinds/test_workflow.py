"""Workflows: steps that are jobs of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.wait import until
from taskyard import Workflow
from taskyard.errors import BadValue, BadWorkflow
from taskyard.jobs.events import Events
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job, JobStatus
from taskyard.jobs.notices import Outbox
from taskyard.testing import check_job_handler


def workflow(*steps: dict[str, object], **more: object) -> Workflow:
    return Workflow({"name": "w", "steps": list(steps), **more})


def output(job: Job) -> str:
    return Path(job.output_file).read_text(encoding="utf-8")


def steps_of(job: Job) -> dict[str, str]:
    steps = job.facts["steps"]
    assert isinstance(steps, list)
    return {step["id"]: step["status"] for step in steps}


@pytest.mark.req("B-01", "K-05", "K-08")
@pytest.mark.serial  # that a stop takes no longer than it may is one of them
def test_a_workflow_keeps_the_promises_of_a_job() -> None:
    check_job_handler(
        quick=lambda: workflow({"run": "echo done"}),
        failing=lambda: workflow({"run": "exit 3"}),
        endless=lambda: workflow({"run": "sleep 300"}),
    )


@pytest.mark.req("K-05")
def test_steps_run_in_the_order_of_their_needs_and_know_what_others_said(jobs: Jobs, tmp_path: Path) -> None:
    ended = jobs.run(
        workflow(
            {"id": "last", "needs": ["first"], "run": 'printf %s "<${{ steps.first.output }}>" > said'},
            {"id": "first", "run": "echo '$(touch pwned); `id`'; echo two"},
            cwd=str(tmp_path),
        ),
        timeout=20,
    )

    assert ended.status is JobStatus.COMPLETED, output(ended)
    assert (tmp_path / "said").read_text() == "<$(touch pwned); `id`\ntwo>"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.req("K-05")
def test_each_step_is_a_job_inside_it_that_tells_nobody(jobs: Jobs) -> None:
    ended = jobs.run(workflow({"id": "a", "run": "echo $TASKYARD_JOB"}), timeout=20)

    [step] = [job for job in jobs.list(ended=True) if job.parent == ended.id]
    assert (step.type, step.description, output(step)) == ("local_bash", "w: a", f"{step.id}\n")
    assert [notice.task_id for notice in Outbox(jobs.home, "ada").take()] in ([], [ended.id])


@pytest.mark.req("K-05")
def test_an_agent_works_on_a_prompt_that_other_steps_fill_in(jobs: Jobs, tmp_path: Path) -> None:
    program = [sys.executable, "-c", "import sys; print('You said:', sys.stdin.read().strip())"]
    ended = jobs.run(
        workflow(
            {"id": "ask", "run": "echo stars"},
            {
                "id": "work",
                "needs": "ask",
                "agent": {"prompt": "count the ${{ steps.ask.output }}", "command": program},
            },
            {"id": "use", "needs": "work", "run": f'printf %s "${{{{ steps.work.output }}}}" > {tmp_path}/said'},
        ),
        timeout=30,
    )

    assert ended.status is JobStatus.COMPLETED, output(ended)
    assert (tmp_path / "said").read_text() == "You said: count the stars"
    assert {job.type for job in jobs.list(ended=True) if job.parent} == {"local_bash", "local_agent"}


@pytest.mark.req("K-05")
def test_progress_is_told_step_by_step(jobs: Jobs) -> None:
    ended = jobs.run(workflow({"id": "a", "run": "true"}, {"id": "b", "run": "true", "if": "false"}), timeout=20)

    told = [event for event in Events(jobs.home, job=ended.id) if event.subtype == "task_progress"]
    seen = {(event.data.get("step"), event.data.get("status")) for event in told}
    assert seen >= {("a", "running"), ("a", "completed"), ("b", "skipped")}
    assert ended.facts["progress"] == {"done": 2, "total": 2, "steps": {"a": "completed", "b": "skipped"}}


@pytest.mark.req("K-05")
def test_a_failure_stops_it_but_for_steps_that_run_always(jobs: Jobs) -> None:
    ended = jobs.run(
        workflow(
            {"id": "bad", "run": "echo why; exit 7"},
            {"id": "next", "needs": ["bad"], "run": "true"},
            {"id": "tidy", "needs": ["next"], "if": "always()", "run": "true"},
        ),
        timeout=20,
    )

    assert ended.end is not None
    assert (ended.status, ended.end.error) == (JobStatus.FAILED, "step bad failed: exit code 7")
    assert steps_of(ended) == {"bad": "failed", "next": "skipped", "tidy": "completed"}
    assert "    why\n" in output(ended) and "next: skipped, since bad, which it needs, failed\n" in output(ended)


@pytest.mark.req("K-05")
def test_a_failure_that_is_tolerated_does_not(jobs: Jobs) -> None:
    bad: dict[str, object] = {"id": "bad", "run": "exit 7", "continue-on-error": True}
    ended = jobs.run(workflow(bad, {"id": "next", "needs": ["bad"], "run": "true"}), timeout=20)

    assert ended.status is JobStatus.COMPLETED
    assert steps_of(ended) == {"bad": "failed", "next": "completed"}


@pytest.mark.req("K-05")
def test_time_limits_retries_folders_and_variables_are_a_steps_own(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    ended = jobs.run(
        workflow(
            {"id": "slow", "run": "sleep 60", "timeout": 0.2, "on-failure": "continue"},
            {"id": "shaky", "run": "test -e tried || { touch tried; exit 1; }", "retries": 1, "retry-delay": 0},
            {"id": "where", "cwd": "sub", "env": {"B": "${{ env.A }}!"}, "run": "echo $B > here"},
            {"id": "lost", "cwd": "nowhere", "run": "true", "on-failure": "continue"},
            cwd=str(tmp_path),
            env={"A": "x"},
        )._replace(env={"A": "given"}),
        timeout=20,
    )

    assert ended.status is JobStatus.COMPLETED, output(ended)
    assert steps_of(ended) == {"slow": "failed", "shaky": "completed", "where": "completed", "lost": "failed"}
    assert (tmp_path / "sub" / "here").read_text() == "given!\n"
    assert "longer than its time limit" in output(ended) and "a folder that exists" in output(ended)


@pytest.mark.req("K-08", "K-05")
def test_a_stop_ends_every_step_and_counts_none_as_failed(jobs: Jobs) -> None:
    job = jobs.start(workflow({"id": "a", "run": "sleep 300"}, {"id": "b", "run": "sleep 300"}))
    until(lambda: len(jobs.list()) == 3, what="both steps to run")

    [stopped] = jobs.stop(job.id)

    assert (stopped.outcome, jobs.list()) == ("stopped", [])
    assert "failed" not in output(stopped.job)


def test_a_workflow_takes_none_of_the_slots_that_its_steps_need(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_JOB_LIMIT", "1")

    ended = jobs.run(workflow({"run": "true"}, {"run": "true"}), timeout=20)

    assert ended.status is JobStatus.COMPLETED


def test_what_cannot_be_is_refused_before_anything_starts(jobs: Jobs) -> None:
    with pytest.raises(BadWorkflow):
        jobs.start(workflow())
    with pytest.raises(BadWorkflow, match="no key 'motor'"):
        jobs.start(workflow({"agent": {"prompt": "write a poem", "motor": "x"}}))
    with pytest.raises(BadValue):
        jobs.start(workflow({"run": "true"}, cwd="/nowhere"))
    assert jobs.list(ended=True) == []
