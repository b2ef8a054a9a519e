"""Stopping, pausing and typing into jobs, from any process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.jobs import marked
from support.wait import until
from taskyard.errors import BadJobId, BadText, JobEnded, JobNotFound
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus

TREE = """
setsid sh -c 'sleep 9373.5 & exec sleep 9373.5' &
nohup sleep 9373.5 >/dev/null 2>&1 &
python3 -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "9373.5"])
    os._exit(0)
' &
sleep 9373.5 | sleep 9373.5
"""


@pytest.mark.req("B-09")
def test_a_whole_tree_is_gone_when_stop_answers_whatever_it_did_to_get_away(jobs: Jobs) -> None:
    job = jobs.start(Shell(TREE))
    until(lambda: len(marked("9373.5")) >= 6)

    began = time.monotonic()
    stopped = jobs.stop(job.id, grace=0.3)[0]

    assert (stopped.outcome, time.monotonic() - began < 1.3) == ("stopped", True)
    assert marked("9373.5") == []


@pytest.mark.req("B-09")
def test_nobody_escapes_by_forking_faster_than_we_look(jobs: Jobs) -> None:
    job = jobs.start(
        Shell("trap '' TERM; f() { sleep 9374.5 & f2 & }; f2() { sleep 9374.5 & }; while :; do f; sleep 0.01; done")
    )
    until(lambda: len(marked("9374.5")) >= 5)

    assert jobs.stop(job.id, grace=0.1)[0].outcome == "stopped"
    assert marked("9374.5") == []


@pytest.mark.req("B-07", "B-09")
def test_another_process_lists_waits_for_and_stops_what_a_dead_one_started(jobs: Jobs) -> None:
    script = f"""
import os, sys
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
print(Jobs({jobs.home!r}).start(Shell("echo up; sleep 9375.5")).id, flush=True)
os.kill(os.getpid(), 9)
"""
    starter = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    job_id = starter.stdout.strip()
    assert starter.returncode == -9

    assert [job.id for job in jobs.list()] == [job_id]
    assert jobs.wait(job_id, timeout=0.05).status is JobStatus.RUNNING
    until(lambda: Path(jobs.get(job_id).output_file).read_text(encoding="utf-8") == "up\n")
    assert jobs.stop(job_id)[0].outcome == "stopped"
    assert marked("9375.5") == []


@pytest.mark.req("B-10")
def test_a_job_of_an_agent_ends_with_it_unless_it_shall_be_kept(jobs: Jobs) -> None:
    script = f"""
import os, sys
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
jobs = Jobs({jobs.home!r}, agent="ada")
print(jobs.start(Shell("sleep 60")).id, jobs.start(Shell("sleep 60", on_parent_exit="keep")).id, flush=True)
os.kill(os.getpid(), 9)
"""
    starter = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    ends, stays = starter.stdout.split()

    ended = jobs.wait(ends, timeout=10)

    assert ended.end is not None
    assert (ended.end.cause, ended.end.by) == ("stopped", "its starter's exit")
    assert jobs.get(stays).status is JobStatus.RUNNING


@pytest.mark.req("B-10", "B-11")
def test_a_command_in_the_foreground_may_be_put_off_so_that_it_outlives_its_agent(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = f"""
import time
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.jobs import Jobs
jobs = Jobs({jobs.home!r}, agent="ada")
job = jobs.start(Shell("until [ -e go ]; do sleep 0.02; done; echo survived", cwd={os.getcwd()!r}), backgrounded=False)
jobs.to_background(job.id, keep=True)
print(job.id, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        job_id = agent.stdout.readline().strip()
        agent.kill()
    job = jobs.get(job_id)
    assert (job.status, job.is_backgrounded, job.on_parent_exit) == (JobStatus.RUNNING, True, "keep")
    Path("go").touch()
    assert jobs.wait(job_id, timeout=20).status is JobStatus.COMPLETED


@pytest.mark.req("B-09")
def test_a_job_can_be_asked_to_stop_without_waiting_for_the_proof(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 9374.5"))
    assert jobs.ask_to_stop(job.id).status is JobStatus.RUNNING
    ended = jobs.wait(job.id, timeout=20)
    assert ended.end is not None
    assert (ended.end.cause, ended.end.proof) == ("stopped", "proved")
    assert jobs.ask_to_stop(job.id).is_final


@pytest.mark.req("B-14")
def test_a_paused_job_stands_still_and_so_does_its_clock(jobs: Jobs) -> None:
    job = jobs.start(Shell("while :; do echo x; sleep 0.02; done", timeout=0.5))
    until(lambda: os.path.getsize(job.output_file) > 0)

    assert jobs.pause(job.id) and not jobs.pause(job.id)
    size = os.path.getsize(job.output_file)
    time.sleep(0.6)  # longer than its time limit
    assert os.path.getsize(job.output_file) - size <= 2
    assert jobs.get(job.id).is_paused
    assert jobs.resume(job.id) and not jobs.resume(job.id)
    ended = jobs.wait(job.id, timeout=10)

    assert ended.end is not None
    assert ended.end.cause == "timeout" and ended.end.paused_ms >= 550


@pytest.mark.req("O-08", "B-07")
@pytest.mark.parametrize("how", [{"stdin": True}, {"pty": True}])
def test_any_client_can_type_into_a_job_that_takes_input(jobs: Jobs, how: dict[str, bool]) -> None:
    job = jobs.start(Shell('read -r line; echo "got $line"', stdin="stdin" in how, pty="pty" in how))

    assert Jobs(jobs.home).send(job.id, "hello\n")

    assert jobs.wait(job.id, timeout=10).status is JobStatus.COMPLETED
    assert "got hello" in Path(job.output_file).read_text(encoding="utf-8")


@pytest.mark.req("O-01", "O-08")
def test_a_job_without_input_reads_nothing_and_says_that_it_takes_none(jobs: Jobs) -> None:
    assert jobs.run(Shell("read -r line"), timeout=10).end is not None
    job = jobs.start(Shell("sleep 60"))

    assert not jobs.send(job.id, "hello\n")
    with pytest.raises(BadText):
        jobs.send(job.id, "x" * 1_000_001)


@pytest.mark.req("B-06", "B-09")
def test_what_is_over_or_was_never_there_is_told_as_such(jobs: Jobs) -> None:
    job = jobs.run(Shell("true"), timeout=10)
    with pytest.raises(JobEnded):
        jobs.pause(job.id)
    with pytest.raises(JobNotFound):
        jobs.get("b12345678")
    for hostile in ("../../etc", "b\0" + "x" * 7, "", "x" * 500, "b1234567/", "B12345678"):
        with pytest.raises(BadJobId):
            jobs.get(hostile)


@pytest.mark.req("B-09")
def test_a_keeper_that_is_asked_to_end_ends_its_job_first(jobs: Jobs) -> None:
    from taskyard.jobs.job_dir import JobPaths, supervisor_pid

    job = jobs.start(Shell("sleep 60"))
    keeper = supervisor_pid(JobPaths(jobs.home, job.id))
    assert keeper
    os.kill(keeper, 15)

    ended = jobs.wait(job.id, timeout=10)
    assert ended.end is not None
    assert (ended.end.cause, ended.end.proof) == ("stopped", "proved")
