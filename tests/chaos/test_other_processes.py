"""What one process started, any other lists, follows, awaits and stops, whatever became of the first."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.cli import process
from support.job_chaos import faults_of_ends, orphans
from support.wait import until
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs

#: Starts a job for each line it reads, as a program that lives on does; it has a terminal.
STARTER = """
import os, sys
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.jobs import Jobs
os.open(sys.argv[1], os.O_RDWR)
jobs = Jobs(os.environ["TASKYARD_HOME"])
for line in sys.stdin:
    print(jobs.start(Shell(line)).id, flush=True)
"""


class Starter:
    """Another program, in a session and at a terminal of its own."""

    def __init__(self) -> None:
        self._terminal, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", STARTER, os.ttyname(theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._theirs = theirs

    def start(self, script: str) -> str:
        """The id of a job it started."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{script}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def be_killed(self) -> None:
        self._process.kill()
        assert self._process.wait(10) == -signal.SIGKILL

    def be_hung_up(self) -> None:
        """Close its terminal, as a window is closed."""
        os.close(self._theirs)
        os.close(self._terminal)
        self._terminal = self._theirs = -1
        assert self._process.wait(10) == -signal.SIGHUP

    def lose_its_server(self) -> None:
        pid = self._process.pid
        [server] = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
        assert b"serve" in Path(f"/proc/{server}/cmdline").read_bytes()
        os.kill(int(server), signal.SIGKILL)

    def be_killed_after_its_server(self) -> None:
        self.lose_its_server()
        self.be_killed()

    def close(self) -> None:
        for fd in (self._terminal, self._theirs):
            if fd >= 0:
                os.close(fd)
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def jobs(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    monkeypatch.setenv("TASKYARD_HOME", str(memory / "home"))
    found = Jobs(str(memory / "home"))
    yield found
    found.stop(*[job.id for job in found.list()], grace=0)
    found.close()


@pytest.fixture
def starter(jobs: Jobs) -> Iterator[Starter]:
    found = Starter()
    yield found
    found.close()


FATES: dict[str, Callable[[Starter], object]] = {
    "it lives": lambda starter: None,
    "it was killed": Starter.be_killed,
    "its terminal was closed": Starter.be_hung_up,
    "its server was killed": Starter.lose_its_server,
    "both were killed": Starter.be_killed_after_its_server,
}


@pytest.mark.req("B-07", "B-09", "B-13")
@pytest.mark.parametrize("fate", FATES)
def test_any_process_lists_follows_awaits_and_stops_what_another_started(
    jobs: Jobs, starter: Starter, fate: str
) -> None:
    short = starter.start("while ! test -e $TASKYARD_HOME/go; do sleep 0.02; done; echo done; exit 3")
    long = starter.start("echo up; sleep 60 & sleep 60")
    until(lambda: process("logs", long).out == "up\n")

    FATES[fate](starter)

    assert {job["id"]: job["status"] for job in process("ps", "--json").data} == {short: "running", long: "running"}
    assert process("wait", long, "--timeout", "0.01").code == 124
    Path(jobs.home, "go").touch()
    waited = process("wait", short, "--timeout", "10s", "--json")
    assert (waited.code, waited.data["status"], waited.data["cause"]) == (3, "failed", "exited")
    assert process("logs", short, "--tail", "1").out == "done\n"
    assert process("stop", long, "--json").data["outcome"] == "stopped"
    assert process("ps", "--json").data == []
    assert faults_of_ends(jobs, [short, long]) == []
    assert orphans(jobs.home) == {}


@pytest.mark.req("B-07", "B-08")
def test_who_lost_the_server_of_keepers_starts_another_and_the_first_jobs_keep_their_keepers(
    jobs: Jobs, starter: Starter
) -> None:
    first = [starter.start("sleep 60") for _ in range(3)]
    supervisors = [supervisor_pid(JobPaths(jobs.home, job_id)) for job_id in first]

    starter.lose_its_server()
    second = starter.start("sleep 60")

    assert [supervisor_pid(JobPaths(jobs.home, job_id)) for job_id in first] == supervisors
    assert all(supervisors)
    assert {job.id for job in jobs.list()} == {*first, second}
    assert [each.outcome for each in jobs.stop(*first, second, grace=0.2)] == ["stopped"] * 4


@pytest.mark.req("B-11", "B-07")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_job_that_somebody_watched_goes_on_and_is_told_of_when_the_watcher_is_gone(
    jobs: Jobs, number: signal.Signals
) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "taskyard", "run", "--", "echo up; sleep 60"]
    watcher = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    until(lambda: [job.id for job in jobs.list() if os.path.getsize(job.output_file)])

    watcher.send_signal(number)
    assert watcher.wait(10) in (-number, 128 + number)
    os.close(ours)

    [job] = jobs.list()
    until(lambda: jobs.get(job.id).is_backgrounded)
    assert process("logs", job.id).out == "up\n"
    assert process("stop", job.id, "--json").data["outcome"] == "stopped"
    assert faults_of_ends(jobs, [job.id]) == []
    assert orphans(jobs.home) == {}
