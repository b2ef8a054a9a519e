"""A workflow killed at every step boundary and inside steps: finished steps never run again, and all of them finish."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.scale import FULL, scale
from support.wait import until
from support.workflow_deaths import Deaths, faults
from taskyard import Workflow
from taskyard.errors import Conflict
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs

#: a, then b and c side by side, then d; e never runs.
STEPS = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}

#: workflow, run, four times begin and end, skip, done.
ENTRIES = 12

#: An ordinary run tries those around the first and the last step.
MOMENTS = [(when, at) for at in range(1, ENTRIES + 1) for when in ("before", "after")]
CHOSEN = MOMENTS if FULL else [("before", 3), ("after", 3), ("before", 4), ("after", 11)]


@pytest.fixture
def jobs(memory: Path) -> Iterator[Jobs]:
    found = Jobs(str(memory / "home"), agent="ada")
    yield found
    found.stop(*[job.id for job in found.list()], grace=0.1)
    found.close()


def workflow(folder: Path, seconds: float = 0.0) -> Workflow:
    steps: list[dict[str, object]] = [
        {"id": step, "needs": needs, "run": f"sleep {seconds}; echo {step} >> {folder}/ran"}
        for step, needs in STEPS.items()
    ]
    return Workflow({"name": "chaos", "steps": [*steps, {"id": "e", "needs": ["a"], "if": "false", "run": "false"}]})


@pytest.mark.req("K-05")
@pytest.mark.parametrize(("when", "at"), CHOSEN)
def test_killed_at_a_step_boundary(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, at: int
) -> None:
    deaths = Deaths(jobs, tmp_path, monkeypatch)
    dead = deaths.run(workflow(tmp_path), f"{when}:{at}")
    assert dead.end is not None and dead.end.signal == signal.SIGKILL

    ended = deaths.resume(dead.id)

    assert ended is None or ended.status.value == "completed", ended
    assert faults(jobs, list(STEPS)) == []
    assert deaths.resume(dead.id) is None


@pytest.mark.req("K-05")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(scale(20, least=2)))
def test_killed_inside_steps_again_and_again(jobs: Jobs, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    job = jobs.start(workflow(tmp_path, 0.2))
    run_id, kills = job.id, 0
    for _ in range(30):
        if kills < 6:
            time.sleep(chance.uniform(0.05, 0.9))  # a moment nobody chose
            kills += _kill(jobs, job.id, keeper=chance.random() < 0.3)
        until(lambda job=job: jobs.get(job.id).is_final, timeout=30, what=f"{job.id} to end")  # type: ignore[misc]
        try:
            job = jobs.start(Workflow.resume(run_id, home=jobs.home))
        except Conflict:
            break

    assert faults(jobs, list(STEPS)) == []
    assert jobs.list() == []
    print(f"seed {seed}: killed {kills} times")


def _kill(jobs: Jobs, job_id: str, *, keeper: bool) -> bool:
    """Kill a workflow's own process, or its keeper; False if it was too late."""
    pid = supervisor_pid(JobPaths(jobs.home, job_id)) if keeper else jobs.get(job_id).pid
    if not pid or jobs.get(job_id).is_final:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
