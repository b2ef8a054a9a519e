"""`taskyard team` from a shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from support.command import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.yard import Yard


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("TASKYARD_TASKS_DIR", str(tmp_path / "tasks"))
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


@pytest.fixture
def crew(shell: Shell) -> Iterator[Yard]:
    """The list of the team `crew`, led by ada."""
    shell("team", "create", "crew", "--lead", "ada")
    with taskyard.open(list="crew", is_person=True) as yard:
        yield yard


@pytest.mark.req("M-01")
def test_a_team_is_founded_listed_shown_and_removed(shell: Shell) -> None:
    assert shell("team", "list").out == "No teams. `taskyard team up` runs one; `taskyard team create` creates one.\n"
    assert shell("team", "create", "crew", "--lead", "ada").out == "Created team crew, led by ada.\n"
    assert shell("team", "join", "crew", "bob").out == "bob joined team crew.\n"
    assert shell("team", "list").out == "crew  2 members, led by ada: 2 unknown\n"

    shown = shell("team", "show", "crew").out
    assert shown.splitlines()[0] == "Team crew, led by ada"
    assert shown.splitlines()[2].split() == ["bob", "unknown", "external"]

    assert shell("team", "remove", "crew").code == 5
    assert shell("team", "remove", "crew", "--force").out == "Deleted team crew; its mail is kept.\n"
    assert shell("team", "show", "crew").code == 4


@pytest.mark.req("M-01")
def test_a_team_without_a_name_gets_one(shell: Shell) -> None:
    made = shell.json("team", "create", "--by", "ada")
    assert made["name"].count("-") == 2
    assert made["lead"] == "ada"


@pytest.mark.req("M-01")
def test_a_second_team_of_a_name_is_refused(shell: Shell, crew: Yard) -> None:
    ran = shell("team", "create", "crew", "--json")
    assert (ran.code, ran.error["code"]) == (5, "already_exists")


@pytest.mark.req("M-03")
def test_a_member_with_a_process_is_told_alive_by_the_kernel(shell: Shell, crew: Yard) -> None:
    shell.json("team", "join", "crew", "bob", "--pid", str(os.getpid()))

    members = {member["name"]: member for member in shell.json("team", "show", "crew")["members"]}
    assert members["bob"]["liveness"] == "idle"

    ran = shell("team", "join", "crew", "eve", "--pid", "999999999")
    assert (ran.code, ran.err) == (4, "Error: Process 999999999 does not exist.\n")


@pytest.mark.req("L-10", "M-01")
def test_whoever_leaves_gives_back_and_it_is_said(shell: Shell, crew: Yard) -> None:
    shell("team", "join", "crew", "bob")
    crew.tasks.start(crew.tasks.create("Port").id, agent="bob")

    ran = shell("team", "leave", "crew", "--by", "bob")

    assert ran.out == "bob left team crew. Released: #1.\n"
    assert crew.tasks.get("1").owner is None


@pytest.mark.req("L-10", "M-01")
def test_removing_with_force_works_with_living_members_and_frees_their_tasks(shell: Shell, crew: Yard) -> None:
    shell("team", "join", "crew", "bob", "--pid", str(os.getpid()))
    crew.tasks.start(crew.tasks.create("Port").id, agent="bob")

    refused = shell("team", "remove", "crew", "--json")
    removed = shell.json("team", "remove", "crew", "--force")

    assert refused.error["members"] == ["bob"]
    assert (removed["team"], removed["members"], removed["released"]) == ("crew", ["ada", "bob"], ["1"])
    assert (removed["stopped"], removed["left"]) == ([], ["bob"])  # a process that is none of ours is left alone


@pytest.mark.req("M-01")
def test_removing_with_force_works_although_the_record_is_damaged_and_keeps_it(shell: Shell, crew: Yard) -> None:
    record = Path(crew.home, "teams", "crew.json")
    record.write_text("{", encoding="ascii")

    assert shell("team", "remove", "crew").code == 1
    assert shell("team", "remove", "crew", "--force").code == 0

    assert shell.json("team", "list") == []
    [kept] = Path(crew.home, "teams").glob("crew.json.damaged-*")
    assert kept.read_text("ascii") == "{"


def test_who_is_meant_must_be_said(shell: Shell, crew: Yard) -> None:
    ran = shell("team", "leave", "crew")
    assert (ran.code, ran.err) == (2, "Error: No agent given. Name it, or use --by (or TASKYARD_AGENT).\n")


def test_an_unknown_team_or_member_names_the_nearest(shell: Shell, crew: Yard) -> None:
    assert "Nearest: crew." in shell("team", "show", "crwe").err
    assert "Nearest: ada." in shell("team", "leave", "crew", "adda").err


@pytest.mark.req("M-03")
def test_an_agent_from_outside_says_that_it_gets_on(shell: Shell, crew: Yard) -> None:
    shell("team", "join", "crew", "bob", "--pid", str(os.getpid()))

    assert shell("team", "progress", "crew", "bob").out == "bob is at work.\n"
    assert {one["name"]: one["liveness"] for one in shell.json("team", "show", "crew")["members"]}["bob"] == "alive"
    assert shell("team", "progress", "crew", "bob", "--idle").out == "bob is idle.\n"
    assert shell("team", "list").out == "crew  2 members, led by ada: 1 idle, 1 unknown\n"
    assert shell("team", "progress", "crew", "eve").code == 4


def test_the_task_in_hand_is_shown(shell: Shell, crew: Yard) -> None:
    shell("team", "join", "crew", "bob")
    crew.tasks.start(crew.tasks.create("Port").id, agent="bob")
    assert shell("team", "show", "crew").out.splitlines()[2].split() == ["bob", "unknown", "external", "#1", "Port"]
    assert shell.json("team", "show", "crew")["members"][1]["task"] == "1"


def test_names_of_teams_members_and_engines_are_completed(shell: Shell, crew: Yard) -> None:
    shell("team", "join", "crew", "bob")
    assert shell("__complete", "--", "team", "show", "cr").out == "crew\t2 members\n"
    assert shell("__complete", "--", "team", "leave", "crew", "").out.splitlines() == ["ada\t", "bob\t"]
    assert shell("__complete", "--", "team", "up", "--engine", "comm").out.startswith("command\t")
