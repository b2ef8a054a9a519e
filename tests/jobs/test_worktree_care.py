"""Worktrees of jobs that were killed: settled by a person who asks for it, and by whoever starts jobs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from taskyard.config import Settings
from taskyard.jobs import worktrees
from taskyard.jobs.gc import collect_if_due
from taskyard.jobs.worktrees import settle_abandoned, settle_ended

pytestmark = pytest.mark.req("N-02", "O-04")

EMPTY, WORKED_IN = "a0000000a", "a0000000b"


@pytest.fixture
def home(tmp_path: Path) -> str:
    """Where two agents were killed, one of them in the middle of its work."""
    project, home = tmp_path / "project", tmp_path / "home"
    for words in (
        ["init", "-q", "-b", "main", str(project)],
        ["-C", str(project), "commit", "-q", "--allow-empty", "-m", "First"],
    ):
        subprocess.run(["git", *words], check=True)
    (home / "jobs").mkdir(parents=True)
    for job in (EMPTY, WORKED_IN):
        assert worktrees.create_worktree(str(home), job, str(project)).why == ""
    Path(worktrees.worktree_location(str(home), WORKED_IN)[0], "half.txt").touch()
    return str(home)


def an_hour_later(home: str) -> list[str]:
    """What is left after somebody has started a job."""
    Path(home, "jobs", ".gc-stamp").unlink(missing_ok=True)
    assert collect_if_due(home, Settings()) is not None
    return worktrees.recorded_jobs(home)


def test_whoever_starts_a_job_removes_those_without_work(home: str) -> None:
    assert an_hour_later(home) == [WORKED_IN]
    assert not os.path.exists(worktrees.worktree_location(home, EMPTY)[0])
    assert os.path.exists(f"{worktrees.worktree_location(home, WORKED_IN)[0]}/half.txt")


def test_one_that_was_kept_is_looked_at_again_only_when_a_person_asks(home: str) -> None:
    an_hour_later(home)
    os.unlink(f"{worktrees.worktree_location(home, WORKED_IN)[0]}/half.txt")

    assert an_hour_later(home) == [WORKED_IN]
    assert [(one.job, one.kept) for one in settle_ended(home)] == [(WORKED_IN, "")]
    assert worktrees.recorded_jobs(home) == []


def test_one_that_processes_still_use_is_looked_at_again(home: str) -> None:
    with subprocess.Popen(["cat"], cwd=worktrees.worktree_location(home, EMPTY)[0], stdin=subprocess.PIPE) as process:
        assert an_hour_later(home) == [EMPTY, WORKED_IN]
        process.communicate()
    assert an_hour_later(home) == [WORKED_IN]


def test_one_that_cannot_be_settled_keeps_no_other_from_it_and_time_is_bounded(home: str) -> None:
    settle_abandoned(home, seconds=0.0)
    assert worktrees.recorded_jobs(home) == [EMPTY, WORKED_IN]
    broken = Path(home, "worktrees", "a00000000.json")
    broken.symlink_to("/dev/null")
    assert an_hour_later(home) == ["a00000000", WORKED_IN]
