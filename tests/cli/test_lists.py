"""All lists, which one is current, and how to make one so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.cli import taskyard

pytestmark = pytest.mark.req("L-14")


def test_every_list_is_counted_and_the_current_one_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    taskyard("task", "add", "A", "--list", "one")
    taskyard("task", "add", "B", "--list", "one")
    taskyard("task", "done", "1", "--list", "one")
    taskyard("task", "add", "C", "--list", "two")
    monkeypatch.setenv("CLAUDE_CODE_TASK_LIST_ID", "two")

    data = {facts["name"]: facts for facts in taskyard("lists", "--json").data}

    assert (data["one"]["open"], data["one"]["done"], data["one"]["current"]) == (1, 1, False)
    assert (data["two"]["current"], data["two"]["why"]) == (True, "CLAUDE_CODE_TASK_LIST_ID")
    assert data["one"]["changed_at"] > 0
    assert taskyard("lists").lines[1].startswith("* two  1 open, 0 done")
    assert taskyard("lists", "-q").out.split() == ["one", "two"]


@pytest.mark.parametrize(
    ("words", "env", "why"),
    [
        (("--list", "x"), {"TASKYARD_LIST": "y"}, "--list"),
        ((), {"TASKYARD_LIST": "x", "CLAUDE_CODE_TASK_LIST_ID": "y"}, "TASKYARD_LIST"),
        ((), {"CLAUDE_CODE_TEAM_NAME": "x"}, "CLAUDE_CODE_TEAM_NAME"),
        ((), {"TASKYARD_LIST_SCOPE": "session", "TASKYARD_SESSION": "x"}, "the session"),
    ],
)
def test_what_decided_about_the_list_is_named(
    words: tuple[str, ...], env: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taskyard("task", "add", "A", "--list", "x")
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert taskyard("lists", *words, "--json").data[0]["why"] == why
    assert taskyard("task", "list", "-v", *words).err == f"List x, by {why}.\n"


def test_looking_at_the_lists_changes_no_folder(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "1.json").write_text('{"id":"1","subject":"A","status":"pending"}', encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "no list").mkdir()

    data = taskyard("lists", "--tasks-dir", str(tmp_path), "--json").data

    assert [(facts["name"], facts["open"]) for facts in data] == [("theirs", 1)]
    assert os.listdir(tmp_path / "theirs") == ["1.json"]
    assert taskyard("lists", "--tasks-dir", str(tmp_path / "gone")).err.startswith("The current list is")


def test_a_shell_that_evaluates_the_answer_uses_the_list() -> None:
    command = taskyard("lists", "use", "my list; rm -rf ~").out
    done = subprocess.run(
        ["bash", "-c", f"{command}\nprintenv CLAUDE_CODE_TASK_LIST_ID"],
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )

    assert done.stdout == "my-list--rm--rf--\n"
    assert taskyard("lists", "use", "x", "--shell", "fish").out == "set -gx CLAUDE_CODE_TASK_LIST_ID x\n"


def test_a_list_that_must_exist_and_does_not_is_refused_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    taskyard("task", "add", "A", "--list", "release")
    monkeypatch.setenv("TASKYARD_LIST", "other")

    ran = taskyard("lists", "use", "relase", "--existing")

    assert ran.code == 4 and "Nearest: release" in ran.err
    assert "TASKYARD_LIST is set" in taskyard("lists", "use", "release").err


@pytest.mark.parametrize("kind", ["file", "link", "below a file"])
@pytest.mark.parametrize("command", [("lists",), ("lists", "use", "x", "--existing"), ("task", "events", "--all")])
def test_a_folder_of_lists_that_is_none_is_refused_as_by_every_other_command(
    tmp_path: Path, kind: str, command: tuple[str, ...]
) -> None:
    (tmp_path / "there").mkdir()
    place = tmp_path / "place"
    place.symlink_to(tmp_path / "there") if kind == "link" else place.write_text("")
    where = place / "below" if kind == "below a file" else place

    ran = taskyard(*command, "--tasks-dir", str(where))

    assert ran.code == taskyard("task", "list", "--tasks-dir", str(where)).code == 1
    assert "symbolic link" in ran.err or "is a file" in ran.err
    assert ran.out == ""
