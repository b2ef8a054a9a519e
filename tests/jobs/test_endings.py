"""More of the truth about how a job ended; the whole table is in `test_twelve_endings`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from support.jobs import kill_keeper, marked
from support.wait import until
from taskyard.core.system import stat_fields
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus

FAILED, KILLED = JobStatus.FAILED, JobStatus.KILLED


@pytest.mark.req("B-08", "K-01")
@pytest.mark.parametrize(
    ("spec", "status", "cause", "code", "signal"),
    [
        (Shell("no-such-command"), FAILED, "exited", 127, None),
        (Shell(["./no/such/command"]), FAILED, "error", 127, None),
        (Shell(["/etc"]), FAILED, "error", 126, None),
        (Shell("trap 'exit 5' TERM; while :; do sleep 0.01; done", timeout=0.2), KILLED, "timeout", 5, None),
        (Shell("trap '' TERM; sleep 60 & wait; wait", timeout=0.1, grace=0.1), KILLED, "timeout", None, 9),
    ],
    ids=lambda value: value.text if isinstance(value, Shell) else "",
)
def test_a_job_ends_as_its_command_did(
    jobs: Jobs, spec: Shell, status: JobStatus, cause: str, code: int | None, signal: int | None
) -> None:
    job = jobs.run(spec, timeout=20)

    assert job.end is not None
    assert (job.status, job.end.cause, job.end.exit_code, job.end.signal) == (status, cause, code, signal)
    assert job.end.proof == "proved"


@pytest.mark.req("B-08", "B-09")
@pytest.mark.parametrize(("command", "signal"), [("sleep 60", 15), ("trap '' TERM; sleep 60 & wait; wait", 9)])
def test_a_stopped_job_says_so_whether_it_obeyed_or_not(jobs: Jobs, command: str, signal: int) -> None:
    job = jobs.start(Shell(f"echo up; {command}"))
    until(lambda: Path(job.output_file).read_text(encoding="utf-8") == "up\n")

    stopped = jobs.stop(job.id, grace=0.2)[0]

    assert stopped.outcome == "stopped"
    end = stopped.job.end
    assert end is not None
    assert (stopped.job.status, end.cause, end.signal, end.proof) == (KILLED, "stopped", signal, "proved")
    assert jobs.stop(job.id)[0].outcome == "already_ended"


@pytest.mark.req("B-08", "B-05")
def test_a_job_whose_keeper_was_killed_is_lost_and_what_it_left_is_ended(jobs: Jobs) -> None:
    job = jobs.start(Shell("(setsid sleep 9371.5 &); sleep 9371.5"))
    until(lambda: len(marked("9371.5")) >= 2)

    kill_keeper(jobs, job)
    lost = jobs.wait(job.id, timeout=10)

    assert lost.end is not None
    assert (lost.status, lost.end.cause, lost.end.proof) == (FAILED, "lost", "best_effort")
    assert lost.end.error == "its supervisor is gone and left no record of how it ended"
    until(lambda: not marked("9371.5"))


@pytest.mark.req("B-08")
def test_after_a_restart_of_the_machine_a_job_is_lost_and_no_stranger_is_touched(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 60"))
    until(lambda: jobs.get(job.id).pid is not None)
    kill_keeper(jobs, job)
    folder = JobPaths(jobs.home, job.id)
    record = json.loads(Path(folder.record).read_text(encoding="utf-8"))
    stranger = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
    Path(folder.record).write_text(json.dumps({**record, "host": "m/another-boot", "pid": stranger}), encoding="utf-8")

    lost = jobs.wait(job.id, timeout=10)

    assert lost.end is not None
    assert (lost.end.cause, lost.end.error) == ("lost", "the machine was restarted")
    assert os.waitpid(stranger, os.WNOHANG) == (0, 0)
    for pid in (stranger, record["pid"]):
        os.kill(pid, 9)
    os.waitpid(stranger, 0)


@pytest.mark.req("B-08")
def test_a_recorded_number_without_its_start_is_nobodys(jobs: Jobs) -> None:
    job = jobs.start(Shell(["env", "-i", "sleep", "60"]))
    until(lambda: jobs.get(job.id).pid is not None)
    kill_keeper(jobs, job)
    folder = JobPaths(jobs.home, job.id)
    record = json.loads(Path(folder.record).read_text(encoding="utf-8"))
    Path(folder.record).write_text(json.dumps({**record, "pidStart": record["pidStart"] + 1}), encoding="utf-8")

    jobs.wait(job.id, timeout=10)

    os.kill(record["pid"], 9)  # it lives: a number that was given out again would have been a stranger's


@pytest.mark.req("B-08")
def test_the_job_ends_with_its_command_and_leftovers_are_stopped_and_counted(jobs: Jobs) -> None:
    job = jobs.run(Shell("setsid sleep 9372.5 & nohup sleep 9372.5 & exit 7", grace=0.2), timeout=20)

    assert job.end is not None
    assert (job.end.cause, job.end.exit_code, job.end.leftovers) == ("exited", 7, 2)
    assert not marked("9372.5")


@pytest.mark.req("B-08")
def test_children_that_may_stay_keep_the_job_going(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 0.3 & exit 7", leave_children=True))
    began = time.monotonic()

    ended = jobs.wait(job.id, timeout=10)

    assert time.monotonic() - began > 0.2
    assert ended.end is not None
    assert (ended.end.exit_code, ended.end.leftovers) == (7, 0)


@pytest.mark.req("B-08", "B-09")
def test_a_stop_of_children_that_may_stay_is_one_and_the_job_ended_as_its_command_did(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 9394.5 & setsid sleep 9394.5 & exit 3", leave_children=True))
    until(lambda: jobs.get(job.id).left_running)

    (stopped,) = jobs.stop(job.id)

    end = stopped.job.end
    assert end is not None
    assert (stopped.outcome, end.cause, end.exit_code, end.leftovers) == ("stopped", "exited", 3, 2)
    assert (end.by != "", stopped.job.left_running, marked("9394.5")) == (True, False, [])
    assert jobs.stop(job.id)[0].outcome == "already_ended"


@pytest.mark.req("B-08")
def test_a_time_limit_holds_for_children_that_may_stay(jobs: Jobs) -> None:
    job = jobs.run(Shell("sleep 9394.7 & exit 0", leave_children=True, timeout=0.5), timeout=10)

    assert job.end is not None
    assert (job.end.cause, job.end.exit_code, job.end.leftovers) == ("exited", 0, 1)
    assert "time limit" in job.end.by
    assert not marked("9394.7")


@pytest.mark.req("B-09")
def test_a_stop_while_leftovers_end_can_only_make_it_faster(jobs: Jobs, tmp_path: Path) -> None:
    stubborn = f"( trap '' TERM; touch {tmp_path}/deaf; while :; do sleep 0.05; done )"
    job = jobs.start(Shell(f"{stubborn} & until [ -e {tmp_path}/deaf ]; do sleep 0.01; done; exit 3", grace=0.8))
    until(lambda: (pid := jobs.get(job.id).pid) is not None and stat_fields(str(pid)) is None)
    began = time.monotonic()

    (stopped,) = jobs.stop(job.id, grace=30.0)

    end = stopped.job.end
    assert end is not None
    assert (stopped.outcome, end.cause, end.exit_code) == ("already_ended", "exited", 3)
    assert time.monotonic() - began < 5
