"""Which list is meant, and where everything is."""

from __future__ import annotations

import contextvars
import os
import subprocess
from pathlib import Path

import pytest

from taskyard import config
from taskyard.errors import BadName

#: Every level of the order, most important first; each is set together with all below it.
LEVELS = (
    "TASKYARD_LIST",
    "CLAUDE_CODE_TASK_LIST_ID",
    "teammate",
    "CLAUDE_CODE_TEAM_NAME",
)


def chosen(level: int, cwd: Path, argument: str | None = None) -> str:
    """The list when this level and all below it are set."""
    set_here = LEVELS[level:]
    env = {name: f"by-{name}" for name in set_here if name.isupper()}

    def ask() -> str:
        if "teammate" in set_here:
            config.teammate_team.set("by-teammate")
        return config.list_name(argument, env=env, cwd=str(cwd))

    return contextvars.copy_context().run(ask)


def git(cwd: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(cwd), *words], check=True, capture_output=True)


@pytest.mark.req("L-14")
@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_each_level_wins_over_all_below_it(tmp_path: Path, level: int) -> None:
    assert chosen(level, tmp_path) == f"by-{LEVELS[level]}"


@pytest.mark.req("L-14")
def test_an_argument_wins_over_everything_and_nothing_leaves_the_project(tmp_path: Path) -> None:
    assert chosen(0, tmp_path, "mine") == "mine"
    assert chosen(len(LEVELS), tmp_path) == config.project_list(str(tmp_path))


@pytest.mark.req("L-14")
def test_an_empty_variable_counts_as_unset_and_an_empty_argument_is_refused(tmp_path: Path) -> None:
    env = {"TASKYARD_LIST": "", "CLAUDE_CODE_TASK_LIST_ID": "here"}
    assert config.list_name(env=env, cwd=str(tmp_path)) == "here"
    with pytest.raises(BadName):
        config.list_name("", env=env, cwd=str(tmp_path))


@pytest.mark.req("L-14")
def test_one_project_has_one_list_from_every_folder_and_worktree(tmp_path: Path) -> None:
    main, tree = tmp_path / "app", tmp_path / "elsewhere" / "tree"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(tree))
    (main / "src" / "deep").mkdir(parents=True)
    names = {config.project_list(str(folder)) for folder in (main, main / "src" / "deep", tree)}

    assert len(names) == 1
    assert names.pop().startswith("app-")


@pytest.mark.req("L-14")
def test_projects_of_the_same_name_have_different_lists(tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place / "app").mkdir(parents=True)
    one, two = (config.project_list(str(tmp_path / place / "app")) for place in ("a", "b"))

    assert one != two
    assert one[:4] == two[:4] == "app-"
    assert len(one) == len("app-") + 8


@pytest.mark.req("L-14")
def test_a_list_scoped_to_its_session_needs_the_sessions_id(tmp_path: Path) -> None:
    env = {"TASKYARD_LIST_SCOPE": "session"}
    with pytest.raises(BadName, match="TASKYARD_SESSION"):
        config.list_name(env=env, cwd=str(tmp_path))
    assert config.list_name(env={**env, "CLAUDE_CODE_SESSION_ID": "s1"}, cwd=str(tmp_path)) == "s1"
    assert config.list_name(env={**env, "TASKYARD_SESSION": "s2"}, cwd=str(tmp_path)) == "s2"
    assert config.list_name(env={**env, "TASKYARD_LIST": "l"}, cwd=str(tmp_path)) == "l"


@pytest.mark.req("L-14")
@pytest.mark.parametrize("name", ["été 😀", "tab\there", b"latin-\xe9", "x" * 250])
def test_a_project_folder_of_any_name_has_a_list(tmp_path: Path, name: str | bytes) -> None:
    folder = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    os.mkdir(folder)

    listed = config.list_name(env={}, cwd=os.fsdecode(folder))

    assert len(listed) <= 200
    assert listed.isascii()


@pytest.mark.req("L-14")
def test_git_files_that_lead_nowhere_still_name_a_project(tmp_path: Path) -> None:
    for text in ("gitdir: /nowhere/.git/worktrees/x", "rubbish", ""):
        (tmp_path / ".git").write_text(text)
        assert config.project(str(tmp_path)).root == str(tmp_path)
    (tmp_path / ".git").unlink()
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / ".git").write_text("gitdir: ../modules/module")

    found = config.project(str(tmp_path / "module"))
    assert found.root == found.checkout == str(tmp_path / "module")


@pytest.mark.req("L-14")
def test_an_empty_git_folder_changes_no_project(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    before = config.project(str(tmp_path / "project"))
    for folder in (tmp_path, tmp_path / "project"):
        (folder / ".git").mkdir()  # as Codex leaves one where its sandbox may write
        assert config.project(str(tmp_path / "project")) == before


def test_every_place_follows_its_variable(tmp_path: Path) -> None:
    env = {"HOME": "/home/me"}
    assert config.home(env) == "/home/me/.local/state/taskyard"
    assert config.tasks_dir(env) == "/home/me/.claude/tasks"
    env |= {"XDG_STATE_HOME": "/state", "CLAUDE_CONFIG_DIR": "/claude"}
    assert (config.home(env), config.tasks_dir(env)) == ("/state/taskyard", "/claude/tasks")
    env |= {"TASKYARD_HOME": "/mine", "TASKYARD_TASKS_DIR": "/tasks"}
    assert (config.home(env), config.tasks_dir(env)) == ("/mine", "/tasks")
    assert config.claude_folder({"HOME": "/h"}) == "/h/.claude"
