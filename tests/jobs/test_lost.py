"""What a killed keeper leaves is ended: also a command that was just being started, and nobody else."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from support.ended_jobs import job_folder
from support.jobs import kill_keeper
from support.racing import fork
from support.wait import until
from taskyard.core.system import process_alive, process_start, this_host
from taskyard.jobs import recovery
from taskyard.jobs.job_dir import JobPaths, live_folder
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.supervisor import kernel
from taskyard.jobs.supervisor.io import supervisor_name


@contextmanager
def keeper_that_starts_its_command(folder: JobPaths, *, dies: bool, session: bool) -> Iterator[tuple[int, int]]:
    """A process called as a keeper, nobody's child as keepers are, and a child of it that is not yet the command."""
    hear, tell = os.pipe()
    between = fork()
    if not between:
        if not os.fork():
            _keep(folder, tell, session=session)
        os._exit(0)
    os.waitpid(between, 0)
    os.close(tell)
    with os.fdopen(hear) as pipe:
        keeper, child = map(int, pipe.readline().split())
        start, lived = process_start(child), process_start(keeper)
    try:
        if dies:
            os.kill(keeper, signal.SIGKILL)
            until(lambda: not process_alive(keeper, lived))
        yield child, start
    finally:
        for pid, since in ((child, start), (keeper, lived)):
            if process_alive(pid, since):
                os.kill(pid, signal.SIGKILL)


def _keep(folder: JobPaths, tell: int, *, session: bool) -> None:
    """Hold the job's lock and pipe, fork, and stay so."""
    os.setsid()
    kernel.set_process_name(supervisor_name(folder.id))
    fcntl.lockf(os.open(folder.lock, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
    os.mkfifo(folder.control)
    os.open(folder.control, os.O_RDWR)
    keeper = os.getpid()
    if not os.fork():
        if session:  # a terminal needs one
            os.setsid()
        os.write(tell, b"%d %d\n" % (keeper, os.getpid()))
    os.close(tell)
    while True:
        signal.pause()


def recorded(home: str, job_id: str) -> JobPaths:
    made = job_folder(home, host=this_host())
    folder = JobPaths(home, job_id)
    os.rename(made.path, folder.path)
    text = Path(folder.record).read_text(encoding="utf-8").replace(made.id, job_id)
    Path(folder.record).write_text(text, encoding="utf-8")
    os.makedirs(live_folder(home), exist_ok=True)
    Path(folder.living).touch()
    return folder


@pytest.mark.req("B-08", "B-09")
@pytest.mark.parametrize("session", [False, True], ids=["command", "command with a terminal"])
@pytest.mark.parametrize("look", [Jobs.list, lambda jobs: jobs.get("bsame0one")], ids=["list", "get"])
def test_a_command_that_was_just_being_started_when_its_keeper_was_killed_is_ended(
    jobs: Jobs, session: bool, look: Callable[[Jobs], object]
) -> None:
    gone, other = recorded(jobs.home, "bsame0one"), recorded(jobs.home, "bsame0two")
    assert supervisor_name(gone.id) == supervisor_name(other.id)  # `ps` shows no more of them
    with (
        keeper_that_starts_its_command(gone, dies=True, session=session) as mine,
        keeper_that_starts_its_command(other, dies=False, session=False) as theirs,
    ):
        look(jobs)

        end = jobs.get(gone.id).end
        assert end is not None and (end.cause, end.survivors) == ("lost", ())
        until(lambda: not process_alive(*mine))
        assert process_alive(*theirs)
        assert jobs.get(other.id).end is None


@pytest.mark.req("B-08", "B-09")
def test_one_that_hides_from_one_look_by_forking_is_found_by_the_next(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = jobs.start(Shell("sleep 60"))
    until(lambda: jobs.get(job.id).pid is not None)
    marked, looks = recovery._marked, count()
    monkeypatch.setattr(recovery, "_marked", lambda job_id: marked(job_id) if next(looks) else [])
    record = Path(JobPaths(jobs.home, job.id).record)
    command, start = (json.loads(record.read_bytes())[name] for name in ("pid", "pidStart"))
    kill_keeper(jobs, job)
    record.write_text(record.read_text(encoding="utf-8").replace('"pid":', '"then":'), encoding="utf-8")

    jobs.list()

    until(lambda: not process_alive(command, start))
