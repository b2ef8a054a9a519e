"""Stop is proof: the whole tree, whoever started it, and what is said where there is no proof."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.cli import taskyard
from support.jobs import marked
from support.wait import until
from taskyard.config import Settings
from taskyard.core.system import stat_fields
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus
from taskyard.jobs.supervisor.child_jobs import write_control

TREE = """
setsid sh -c 'sleep {n} & exec sleep {n}' &
nohup sleep {n} >/dev/null 2>&1 &
python3 -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "{n}"])
    os._exit(0)
' &
sleep {n} | sleep {n}
"""


def keeper(jobs: Jobs, job_id: str) -> int:
    pid = supervisor_pid(JobPaths(jobs.home, job_id))
    assert pid
    return pid


@pytest.mark.req("B-07", "B-09")
def test_a_whole_tree_whose_starter_was_killed_is_gone_within_a_second_of_its_grace(jobs: Jobs) -> None:
    script = f"""
import os
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
print(Jobs({jobs.home!r}, agent="ada").start(Shell({TREE.format(n="9401.5")!r}, on_parent_exit="keep")).id, flush=True)
os.kill(os.getpid(), 9)
"""
    starter = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    until(lambda: len(marked("sleep\x009401.5")) >= 6)
    began = time.monotonic()

    stopped = jobs.stop(starter.stdout.strip(), grace=0.3)[0]

    assert (stopped.outcome, time.monotonic() - began < 1.3) == ("stopped", True)
    assert marked("9401.5") == []


@pytest.mark.req("B-09")
def test_who_survives_is_named_and_the_stop_is_partial(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_HOME", jobs.home)
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root can become somebody else")
    script = f"""
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
print(Jobs({jobs.home!r}).start(Shell("setpriv --reuid 65534 --clear-groups sleep 9402.5")).id)
"""
    powerless = ["setpriv", "--bounding-set=-kill", "--inh-caps=-kill", sys.executable, "-c", script]
    job_id = subprocess.run(powerless, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    until(lambda: any(_owner(pid) == 65534 for pid in marked("9402.5")))
    (survivor,) = marked("sleep\x009402.5")
    try:
        ran = taskyard("stop", job_id, "--grace", "0.1s")
    finally:
        os.kill(survivor, signal.SIGKILL)

    assert (ran.code, "partial" in ran.out, f"still alive: process {survivor}" in ran.out) == (1, True, True)
    end = jobs.get(job_id).end
    assert end is not None
    assert (end.cause, end.proof, end.survivors) == ("stopped", "partial", (survivor,))


def _owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        return -1


@pytest.mark.req("B-09")
@pytest.mark.serial
def test_fifty_jobs_are_stopped_within_five_seconds_also_those_that_ignore_it(outside: Path) -> None:
    jobs = Jobs(str(outside / "taskyard"))
    for number in range(50):
        jobs.start(Shell("trap '' TERM; sleep 9403.5 & wait; wait" if number % 10 == 0 else "sleep 9403.5"))
    until(lambda: len(marked("sleep\x009403.5")) == 50)
    began = time.monotonic()

    ran = taskyard("stop", "--all", "--json")
    took = time.monotonic() - began

    assert (ran.code, [each["outcome"] for each in ran.data], took < 5) == (0, ["stopped"] * 50, True)
    assert marked("9403.5") == []
    jobs.close()


@pytest.mark.req("B-08", "B-09")
def test_what_had_ended_by_itself_before_the_stop_was_heard_is_not_called_stopped(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs.start(Shell(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; exit 4"))
    until(lambda: jobs.get(job.id).pid is not None)
    pid, of_it = jobs.get(job.id).pid, keeper(jobs, job.id)
    os.kill(of_it, signal.SIGSTOP)
    try:
        (tmp_path / "go").touch()
        until(lambda: (fields := stat_fields(str(pid))) is not None and fields[0] == "Z")
        assert write_control(JobPaths(jobs.home, job.id), {"do": "stop"})
    finally:
        os.kill(of_it, signal.SIGCONT)

    ended = jobs.wait(job.id, timeout=10)
    assert ended.end is not None
    assert (ended.end.cause, ended.end.exit_code) == ("exited", 4)


@pytest.mark.req("B-09")
def test_a_job_whose_pipe_was_taken_away_can_still_be_stopped(jobs: Jobs) -> None:
    job = jobs.start(Shell("exec sleep 60"))
    os.unlink(JobPaths(jobs.home, job.id).control)

    assert jobs.stop(job.id)[0].outcome == "stopped"


@pytest.mark.req("B-08", "B-09")
def test_one_inside_a_job_that_was_lost_may_look_and_lives_to_write_it_down(jobs: Jobs, tmp_path: Path) -> None:
    script = f"""
import os
from taskyard.jobs.jobs import Jobs
os.kill(os.getppid(), 9)
lost = Jobs({jobs.home!r}).wait(os.environ["TASKYARD_JOB"], timeout=20)
open({str(tmp_path / "seen")!r}, "w").write(lost.end.cause)
"""
    job = jobs.start(Shell([sys.executable, "-c", script]))
    until(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text(encoding="utf-8"))

    assert (tmp_path / "seen").read_text(encoding="utf-8") == "lost"
    ended = jobs.wait(job.id, timeout=10)
    assert ended.end is not None and ended.end.cause == "lost"


@pytest.mark.req("B-08")
def test_a_keeper_that_fails_says_so_and_leaves_nobody_behind(jobs: Jobs) -> None:
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    job = jobs.start(Shell("(setsid sleep 9404.5 &); sleep 9404.5"))
    until(lambda: len(marked("sleep\x009404.5")) == 2)
    of_it = keeper(jobs, job.id)
    tracer = subprocess.Popen(
        ["strace", "-qq", "-o", "/dev/null", "-p", str(of_it), "-e", "inject=poll:error=EIO"], stderr=subprocess.PIPE
    )
    try:
        traced = Path(f"/proc/{of_it}/status")
        until(lambda: "TracerPid:\t0\n" not in traced.read_text(encoding="ascii"), what="strace is there")
        write_control(JobPaths(jobs.home, job.id), {"do": "nothing"})
        ended = jobs.wait(job.id, timeout=20)
    finally:
        tracer.kill()
        tracer.communicate()

    assert ended.end is not None
    assert (ended.status, ended.end.cause, ended.end.proof) == (JobStatus.FAILED, "error", "proved")
    assert "its supervisor failed" in ended.end.error and "Input/output error" in ended.end.error
    assert marked("sleep\x009404.5") == []


@pytest.mark.req("B-08", "O-02")
def test_a_job_that_cannot_take_its_turn_says_why(jobs: Jobs, tmp_path: Path) -> None:
    jobs.run(Shell("true"), timeout=10)
    path = Path(jobs.home, "slots", "jobs")
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")

    ended = jobs.run(Shell("true"), timeout=10)

    assert ended.end is not None
    assert (ended.status, ended.end.cause) == (JobStatus.FAILED, "error")
    assert "slots/jobs: it is a symbolic link" in ended.end.error
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.req("B-14")
def test_a_pause_holds_the_whole_tree_with_the_jobs_inside_and_no_question_is_told_meanwhile(
    jobs: Jobs, tmp_path: Path
) -> None:
    inner = f"""
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
Jobs({jobs.home!r}, alone=True).start(Shell("sleep 9405.5"))
"""
    (tmp_path / "inner.py").write_text(inner, encoding="utf-8")
    quick = Jobs(jobs.home, settings=Settings(stall_after=0.3))
    job = quick.start(
        Shell(f"{sys.executable} {tmp_path}/inner.py; (setsid sleep 9405.5 &); printf 'Continue? '; sleep 9405.5")
    )
    until(lambda: len(marked("sleep\x009405.5")) == 3)

    def states() -> str:
        found = [stat_fields(str(pid)) for pid in marked("sleep\x009405.5")]
        return "".join(sorted(fields[0] for fields in found if fields))

    assert jobs.pause(job.id)
    until(lambda: states() == "TTT", what="all three stand still")
    told = list(Path(jobs.home).glob("outbox/me/new/*"))
    time.sleep(0.6)  # twice the time after which a question is told
    assert list(Path(jobs.home).glob("outbox/me/new/*")) == told
    assert jobs.resume(job.id)
    until(lambda: states() == "SSS", what="all three go on")
    until(lambda: jobs.get(job.id).needs_input)
    assert jobs.stop(job.id, grace=0.3)[0].outcome == "stopped"
    assert marked("sleep\x009405.5") == []
    quick.close()


@pytest.mark.req("B-12", "O-01")
def test_a_terminal_job_that_is_tried_again_is_not_taken_for_an_orphan(jobs: Jobs) -> None:
    agents = Jobs(jobs.home, agent="ada")
    job = agents.run(Shell("echo try; exit 3", pty=True, retries=2), timeout=20)

    assert job.end is not None
    assert (job.end.cause, job.end.exit_code, job.attempt) == ("exited", 3, 3)
    assert Path(job.output_file).read_text(encoding="utf-8").split() == ["try"] * 3
    agents.close()


@pytest.mark.req("B-12")
@pytest.mark.parametrize("how", ["stdin", "pty"])
def test_a_job_that_is_tried_again_and_again_costs_its_keeper_no_more(jobs: Jobs, tmp_path: Path, how: str) -> None:
    log = tmp_path / "log"
    script = f"echo try >> {log}; [ $(wc -l < {log}) = 1 ] && sleep 0.3; [ $(wc -l < {log}) = 3 ] && sleep 60; exit 1"
    job = jobs.start(Shell(script, retries=5, stdin=how == "stdin", pty=how == "pty"))
    folder = f"/proc/{keeper(jobs, job.id)}/fd"
    until(lambda: log.exists() and log.read_text(encoding="utf-8").count("try") == 1)
    until(lambda: jobs.get(job.id).pid is not None)
    once = len(os.listdir(folder))
    until(lambda: log.read_text(encoding="utf-8").count("try") == 3)

    until(lambda: len(os.listdir(folder)) <= once)


@pytest.mark.req("B-09", "O-04")
def test_a_terminal_that_never_falls_silent_can_be_stopped(jobs: Jobs) -> None:
    job = jobs.start(Shell("yes", pty=True, output_cap=1_000_000))
    until(lambda: os.path.getsize(job.output_file) > 1_000_000)
    began = time.monotonic()

    assert jobs.stop(job.id, grace=0.2)[0].outcome == "stopped"
    assert time.monotonic() - began < 5


@pytest.mark.req("B-09")
def test_a_job_that_is_started_inside_a_stopped_one_on_its_way_out_ends_with_it(jobs: Jobs) -> None:
    inner = f"{sys.executable} -P -m taskyard run -d -- sleep 300"
    job = jobs.start(Shell(f"trap '{inner}; exit 0' TERM; echo up; while :; do sleep 0.05; done", grace=30))
    until(lambda: os.path.getsize(job.output_file) > 0)

    [stopped] = jobs.stop(job.id)

    assert (stopped.outcome, stopped.job.end and stopped.job.end.survivors) == ("stopped", ())
    [started] = [each for each in jobs.list(ended=True) if each.id != job.id]
    assert started.end is not None
    assert (started.end.cause, started.end.by) == ("stopped", stopped.job.end and stopped.job.end.by)
