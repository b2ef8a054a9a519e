"""A run that was cut short goes on where it was, from any process, and finished steps are not run again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.jobs import kill_keeper
from support.wait import until
from support.workflow_deaths import Deaths, entries, faults
from taskyard import Workflow
from taskyard.errors import BadJobId, BadValue, Conflict, JobNotFound
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus


@pytest.fixture
def deaths(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deaths:
    return Deaths(jobs, tmp_path, monkeypatch)


def counting(folder: Path, *ids: str) -> Workflow:
    """Steps in a row, each of which leaves a line behind."""
    steps = [
        {"id": name, "run": f"echo {name} >> {folder}/ran", **({"needs": [ids[at - 1]]} if at else {})}
        for at, name in enumerate(ids)
    ]
    return Workflow({"name": "count", "steps": steps})


def ran(folder: Path) -> list[str]:
    return (folder / "ran").read_text().split() if (folder / "ran").exists() else []


@pytest.mark.req("K-05")
def test_after_a_kill_only_what_is_unfinished_runs(deaths: Deaths, tmp_path: Path) -> None:
    dead = deaths.run(counting(tmp_path, "a", "b", "c"), "after:4")  # workflow, run, begin a, end a
    assert (dead.status, ran(tmp_path)) == (JobStatus.FAILED, ["a"])

    ended = deaths.resume(dead.id)

    assert ended is not None and ended.status is JobStatus.COMPLETED
    assert ran(tmp_path) == ["a", "b", "c"]
    assert "not run again: a" in Path(ended.output_file).read_text(encoding="utf-8")
    assert (ended.facts["run"], deaths.resume(ended.id)) == (dead.id, None)


@pytest.mark.req("K-05")
def test_a_step_that_ended_unnoticed_is_not_run_again(deaths: Deaths, tmp_path: Path) -> None:
    dead = deaths.run(counting(tmp_path, "a", "b"), "before:4")  # a has ended, and nobody wrote it down
    assert [entry["do"] for entry in entries(deaths.jobs, dead.id)] == ["workflow", "run", "begin"]

    ended = deaths.resume(dead.id)

    assert ended is not None and ended.status is JobStatus.COMPLETED
    assert ran(tmp_path) == ["a", "b"]


@pytest.mark.req("K-05")
def test_a_step_that_was_announced_and_never_began_begins_now(deaths: Deaths, tmp_path: Path) -> None:
    dead = deaths.run(counting(tmp_path, "a"), "after:3")
    assert (entries(deaths.jobs, dead.id)[-1]["do"], ran(tmp_path)) == ("begin", [])

    ended = deaths.resume(dead.id)

    assert ended is not None and ended.status is JobStatus.COMPLETED
    assert ran(tmp_path) == ["a"]
    assert faults(deaths.jobs, ["a"]) == []


@pytest.mark.req("K-05")
def test_one_that_died_before_it_wrote_anything_is_known_by_its_job(deaths: Deaths, tmp_path: Path) -> None:
    dead = deaths.run(counting(tmp_path, "a"), "before:1")

    ended = deaths.resume(dead.id)

    assert ended is not None and ended.status is JobStatus.COMPLETED
    assert ran(tmp_path) == ["a"]


@pytest.mark.req("K-05", "K-08")
def test_a_run_whose_keeper_is_killed_goes_on_without_the_step_being_lost(jobs: Jobs, tmp_path: Path) -> None:
    spec = Workflow({"steps": [{"id": "a", "run": f"echo a >> {tmp_path}/ran; test -e {tmp_path}/go || sleep 300"}]})
    job = jobs.start(spec)
    until(lambda: ran(tmp_path) == ["a"], what="the step to run")
    kill_keeper(jobs, job)
    assert jobs.wait(job.id, timeout=20).is_final

    (tmp_path / "go").touch()
    ended = jobs.wait(jobs.start(Workflow.resume(job.id, home=jobs.home)).id, timeout=20)

    assert ended.status is JobStatus.COMPLETED, Path(ended.output_file).read_text(encoding="utf-8")
    assert (ran(tmp_path), jobs.list()) == (["a", "a"], [])


@pytest.mark.req("K-05")
def test_what_was_stopped_goes_on(jobs: Jobs, tmp_path: Path) -> None:
    spec = Workflow(
        {
            "steps": [
                {"id": "a", "run": f"echo a >> {tmp_path}/ran"},
                {"id": "b", "needs": ["a"], "run": f"echo b >> {tmp_path}/ran; test -e {tmp_path}/go || sleep 300"},
            ]
        }
    )
    job = jobs.start(spec)
    until(lambda: ran(tmp_path) == ["a", "b"], what="the second step to run")
    jobs.stop(job.id)

    (tmp_path / "go").touch()
    ended = jobs.wait(jobs.start(Workflow.resume(job.id, home=jobs.home)).id, timeout=20)

    assert (ended.status, ran(tmp_path)) == (JobStatus.COMPLETED, ["a", "b", "b"])


@pytest.mark.req("K-05")
def test_what_failed_runs_again_on_wish_with_what_was_skipped_for_it(jobs: Jobs, tmp_path: Path) -> None:
    spec = Workflow(
        {
            "steps": [
                {"id": "good", "run": f"echo good >> {tmp_path}/ran"},
                {"id": "bad", "needs": ["good"], "run": f"test -e {tmp_path}/mended"},
                {"id": "after", "needs": ["bad"], "run": f"echo after >> {tmp_path}/ran"},
            ]
        }
    )
    failed = jobs.run(spec, timeout=20)
    assert failed.status is JobStatus.FAILED
    with pytest.raises(Conflict, match="--failed"):
        Workflow.resume(failed.id, home=jobs.home)

    (tmp_path / "mended").touch()
    ended = jobs.run(Workflow.resume(failed.id, failed=True, home=jobs.home), timeout=20)

    assert (ended.status, ran(tmp_path)) == (JobStatus.COMPLETED, ["good", "after"])


def test_a_run_that_somebody_works_on_is_left_to_them(jobs: Jobs) -> None:
    job = jobs.start(Workflow({"steps": [{"run": "sleep 300"}]}))

    with pytest.raises(Conflict, match=job.id):
        Workflow.resume(job.id, home=jobs.home)


def test_two_that_go_on_with_a_run_at_once_are_one(deaths: Deaths, tmp_path: Path) -> None:
    dead = deaths.run(counting(tmp_path, "a", "b"), "after:4")
    spec = Workflow.resume(dead.id, home=deaths.jobs.home)

    first, second = deaths.jobs.start(spec), deaths.jobs.start(spec)

    ended = deaths.jobs.wait_all([first.id, second.id], timeout=30)
    assert {job.status for job in ended} == {JobStatus.COMPLETED}
    assert ran(tmp_path) == ["a", "b"]


def test_what_is_no_run_is_refused(jobs: Jobs) -> None:
    shell = jobs.run(Shell("true"), timeout=20)

    with pytest.raises(BadValue, match="local_bash"):
        Workflow.resume(shell.id, home=jobs.home)
    with pytest.raises(JobNotFound):
        Workflow.resume("w00000000", home=jobs.home)
    with pytest.raises(BadJobId):
        Workflow.resume("../etc", home=jobs.home)


def test_old_runs_are_forgotten_with_old_jobs(jobs: Jobs, tmp_path: Path) -> None:
    old = jobs.run(counting(tmp_path, "a"), timeout=20)
    journal = Path(jobs.home, "workflows", old.id, "journal", "0.jsonl")
    os.utime(journal, (0, 0))

    new = jobs.run(counting(tmp_path, "a"), timeout=20)

    assert os.listdir(f"{jobs.home}/workflows") == [new.id]


def test_a_step_that_is_killed_by_itself_has_failed(jobs: Jobs) -> None:
    job = jobs.start(Workflow({"steps": [{"id": "a", "run": "exec sleep 300"}]}))
    until(lambda: any(each.pid for each in jobs.list() if each.parent == job.id), what="the step to run")
    [step] = [each for each in jobs.list() if each.parent == job.id]
    assert step.pid
    os.kill(step.pid, signal.SIGKILL)

    ended = jobs.wait(job.id, timeout=20)

    assert ended.end is not None and ended.end.error == "step a failed: killed by signal 9"


@pytest.mark.req("K-05", "B-08")
@pytest.mark.parametrize("given", ["in the file", "by hand"])
def test_a_workflow_has_a_time_limit_of_its_own_and_goes_on_after_it(jobs: Jobs, tmp_path: Path, given: str) -> None:
    steps = [
        {"id": "a", "run": f"echo a >> {tmp_path}/ran"},
        {"id": "b", "needs": ["a"], "run": f"test -e {tmp_path}/go || sleep 600; echo b >> {tmp_path}/ran"},
    ]
    limited = Workflow({"name": "slow", "steps": steps, **({"timeout": "2s"} if given == "in the file" else {})})
    ended = jobs.run(limited if given == "in the file" else limited._replace(timeout=2.0), timeout=60)
    assert ended.end is not None
    assert (ended.status, ended.end.cause, ran(tmp_path)) == (JobStatus.KILLED, "timeout", ["a"])

    (tmp_path / "go").touch()
    again = jobs.run(Workflow.resume(ended.id, home=jobs.home)._replace(timeout=60.0), timeout=60)
    assert (again.status, ran(tmp_path)) == (JobStatus.COMPLETED, ["a", "b"])
