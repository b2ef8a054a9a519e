"""Projects made by an attacker: nothing of theirs runs before a person trusts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import process, taskyard

#: What an attacker's program leaves behind.
SCRIPT = "#!/bin/sh\ntouch {mark}\n"


def git(folder: Path | str, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout.strip()


def write_script(path: Path, mark: Path) -> Path:
    path.write_text(SCRIPT.format(mark=mark), encoding="utf-8")
    path.chmod(0o755)
    return path


def hooks(command: str) -> str:
    return json.dumps({"hooks": {"TaskCompleted": [{"hooks": [{"type": "command", "command": command}]}]}})


def make_repository(place: Path) -> Path:
    place.mkdir(parents=True)
    git(place, "init", "-q", "-b", "main")
    (place / "a.txt").write_text("a\n", encoding="utf-8")
    git(place, "add", ".")
    git(place, "commit", "-qm", "First")
    return place


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that exists once an attacker's program ran."""
    return tmp_path / "attacked"


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of the user with a relative hook command, which the user trusts."""
    project = make_repository(tmp_path / "trusted")
    (project / ".taskyard").mkdir()
    (project / ".taskyard" / "hooks.json").write_text(hooks("./check.sh"), encoding="utf-8")
    (project / "check.sh").write_text('#!/bin/sh\npwd >> "$HOME/checked"\n', encoding="utf-8")
    (project / "check.sh").chmod(0o755)
    git(project, "add", "check.sh")
    git(project, "commit", "-qm", "Check")
    monkeypatch.chdir(project)
    monkeypatch.setenv("TASKYARD_TASKS_DIR", str(tmp_path / "tasks"))
    monkeypatch.setenv("TASKYARD_LIST", "work")
    assert taskyard("trust", "--yes").code == 0
    return project


def complete_a_task() -> None:
    """In a process of its own, which has seen no hooks before."""
    task = taskyard("task", "add", "Work", "--quiet").out.strip()
    done = process("task", "done", task)
    assert done.code == 0, done


def forgeries(trusted: Path, folder: Path) -> dict[str, str]:
    """Ways for the `.git` file in `folder` to name the trusted repository."""
    registered = trusted / ".git" / "worktrees" / "tree"
    git(trusted, "worktree", "add", "-q", str(folder.parent / "tree"))
    own = folder / "git-folder"
    own.mkdir()
    (own / "commondir").write_text(f"{trusted}/.git\n", encoding="utf-8")
    (own / "gitdir").write_text(f"{folder}/.git\n", encoding="utf-8")
    (own / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    return {
        "the repository itself": f"{trusted}/.git",
        "another worktree of it": str(registered),
        "a registration outside of it": str(own),
    }


@pytest.mark.req("H-02")
@pytest.mark.parametrize("how", ["the repository itself", "another worktree of it", "a registration outside of it"])
def test_a_git_file_that_names_a_trusted_project_is_not_trusted(
    trusted: Path, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {forgeries(trusted, folder)[how]}\n", encoding="utf-8")
    write_script(folder / "check.sh", mark)
    (folder / ".taskyard").mkdir()
    (folder / ".taskyard" / "hooks.json").write_text(hooks("./check.sh"), encoding="utf-8")
    monkeypatch.chdir(folder)

    complete_a_task()

    assert not mark.exists()


@pytest.mark.req("H-02")
@pytest.mark.parametrize("how", ["the repository itself", "another worktree of it", "a registration outside of it"])
def test_a_git_file_that_names_another_project_does_not_lead_to_its_list(
    trusted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.delenv("TASKYARD_LIST")
    folder = tmp_path / "evil" / trusted.name
    folder.mkdir(parents=True)
    (folder / ".git").write_text(f"gitdir: {forgeries(trusted, folder)[how]}\n", encoding="utf-8")
    taskyard("task", "add", "Mine")
    monkeypatch.chdir(folder)

    assert taskyard("task", "list", "--json").data == []


@pytest.mark.req("H-02", "L-21")
def test_a_git_file_that_names_another_project_gets_none_of_its_acceptance_commands(
    trusted: Path, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trusted / ".taskyard" / "hooks.json").unlink()
    task = taskyard("task", "add", "Work", "--accept", "./check.sh", "--quiet").out.strip()
    assert taskyard("trust", task, "--yes").code == 0
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {trusted}/.git\n", encoding="utf-8")
    write_script(folder / "check.sh", mark)
    monkeypatch.chdir(folder)

    refused = process("task", "done", task)

    assert refused.code == 5
    assert not mark.exists()


@pytest.mark.req("H-02")
def test_a_relative_hook_command_is_the_projects_also_from_a_folder_inside_it(
    trusted: Path, mark: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendored = trusted / "vendor" / "theirs"
    vendored.mkdir(parents=True)
    write_script(vendored / "check.sh", mark)
    monkeypatch.chdir(vendored)

    complete_a_task()

    assert not mark.exists()
    assert (outside / "checked").read_text(encoding="utf-8") == f"{trusted}\n"


@pytest.mark.req("H-02")
def test_a_trusted_hook_runs_in_the_worktree_of_the_agent_that_completes_the_task(
    trusted: Path, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    git(trusted, "worktree", "add", "-q", str(tree))
    (tree / "deep").mkdir()
    monkeypatch.chdir(tree / "deep")

    complete_a_task()

    assert (outside / "checked").read_text(encoding="utf-8") == f"{tree}\n"


@pytest.mark.req("L-21")
def test_acceptance_runs_in_the_worktree_of_the_agent_that_completes_the_task(
    trusted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trusted / ".taskyard" / "hooks.json").unlink()
    tree = tmp_path / "tree"
    git(trusted, "worktree", "add", "-q", str(tree))
    for place in ("", str(trusted), "."):
        words = ("--accept-cwd", place) if place else ()
        task = taskyard("task", "add", f"In {place}", "--accept", "test -e work.txt", *words, "--quiet").out.strip()
        assert taskyard("trust", task, "--yes").code == 0
        assert process("task", "done", task).code == 5, "the main checkout has no work.txt"
        (tree / "work.txt").write_text("done\n", encoding="utf-8")
        monkeypatch.chdir(tree)
        done = process("task", "done", task)
        assert done.code == 0, done
        (tree / "work.txt").unlink()
        monkeypatch.chdir(trusted)


@pytest.mark.req("L-21")
def test_an_acceptance_command_trusted_in_one_worktree_is_trusted_in_every_checkout_of_the_project(
    trusted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trusted / ".taskyard" / "hooks.json").unlink()
    trees = [tmp_path / "tree", tmp_path / "other"]
    for tree in trees:
        git(trusted, "worktree", "add", "-q", str(tree))
    for number, place in enumerate((trusted, trees[0], trees[1])):
        monkeypatch.chdir(trees[0])
        words = ("--accept", f"test {number} -lt 9", "--accept-cwd", str(trees[0]))
        task = taskyard("task", "add", "Work", *words, "--quiet").out.strip()
        assert taskyard("trust", task, "--yes").code == 0
        monkeypatch.chdir(place)
        done = process("task", "done", task)
        assert done.code == 0, done


@pytest.mark.parametrize(
    "variable",
    ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "HOME", "TASKYARD_HOME", "XDG_STATE_HOME", "TASKYARD_TASKS_DIR"],
)
@pytest.mark.req("H-02")
def test_a_relative_folder_in_the_environment_makes_no_hook_of_a_clone_the_users_own(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    clone = make_repository(tmp_path / "clone")
    script = write_script(clone / "evil.sh", mark)
    for place in (".config/taskyard/hooks.json", ".claude/settings.json", ".taskyard/hooks.json", "settings.json"):
        (clone / place).parent.mkdir(parents=True, exist_ok=True)
        (clone / place).write_text(hooks(str(script)), encoding="utf-8")
    digest = f"from taskyard.storage import trust; trust.trust_project('.', [{str(script)!r}])"
    state = clone / "taskyard" if variable == "XDG_STATE_HOME" else clone
    env = {**os.environ, "TASKYARD_HOME": str(state)}
    subprocess.run([sys.executable, "-c", digest], env=env, cwd=clone, check=True)
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name)
    if variable == "XDG_STATE_HOME":
        monkeypatch.delenv("TASKYARD_HOME")
    monkeypatch.setenv(variable, "." if variable != "XDG_CONFIG_HOME" else ".config")
    monkeypatch.chdir(clone)

    added = process("task", "add", "Work")
    done = process("task", "done", "1")

    assert not mark.exists()
    assert not (clone / "tasks").exists()
    if variable.startswith("XDG") or variable == "HOME":
        assert (added.code, done.code) == (0, 0), (added, done)
        assert f"taskyard: ignoring {variable}=" in done.err
    else:
        assert (added.code, done.code) == (2, 2)
        assert variable in done.err and "an absolute path" in done.err


@pytest.fixture
def smudging(tmp_path: Path, mark: Path) -> Path:
    """A repository whose own git configuration has a filter, as an archive may bring it."""
    project = make_repository(tmp_path / "project")
    (project / ".gitattributes").write_text("*.txt filter=evil\n", encoding="utf-8")
    git(project, "add", ".")
    git(project, "commit", "-qm", "Filter")
    script = write_script(tmp_path / "evil.sh", mark)
    for name in ("smudge", "clean"):
        git(project, "config", f"filter.evil.{name}", f"{script}; cat")
    git(project, "config", "filter.evil.required", "true")
    git(project, "config", "core.fsmonitor", str(script))
    return project


def run_an_agent_in_a_worktree(folder: Path) -> dict[str, object]:
    """The record of a job that did nothing in a worktree of its own."""
    script = f"{sys.executable} -c \"print(open('a.txt').read())\""
    ran = process(
        "agent", "Go", "--engine", "command", "--command", script, "--worktree", "--json", "--cwd", str(folder)
    )
    found: dict[str, object] = ran.data
    return found


@pytest.mark.req("H-02")
def test_filters_of_a_repositorys_own_configuration_do_not_run_before_they_are_trusted(
    smudging: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(smudging)
    job = run_an_agent_in_a_worktree(smudging)

    assert job["status"] == "completed", job
    assert not mark.exists()
    assert "filter.evil.smudge" in str(job["facts"])
    shown = taskyard("trust", "--json", "--yes").out
    assert "filter.evil.smudge" in shown and "filter.evil.clean" in shown
    assert run_an_agent_in_a_worktree(smudging)["status"] == "completed"
    assert mark.exists(), "a trusted filter runs"


@pytest.mark.req("H-02")
def test_a_bare_repository_inside_a_clone_is_not_used(
    tmp_path: Path, mark: Path, smudging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = make_repository(tmp_path / "clone")
    inner = clone / "docs"
    git(tmp_path, "clone", "-q", "--bare", str(smudging), str(inner))
    mark.unlink(missing_ok=True)
    script = tmp_path / "evil.sh"
    for key, value in {
        "core.bare": "false", "core.worktree": "..", "core.fsmonitor": str(script),
        "filter.evil.smudge": f"{script}; cat", "filter.evil.clean": f"{script}; cat",
    }.items():  # fmt: skip
        subprocess.run(["git", "config", "-f", str(inner / "config"), key, value], check=True)
    monkeypatch.chdir(inner)

    job = run_an_agent_in_a_worktree(inner)

    assert not mark.exists()
    assert job["status"] == "failed"
    assert "bare repository" in str(job)
