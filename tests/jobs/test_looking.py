"""What a look finds and completes: lost jobs, ends that somebody died over, and nothing of what is over for a list."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.ended_jobs import end_job, finish_halfway, job_folder
from support.jobs import kill_keeper
from support.killing import calls_of
from support.wait import until
from taskyard.core.system import now_ms
from taskyard.jobs import gc
from taskyard.jobs.job_dir import JobPaths, live_folder, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import End, JobStatus
from taskyard.jobs.notices import Outbox
from taskyard.jobs.start import is_created


def names_of_the_living(jobs: Jobs) -> list[str]:
    return sorted(os.listdir(live_folder(jobs.home)))


@pytest.mark.req("B-05")
@pytest.mark.parametrize(
    "look",
    [
        lambda jobs, _: jobs.list(),
        lambda jobs, _: jobs.list(ended=True),
        lambda jobs, job_id: jobs.get(job_id),
        lambda jobs, job_id: jobs.wait(job_id),
        lambda jobs, _: Outbox(jobs.home).waiting(),
    ],
    ids=["list", "list all", "get", "wait", "notices"],
)
def test_whoever_looks_sends_the_notice_that_a_keeper_died_over(
    jobs: Jobs, look: Callable[[Jobs, str], object]
) -> None:
    folder = job_folder(jobs.home)
    finish_halfway(folder, End("exited", 0, at=now_ms()))
    os.mkdir(live_folder(jobs.home))
    Path(folder.living).touch()

    look(jobs, folder.id)

    assert not os.path.lexists(folder.notice)
    assert [notice.task_id for notice in Outbox(jobs.home).waiting()] == [folder.id]
    jobs.list()
    assert names_of_the_living(jobs) == []


@pytest.mark.req("B-05", "B-13")
def test_a_receiver_that_waits_hears_of_a_lost_job_although_nobody_looks(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 60"))
    outbox = Outbox(jobs.home)
    assert not outbox.wait(0.01)

    began = time.monotonic()
    kill_keeper(jobs, job)

    assert outbox.wait(10)
    assert time.monotonic() - began < 5
    assert [(notice.task_id, notice.status) for notice in outbox.waiting()] == [(job.id, "failed")]


@pytest.mark.req("B-05", "B-08")
def test_an_end_that_cannot_be_read_is_an_end_and_makes_no_second_notice(jobs: Jobs) -> None:
    job = jobs.start(Shell("true"))
    jobs.wait(job.id, timeout=20)
    until(lambda: supervisor_pid(JobPaths(jobs.home, job.id)) is None)
    Path(JobPaths(jobs.home, job.id).end).write_bytes(b"\xff garbage")

    found = [jobs.get(job.id), jobs.wait(job.id, timeout=5), *jobs.list(ended=True)]

    assert {(each.status, each.end.error if each.end else "") for each in found} == {
        (JobStatus.FAILED, "how it ended cannot be read")
    }
    assert [notice.status for notice in Outbox(jobs.home).waiting()] == ["completed"]


@pytest.mark.req("B-08")
def test_a_lost_job_is_lost_also_where_that_cannot_be_written(jobs: Jobs) -> None:
    folder = job_folder(jobs.home)
    os.symlink("elsewhere", folder.lock)  # nobody follows it, so nobody can take the lock

    found = jobs.get(folder.id)

    assert found.end is not None
    assert (found.status, found.end.cause) == (JobStatus.FAILED, "lost")
    assert not os.path.lexists(folder.end)


@pytest.mark.req("B-10", "B-09")
def test_jobs_inside_a_lost_one_end_with_it_unless_they_shall_be_kept(jobs: Jobs) -> None:
    inner = "import sys, time; from taskyard.jobs.kinds.shell import Shell; from taskyard.jobs.jobs import Jobs"
    start = "; ".join(
        f"Jobs({jobs.home!r}, alone=True).start(Shell('sleep 60', on_parent_exit={how!r}))" for how in ("kill", "keep")
    )
    outer = jobs.start(Shell(["python3", "-c", f"{inner}; {start}; time.sleep(60)"]))
    until(lambda: len([job for job in jobs.list() if job.parent == outer.id]) == 2, what="two jobs inside")

    kill_keeper(jobs, outer)
    assert jobs.wait(outer.id, timeout=10).end is not None

    inside = [job for job in jobs.list(ended=True) if job.parent == outer.id]
    until(lambda: sorted(jobs.get(job.id).status for job in inside) == ["killed", "running"])
    stopped = next(ended for job in inside if (ended := jobs.get(job.id).end))
    assert (stopped.cause, stopped.by) == ("stopped", f"the loss of {outer.id}")


@pytest.mark.req("B-07")
def test_a_job_that_names_itself_as_one_inside_keeps_its_keeper(jobs: Jobs) -> None:
    script = 'cd "$TASKYARD_HOME/jobs/$TASKYARD_JOB"; mkdir children; touch "children/$TASKYARD_JOB"; sleep 60'
    job = jobs.start(Shell(script))
    until(lambda: os.path.exists(f"{JobPaths(jobs.home, job.id).children}/{job.id}"))

    assert jobs.pause(job.id)  # for which the keeper asks who is inside

    assert jobs.get(job.id).is_paused
    assert jobs.stop(job.id, grace=0.1)[0].outcome == "stopped"


@pytest.mark.req("B-07", "B-06")
def test_a_list_of_the_living_costs_the_same_however_many_are_over(jobs: Jobs) -> None:
    running = jobs.start(Shell("sleep 60"))
    few = len(calls_of(lambda: jobs.list))
    for _ in range(50):
        end_job(jobs.home)

    assert len(calls_of(lambda: jobs.list)) == few
    assert [job.id for job in jobs.list()] == [running.id]
    assert len(jobs.list(ended=True)) == 51


@pytest.mark.req("B-07")
def test_a_job_has_a_name_among_the_living_until_its_end_is_told(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 60"))
    assert names_of_the_living(jobs) == [job.id]

    jobs.stop(job.id, grace=0.1)

    assert names_of_the_living(jobs) == []


@pytest.mark.req("B-03")
def test_what_a_keeper_leaves_that_was_killed_over_its_birth_is_in_nobodys_way(jobs: Jobs) -> None:
    request = jobs.request(Shell("true"))
    folder = JobPaths(jobs.home, str(request["id"]))
    os.makedirs(folder.incomplete)
    os.mkdir(live_folder(jobs.home))
    for path in (f"{folder.incomplete}/output", folder.living):
        Path(path).touch()

    assert jobs.list() == []
    assert not is_created(request, b"")  # so whoever started it asks once more

    assert (os.path.lexists(folder.incomplete), names_of_the_living(jobs)) == (False, [])


@pytest.mark.req("O-04")
def test_gc_removes_old_names_that_lead_to_no_job(jobs: Jobs) -> None:
    running = jobs.start(Shell("sleep 60"))
    for name, age in {"b00000000": 4000, "b00000001": 10, running.id: 4000}.items():
        path = Path(live_folder(jobs.home), name)
        path.touch()
        os.utime(path, (time.time() - age,) * 2)

    gc.collect(jobs.home, quota=1 << 30, age_limit=1e6)

    assert names_of_the_living(jobs) == ["b00000001", running.id]
