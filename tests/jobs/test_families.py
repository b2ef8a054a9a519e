"""Jobs that belong together: by who started them, and by the task they are for."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from support.cli import process, taskyard
from support.job_outputs import ended_by_hand
from taskyard.agents.agent.kind import Agent
from taskyard.core.system import now_ms
from taskyard.errors import BadValue
from taskyard.jobs.gc import collect
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.query import record_task, task_jobs, with_descendants

pytestmark = pytest.mark.req("U-05")

#: An agent that says what it costs, and has another one do the rest.
SPENDS = """
import json
print(json.dumps({'type': 'cost', 'usd': 0.25}))
print(json.dumps({'type': 'usage', 'input_tokens': 40}))
"""


def test_what_is_started_inside_a_job_is_found_with_all_inside_it(tmp_path: Path) -> None:
    jobs = Jobs(str(tmp_path / "home"))
    taskyard_ = f"{sys.executable} -m taskyard"
    inner = f"{taskyard_} run --quiet -- true"
    root = jobs.run(Shell(f"{taskyard_} run --quiet -- {shlex.quote(inner)}"), timeout=60)
    found = with_descendants(jobs.home, [root])
    assert [job.depth for job in sorted(found, key=lambda job: job.depth)] == [0, 1, 2]
    assert with_descendants(jobs.home, []) == []
    jobs.close()


def test_what_a_task_took_is_shown_with_it_and_up_the_tree_of_jobs(tmp_path: Path) -> None:
    spends = shlex.join([sys.executable, "-c", SPENDS])
    task = process("task", "add", "Port the importer", "--list", "demo", "--json").data["id"]
    nested = f"{sys.executable} -m taskyard agent --quiet inner --command {shlex.quote(spends)}; {spends}"
    done = process(
        "agent", "outer", "--command", shlex.join(["bash", "-c", nested]), "--task", task, "--list", "demo", "--json"
    ).data
    assert (done["status"], done["task"]) == ("completed", f"demo/{task}")

    shown = process("task", "show", task, "--list", "demo", "--json").data["took"]
    assert (shown["jobs"], shown["tokens"], shown["cost_usd"]) == (2, 80, 0.5)
    assert shown["duration_ms"] > 0
    assert "2 jobs, 80 tokens, $0.50, " in process("task", "show", task, "--list", "demo").out

    rows = {row["parent"]: row for row in taskyard("ps", "--all", "--json").data}
    assert (rows[None]["total"]["cost_usd"], rows[None]["cost_usd"]) == (0.5, 0.25)
    assert rows[done["id"]]["total"]["jobs"] == 1
    assert "$0.50" in taskyard("ps", "--all").out.splitlines()[0]


def test_a_task_in_the_environment_counts_for_whatever_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(str(tmp_path / "home"))
    monkeypatch.setenv("TASKYARD_LIST", "demo")
    monkeypatch.setenv("TASKYARD_TASK", "7")
    job = jobs.run(Shell("echo $TASKYARD_TASK"), timeout=30)
    assert (job.task, jobs.output(job.id).output) == ("demo/7", "demo/7\n")
    monkeypatch.delenv("TASKYARD_TASK")
    assert [found.id for found in task_jobs(jobs.home, "demo/7")] == [job.id]
    assert task_jobs(jobs.home, "demo/8") == []
    assert jobs.run(Shell("true"), timeout=30).task is None
    jobs.close()


@pytest.mark.parametrize("task", ["../../x/7", "demo/../7", "demo/x", "/7", "a b/7", f"{'x' * 300}/7", "demo/7\n"])
def test_what_is_no_task_is_refused_and_nothing_is_started(tmp_path: Path, task: str) -> None:
    jobs = Jobs(str(tmp_path / "home"))
    with pytest.raises(BadValue):
        jobs.start(Agent("go", command=["true"], task=task))
    assert jobs.list(ended=True) == []
    assert not (tmp_path / "home" / "task-jobs").exists()


def test_what_was_noted_of_a_task_goes_with_the_last_of_its_jobs_once_it_is_old(tmp_path: Path) -> None:
    day = 86_400.0
    home, noted = str(tmp_path), tmp_path / "task-jobs"
    old, newer = (ended_by_hand(tmp_path, at=now_ms() - int(days * day * 1000)).id for days in (9, 3))
    for task, job in (("demo/7", old), ("demo/7", newer), ("demo/8", old), ("shop/1", old)):
        record_task(home, task, job)
    (noted / "demo" / "9").mkdir()
    (noted / "demo" / "9" / "by-hand.txt").touch()
    (noted / "planted").symlink_to(tmp_path)

    def left(*, days: float) -> list[str]:
        collect(home, quota=10**12, age_limit=days * day)
        return sorted(str(path.relative_to(noted)) for path in noted.glob("*/*/*") if "planted" not in path.parts)

    every = [*sorted([f"demo/7/{old}", f"demo/7/{newer}"]), f"demo/8/{old}", "demo/9/by-hand.txt", f"shop/1/{old}"]
    assert left(days=5) == every  # the old one is gone, but what it took is still of interest
    assert not (tmp_path / "jobs" / old).exists()
    long_ago = time.time() - 6 * day
    for folder in noted.glob("*/*"):
        os.utime(folder, (long_ago, long_ago))
    assert left(days=5) == [*sorted([f"demo/7/{old}", f"demo/7/{newer}"]), "demo/9/by-hand.txt"]
    assert sorted(os.listdir(noted)) == ["demo", "planted"]
    assert left(days=2) == ["demo/9/by-hand.txt"]
    assert os.listdir(noted / "demo") == ["9"]
