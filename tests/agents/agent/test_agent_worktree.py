"""Agents in worktrees of their own: isolated or not at all, and what they leave is kept and told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cli import taskyard
from support.wait import until
from taskyard.agents.agent.kind import Agent
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.notices import Outbox

pytestmark = pytest.mark.req("N-02", "K-02")


def git(folder: Path | str, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    git(tmp_path, "init", "-q", "-b", "main", str(place))
    (place / "a.txt").write_text("a\n", encoding="utf-8")
    git(place, "add", ".")
    git(place, "commit", "-qm", "First")
    (place / "mine.txt").write_text("not for the agent\n", encoding="utf-8")
    return place


def does(body: str) -> list[str]:
    return [sys.executable, "-c", f"import os, sys, time\n{body}"]


def test_an_agent_works_beside_us_and_what_it_leaves_is_kept_and_told(jobs: Jobs, repository: Path) -> None:
    work = "open('b.txt', 'w').write('b'); print(os.getcwd(), os.environ['PWD'], os.listdir())"
    job = jobs.start(Agent("go", command=does(work), cwd=str(repository), worktree=True, description="Write"))
    job = jobs.wait(job.id, timeout=30)

    assert job.status.value == "completed", job.end
    tree: Any = job.facts["worktree"]
    result = str(job.facts["result"])
    assert result.startswith(f"{tree['path']} {tree['path']} ")
    assert "mine.txt" not in result and not (repository / "b.txt").exists()
    assert (tree["branch"], tree["base"]) == (f"taskyard/{job.id}", git(repository, "rev-parse", "HEAD"))
    assert (tree["dirty"], tree["dirtyCount"]) == (["mine.txt"], 1)
    assert tree["kept"] == "1 file is not committed: b.txt"
    (notice,) = Outbox(jobs.home, "ada").waiting()
    text = notice.as_user_message()["content"]
    assert f"<worktree><path>{tree['path']}</path><branch>{tree['branch']}</branch></worktree>" in text


def test_one_that_leaves_no_work_leaves_no_worktree(jobs: Jobs, repository: Path) -> None:
    job = jobs.run(Agent("go", command=does("print(1)"), cwd=str(repository), worktree=True), timeout=30)
    tree: Any = job.facts["worktree"]
    assert tree == {"base": git(repository, "rev-parse", "HEAD"), "isRemoved": True}
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--format=%(refname:short)") == "main"


def test_without_a_repository_it_fails_and_never_works_anywhere_else(jobs: Jobs, tmp_path: Path) -> None:
    work = does(f"open({str(tmp_path / 'ran')!r}, 'w')")
    job = jobs.run(Agent("go", command=work, cwd=str(tmp_path), worktree=True), timeout=30)
    assert job.end is not None
    assert job.status.value == "failed"
    assert job.end.error.startswith(f"No worktree could be made for it: {tmp_path} is in no git repository")
    assert not (tmp_path / "ran").exists()


def working(jobs: Jobs, repository: Path, work: str) -> str:
    body = f"{work}; print('on', flush=True); time.sleep(600)"
    job = jobs.start(Agent("go", command=does(body), cwd=str(repository), worktree=True))
    until(lambda: '"on"' in Path(JobPaths(jobs.home, job.id).transcript).read_text(encoding="utf-8"))
    return job.id


def test_a_stop_keeps_what_it_had_done(jobs: Jobs, repository: Path) -> None:
    job_id = working(jobs, repository, "open('half.txt', 'w')")
    assert "locked" in git(repository, "worktree", "list", "--porcelain")
    (stopped,) = jobs.stop(job_id)
    assert stopped.outcome == "stopped"
    tree: Any = jobs.get(job_id).facts["worktree"]
    assert tree["kept"] == "1 file is not committed: half.txt"
    assert os.path.exists(f"{tree['path']}/half.txt")


@pytest.mark.parametrize(("work", "is_kept"), [("open('half.txt', 'w')", True), ("pass", False)])
def test_after_kill_9_of_everything_gc_decides_by_the_same_rule(
    jobs: Jobs, repository: Path, work: str, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_HOME", jobs.home)
    job_id = working(jobs, repository, work)
    path = f"{os.path.realpath(jobs.home)}/worktrees/{job_id}"
    assert taskyard("gc", "--json").data["worktrees"] == []  # it works there
    keeper = supervisor_pid(JobPaths(jobs.home, job_id))
    assert keeper
    os.kill(keeper, signal.SIGKILL)
    until(lambda: jobs.get(job_id).is_final)

    def found() -> list[dict[str, object]]:
        rows: list[dict[str, object]] = taskyard("gc", "--json", "--dry-run").data["worktrees"]
        return rows

    until(lambda: found()[0]["kept"] != "processes still use it")
    (row,) = taskyard("gc", "--json").data["worktrees"]
    assert (row["job"], row["path"]) == (job_id, path)
    assert row["kept"] == ("1 file is not committed: half.txt" if is_kept else None)
    assert os.path.isdir(path) is is_kept
