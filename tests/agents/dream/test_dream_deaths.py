"""A dream that is killed: the memory is whole, the time of the last one is put back, its end is told once."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

import taskyard
from support.dreams import GOOD, PRIOR, Memory
from support.scale import scale
from support.wait import until
from taskyard.agents.dream import staging
from taskyard.agents.dream.staging import DreamDir
from taskyard.errors import DreamHeld
from taskyard.jobs.events import Events
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job

OLD = {"MEMORY.md": "# Index\n", "stale.md": "It is Tuesday.\n"}
NEW = {"MEMORY.md": "# Index\n- style.md: tabs\n", "style.md": "Use tabs.\n"}


def endless(memory: Memory) -> taskyard.Dream:
    command = memory.program("open('MEMORY.md', 'w').write('half'); time.sleep(600)")
    return taskyard.Dream(str(memory.path), command=command, cwd=str(memory.project), force=True)


def begun(jobs: Jobs, spec: taskyard.Dream) -> Job:
    job = jobs.start(spec)
    until(lambda: jobs.get(job.id).facts.get("phase") == "updating", timeout=20)
    return jobs.get(job.id)


def ends(jobs: Jobs, job: Job) -> int:
    """How often the end of a job was told to those who follow events."""
    events = Events(jobs.home, job=job.id)
    try:
        return sum(event.is_end for event in events)
    finally:
        events.close()


@pytest.mark.req("K-07", "B-08")
@pytest.mark.parametrize("victim", ["keeper", "process", "both"])
def test_after_a_kill_the_next_look_puts_the_time_back(jobs: Jobs, tmp_path: Path, victim: str) -> None:
    memory = Memory(tmp_path)
    job = begun(jobs, endless(memory))
    assert memory.last_done > PRIOR
    keeper = supervisor_pid(JobPaths(jobs.home, job.id))
    assert keeper is not None
    assert job.pid is not None
    for pid, name in ((keeper, "keeper"), (job.pid, "process")):
        if victim in (name, "both"):
            os.kill(pid, signal.SIGKILL)

    ended = jobs.wait(job.id, timeout=30)
    assert ended.status.value == "failed"
    assert memory.texts == OLD
    until(lambda: not staging.is_running(memory.side), timeout=20)
    staging.recover_if_idle(memory.side)

    assert memory.last_done == PRIOR
    assert not os.path.lexists(memory.side.claim)
    assert not os.path.lexists(memory.side.work)
    assert ends(jobs, ended) == 1


@pytest.mark.req("K-07")
@pytest.mark.parametrize("force", [False, True])
def test_the_next_dream_clears_up_after_one_that_was_killed(jobs: Jobs, tmp_path: Path, force: bool) -> None:
    memory = Memory(tmp_path)
    job = begun(jobs, endless(memory))
    assert job.pid is not None
    os.kill(job.pid, signal.SIGKILL)
    jobs.wait(job.id, timeout=30)

    spec = endless(memory)._replace(command=memory.program(GOOD), force=force)
    done = jobs.run(spec, timeout=50)

    assert done.status.value == "completed", done.end
    assert done.facts["priorMtime"] == PRIOR // 1_000_000
    assert memory.texts == NEW


@pytest.mark.req("K-07")
def test_of_many_that_are_started_together_one_dreams(jobs: Jobs, tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    command = memory.program(f"wait('{tmp_path}/go')\n" + GOOD)
    spec = taskyard.Dream(str(memory.path), command=command, cwd=str(memory.project), force=True)
    many: list[Job] = []
    for _ in range(scale(40, least=4)):
        with contextlib.suppress(DreamHeld):  # once the first has the lock, the others are not even begun
            many.append(jobs.start(spec))
    until(lambda: sum(jobs.get(job.id).is_final for job in many) == len(many) - 1, timeout=40)
    (tmp_path / "go").touch()
    ended = [jobs.wait(job.id, timeout=40) for job in many]

    assert sorted(job.status.value for job in ended) == ["completed", *["failed"] * (len(many) - 1)]
    assert all("a dream is at work" in job.end.error for job in ended if job.end and job.end.error)
    assert memory.texts == NEW
    assert len(staging.copies(DreamDir(str(memory.path)))) == 1
    assert [ends(jobs, job) for job in ended] == [1] * len(many)
