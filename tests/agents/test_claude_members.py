"""Agents of ours in Claude Code's teams: joined and left by the same verbs as in teams of ours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import taskyard
from support.cli import taskyard as run

CONFIG: dict[str, Any] = {
    "name": "ct",
    "leadAgentId": "team-lead@ct",
    "members": [
        {"name": "team-lead", "agentType": "team-lead", "tmuxPaneId": "leader"},
        {"name": "other", "agentType": "external", "tmuxPaneId": "x"},
    ],
}


@pytest.fixture
def config() -> Path:
    """The file of a team of Claude Code's."""
    folder = Path(os.environ["CLAUDE_CONFIG_DIR"], "teams", "ct")
    folder.mkdir(parents=True)
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG, indent=2), encoding="utf-8")
    return path


def names(config: Path) -> list[str]:
    return [member["name"] for member in json.loads(config.read_bytes())["members"]]


@pytest.mark.req("M-01", "M-02")
def test_a_team_that_is_listed_can_be_joined_and_left(config: Path) -> None:
    assert run("team", "join", "ct", "bob").out == "bob joined team ct.\n"
    assert names(config) == ["team-lead", "other", "bob"]
    shown = {one["name"]: one["kind"] for one in run("team", "show", "ct", "--json").data["members"]}
    assert shown["bob"] == "external"
    assert run("mail", "send", "bob", "Hello", "--by", "team-lead", "--list", "ct").code == 0

    assert run("team", "leave", "ct", "bob").out == "bob left team ct.\n"
    assert names(config) == ["team-lead", "other"]


@pytest.mark.req("L-10", "M-01")
def test_whoever_leaves_gives_unfinished_tasks_back(config: Path) -> None:
    run("team", "join", "ct", "bob")
    run("task", "add", "Port it", "--list", "ct")
    run("task", "start", "1", "--by", "bob", "--list", "ct")

    assert run("team", "leave", "ct", "bob").out == "bob left team ct. Released: #1.\n"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("join", "ct", "team-lead"), 5, "join under another name"),
        (("join", "ct", "bob", "--pid", str(os.getpid())), 2, "leave out the pid"),
        (("leave", "ct", "team-lead"), 5, "Claude Code runs it"),
        (("leave", "ct", "other"), 5, "another program controls it"),
        (("leave", "ct", "team-led"), 4, "Nearest: team-lead."),
        (("remove", "ct"), 5, "only Claude Code can"),
        (("remove", "ct", "--force"), 5, "taskyard team leave ct AGENT"),
        (("create", "ct"), 5, "taskyard team show ct"),
        (("join", "ctt", "bob"), 4, "Nearest: ct."),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason_and_changes_nothing(
    config: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    refused = run("team", *words)

    assert refused.code == code
    assert told in refused.err
    assert json.loads(config.read_bytes()) == CONFIG


def test_a_damaged_file_of_claude_codes_is_left_alone(config: Path) -> None:
    config.write_text("{", encoding="utf-8")

    assert run("team", "join", "ct", "bob").code == 1
    assert run("team", "remove", "ct", "--force").code == 5
    assert config.read_text("utf-8") == "{"


@pytest.mark.req("M-03")
def test_a_lead_named_by_a_shell_has_no_process_and_one_named_by_a_program_has() -> None:
    run("team", "create", "crew", "--lead", "ada")
    with taskyard.open(agent="lead") as yard:
        yard.teams.create("own", lead=yard.agent)
        yard.teams.join("own", "bob")
        seen = [(one.member.name, one.member.kind, one.liveness) for one in yard.teams.members("own")]

    [ada] = run("team", "show", "crew", "--json").data["members"]
    assert (ada["kind"], ada["pid"], ada["liveness"]) == ("external", None, "unknown")
    assert seen == [("lead", "process", "idle"), ("bob", "external", "unknown")]
