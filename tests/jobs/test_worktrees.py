"""A worktree for a job: it begins at the last commit, and no work in it is ever thrown away."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.wait import until
from taskyard.jobs import worktrees
from taskyard.storage.locks import RangeLock

pytestmark = pytest.mark.req("N-02")

JOB = "a0000000a"


def git(folder: Path | str, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    (place / "sub").mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "main", str(place))
    (place / "sub" / "a.txt").write_text("a\n", encoding="utf-8")
    (place / ".gitignore").write_text("build/\n", encoding="utf-8")
    git(place, "add", ".")
    git(place, "commit", "-qm", "First")
    return place


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


def settled(home: str) -> worktrees.SettledWorktree:
    found = worktrees.settle_worktree(home, JOB)
    assert found is not None
    return found


def branches(repository: Path) -> list[str]:
    return git(repository, "branch", "--format=%(refname:short)").splitlines()


def test_it_begins_at_the_last_commit_and_tells_what_is_not_in_it(repository: Path, home: str) -> None:
    (repository / "sub" / "a.txt").write_text("changed\n", encoding="utf-8")
    (repository / "new \n.txt").write_text("new\n", encoding="utf-8")
    made = worktrees.create_worktree(home, JOB, str(repository / "sub"))

    assert made.why == ""
    assert made.cwd == f"{made.path}/sub"
    assert Path(made.cwd, "a.txt").read_text(encoding="utf-8") == "a\n"
    assert made.base == git(repository, "rev-parse", "HEAD")
    assert (made.branch, made.dirty_count) == (f"taskyard/{JOB}", 2)
    assert made.dirty == ("sub/a.txt", "new \N{REPLACEMENT CHARACTER}.txt")
    listed = git(repository, "worktree", "list", "--porcelain")
    assert f"locked the job {JOB} works here" in listed


def test_one_without_work_is_removed_with_its_branch_also_with_what_git_ignores(repository: Path, home: str) -> None:
    made = worktrees.create_worktree(home, JOB, str(repository))
    os.mkdir(f"{made.path}/build")
    Path(made.path, "build", "x.o").write_text("x", encoding="utf-8")

    assert settled(home).kept == ""
    assert not os.path.exists(made.path)
    assert branches(repository) == ["main"]
    assert worktrees.recorded_jobs(home) == []
    assert worktrees.settle_worktree(home, JOB) is None


@pytest.mark.parametrize(
    ("work", "why"),
    [
        ("echo b > sub/a.txt", "1 file is not committed: sub/a.txt"),
        ("echo b > b.txt; echo c > c.txt", "2 files are not committed: b.txt, c.txt"),
        ("echo b > b.txt; git add b.txt", "1 file is not committed: b.txt"),
        ("rm sub/a.txt", "1 file is not committed: sub/a.txt"),
        ("git commit -q --allow-empty -m Work", f"1 commit is in no other branch than taskyard/{JOB}"),
        ("git checkout -q --detach; git commit -q --allow-empty -m W", "1 commit is in no other branch than"),
        ("git commit -q --allow-empty -m W; git checkout -q main --detach", "1 commit is in no other branch than"),
        ("git bisect start -q", "something is half done in it (BISECT_LOG)"),
    ],
)
def test_one_with_work_is_kept_and_says_what_it_is(repository: Path, home: str, work: str, why: str) -> None:
    made = worktrees.create_worktree(home, JOB, str(repository))
    subprocess.run(["bash", "-ec", work], cwd=made.path, check=True)

    for _ in range(2):
        assert settled(home).kept.startswith(why)
    assert os.path.isdir(made.path)
    assert worktrees.recorded_jobs(home) == [JOB]
    assert "locked" not in git(repository, "worktree", "list", "--porcelain")  # whoever owns the work may take it away


def test_commits_that_are_in_another_branch_are_no_reason_to_keep_it(repository: Path, home: str) -> None:
    made = worktrees.create_worktree(home, JOB, str(repository))
    git(made.path, "commit", "-q", "--allow-empty", "-m", "Work")
    assert settled(home).kept
    git(repository, "merge", "-q", "--ff-only", made.branch)

    assert settled(home).kept == ""
    assert branches(repository) == ["main"]


def test_one_that_somebody_is_in_is_kept_until_they_are_gone(repository: Path, home: str) -> None:
    made = worktrees.create_worktree(home, JOB, str(repository))
    with subprocess.Popen(["cat"], cwd=made.path, stdin=subprocess.PIPE) as process:
        assert settled(home).kept == "processes still use it"
        process.communicate()
    assert settled(home).kept == ""


def test_where_none_can_be_made_it_says_why_and_leaves_nothing(repository: Path, home: str, tmp_path: Path) -> None:
    assert "no git repository" in worktrees.create_worktree(home, JOB, str(tmp_path)).why
    git(tmp_path, "init", "-q", "empty")
    assert "no commit to begin at" in worktrees.create_worktree(home, JOB, str(tmp_path / "empty")).why
    (repository / "uncommitted").mkdir()
    assert "is not in the last commit" in worktrees.create_worktree(home, JOB, str(repository / "uncommitted")).why
    assert settled(home).kept == ""
    git(repository, "branch", f"taskyard/{JOB}")
    assert "already exists" in worktrees.create_worktree(home, JOB, str(repository)).why
    assert settled(home).kept == ""
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_hooks_of_the_repository_do_not_run(repository: Path, home: str, tmp_path: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    hook.chmod(0o700)
    assert worktrees.create_worktree(home, JOB, str(repository)).why == ""
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("state", ["making", "removing"])
def test_what_was_killed_on_the_way_is_finished(repository: Path, home: str, state: str) -> None:
    made = worktrees.create_worktree(home, JOB, str(repository))
    record = Path(home, "worktrees", f"{JOB}.json")
    known = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps({**known, "state": state}), encoding="utf-8")
    shutil.rmtree(f"{made.path}/sub")  # half of it is there

    assert settled(home).kept == ""
    assert not os.path.exists(made.path)
    assert branches(repository) == ["main"]


def test_what_cannot_be_understood_is_never_removed(repository: Path, home: str, tmp_path: Path) -> None:
    made = worktrees.create_worktree(home, JOB, str(repository))
    shutil.move(repository, tmp_path / "elsewhere")
    assert settled(home).kept == "git cannot say whether there is work in it"
    shutil.move(tmp_path / "elsewhere", repository)
    shutil.rmtree(made.path)
    os.symlink(tmp_path, made.path)
    assert settled(home).kept == "something else is in its place"
    assert tmp_path.exists()


def test_one_that_its_owner_took_away_is_forgotten_and_its_commits_stay(repository: Path, home: str) -> None:
    made = worktrees.create_worktree(home, JOB, str(repository))
    git(made.path, "commit", "-q", "--allow-empty", "-m", "Work")
    shutil.rmtree(made.path)

    assert settled(home).kept == ""
    assert branches(repository) == ["main", made.branch]
    assert worktrees.recorded_jobs(home) == []


def test_of_two_that_hold_the_same_commits_one_is_kept(repository: Path, home: str) -> None:
    other = "a0000000b"
    made = worktrees.create_worktree(home, JOB, str(repository))
    git(made.path, "commit", "-q", "--allow-empty", "-m", "Work")
    twin = worktrees.create_worktree(home, other, made.path)
    script = "import sys; from taskyard.jobs import worktrees; worktrees.settle_worktree(*sys.argv[1:])"
    racing = [subprocess.Popen([sys.executable, "-c", script, home, job]) for job in (JOB, other)]
    assert [process.wait(timeout=60) for process in racing] == [0, 0]
    assert [os.path.exists(made.path), os.path.exists(twin.path)].count(True) == 1


def test_eight_at_once_all_get_one(repository: Path, home: str) -> None:
    program = (
        "import sys; from taskyard.jobs import worktrees\n"
        "made = [worktrees.create_worktree(sys.argv[1], f'a{sys.argv[2]}00000{n:02}', sys.argv[3]) for n in range(2)]\n"
        "print([one.why for one in made if one.why])\n"
    )
    words = [(sys.executable, "-c", program, home, str(number), str(repository)) for number in range(8)]
    running = [subprocess.Popen(one, stdout=subprocess.PIPE, text=True) for one in words]
    assert [one.communicate(timeout=120)[0].strip() for one in running] == ["[]"] * 8
    assert git(repository, "worktree", "list").count("\n") == 16


def test_one_is_added_while_no_other_process_changes_the_repositorys_worktrees(repository: Path, home: str) -> None:
    made: list[worktrees.Worktree] = []
    with RangeLock(str(repository / ".git" / worktrees.LOCK)) as lock:
        lock.take(0, timeout=1, what="the test")
        adding = threading.Thread(target=lambda: made.append(worktrees.create_worktree(home, JOB, str(repository))))
        adding.start()
        until(lambda: Path(home, "worktrees", f"{JOB}.json").exists())
        adding.join(0.3)
        assert adding.is_alive() and not Path(home, "worktrees", JOB).exists()
    adding.join(30)
    assert made[0].why == ""


def test_a_lock_of_another_program_is_waited_for(repository: Path, home: str) -> None:
    held = repository / ".git" / "refs" / "heads" / "taskyard" / f"{JOB}.lock"
    held.parent.mkdir()
    held.touch()
    timer = threading.Timer(0.3, held.unlink)
    timer.start()
    made = worktrees.create_worktree(home, JOB, str(repository))
    timer.join()
    assert made.why == ""


@pytest.fixture
def with_submodule(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository with a submodule `lib`, which has a submodule `deep`."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text('[protocol "file"]\n\tallow = always\n', encoding="utf-8")
    for name in ("deep", "lib"):
        place = tmp_path / f"{name}-origin"
        git(tmp_path, "init", "-q", "-b", "main", str(place))
        (place / "code.txt").write_text(f"{name}\n", encoding="utf-8")
        git(place, "add", ".")
        git(place, "commit", "-qm", "Code")
        if name == "lib":
            git(place, "submodule", "--quiet", "add", str(tmp_path / "deep-origin"), "deep")
            git(place, "commit", "-qm", "Deep")
    git(repository, "submodule", "--quiet", "add", str(tmp_path / "lib-origin"), "lib")
    git(repository, "submodule", "--quiet", "update", "--init", "--recursive")
    git(repository, "commit", "-qm", "Lib")
    return repository


@pytest.fixture
def populated(with_submodule: Path, home: str) -> Path:
    """A job's worktree with both submodules checked out."""
    made = worktrees.create_worktree(home, JOB, str(with_submodule))
    git(made.path, "submodule", "--quiet", "update", "--init", "--recursive")
    return Path(made.path)


def test_one_with_clean_submodules_is_removed(with_submodule: Path, populated: Path, home: str) -> None:
    assert settled(home).kept == ""
    assert not populated.exists()
    assert branches(with_submodule) == ["main"]
    assert not (with_submodule / ".git" / "worktrees" / JOB).exists()
    assert (with_submodule / "lib" / "deep" / "code.txt").exists()


@pytest.mark.parametrize(
    ("inside", "work", "why"),
    [
        ("lib", "echo x > code.txt", "1 file is not committed: lib/code.txt"),
        ("lib/deep", "echo x > new.txt", "1 file is not committed: lib/deep/new.txt"),
        ("lib/deep", "git commit -q --allow-empty -m x; git checkout -q --detach HEAD~1; git branch own HEAD@{1}",
         "in its submodule lib/modules/deep 1 commit is in no other repository"),
        ("lib", "echo x > code.txt; git stash -q", "in its submodule lib 2 commits are in no other repository"),
        (".", "git -C lib checkout -q -b own; git -C lib commit -q --allow-empty -m x; git -C lib checkout -q -; "
         "git submodule --quiet deinit -f lib; git submodule --quiet update --init; git -C lib checkout -q HEAD",
         "in its submodule lib 1 commit is in no other repository"),
    ],
)  # fmt: skip
def test_one_with_work_in_a_submodule_is_kept(populated: Path, home: str, inside: str, work: str, why: str) -> None:
    subprocess.run(["sh", "-ec", work], cwd=populated / inside, check=True)
    assert settled(home).kept == why
    assert (populated / "lib" / "code.txt").exists()


def test_submodule_commits_that_the_main_checkout_has_are_no_reason_to_keep_it(
    with_submodule: Path, populated: Path, home: str
) -> None:
    git(populated / "lib", "checkout", "-q", "-b", "own")
    git(populated / "lib", "commit", "-q", "--allow-empty", "-m", "x")
    commit = git(populated / "lib", "rev-parse", "HEAD")
    git(populated / "lib", "checkout", "-q", "--detach", "HEAD~1")
    assert settled(home).kept == "in its submodule lib 1 commit is in no other repository"

    git(with_submodule / "lib", "fetch", "-q", str(populated / "lib"), "own:own")

    assert git(with_submodule / "lib", "rev-parse", "own") == commit
    assert settled(home).kept == ""
    assert not populated.exists()
