"""Claude Code's teams: joined and left under its lock, everything else in the file untouched."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.agents import teams as agents_teams
from taskyard.errors import AlreadyExists, Damaged, TeamNotFound

if TYPE_CHECKING:
    from pathlib import Path

CONFIG: dict[str, Any] = {
    "name": "session-1",
    "createdAt": 1794779238843,
    "leadAgentId": "team-lead@session-1",
    "somethingNew": {"kept": True},
    "members": [
        {"agentId": "team-lead@session-1", "name": "team-lead", "agentType": "team-lead", "tmuxPaneId": "leader"},
    ],
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "teams" / "session-1"
    folder.mkdir(parents=True)
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG, indent=2))
    path.chmod(0o644)
    return path


@pytest.mark.req("M-01", "M-02")
def test_joining_adds_one_member_and_changes_nothing_else(config: Path, tmp_path: Path) -> None:
    member = agents_teams.add_member(str(tmp_path), "session-1", "pybot", colour="green", cwd="/p")
    after = json.loads(config.read_bytes())
    entry = after["members"].pop()
    joined = entry.pop("joinedAt")
    assert after == CONFIG
    assert abs(joined - time.time() * 1000) < 60_000
    assert list(entry.items()) == [
        ("agentId", "pybot@session-1"),
        ("name", "pybot"),
        ("color", "green"),
        ("tmuxPaneId", "taskyard"),
        ("subscriptions", []),
        ("agentType", "external"),
        ("cwd", "/p"),
        ("backendType", "tmux"),
        ("isActive", True),
    ]
    assert member.is_ours
    assert config.stat().st_mode & 0o777 == 0o644
    assert sorted(os.listdir(config.parent)) == [".taskyard", "config.json"]


@pytest.mark.req("M-01")
def test_the_file_keeps_claude_codes_shape(config: Path, tmp_path: Path) -> None:
    before = config.read_bytes()
    agents_teams.add_member(str(tmp_path), "session-1", "pybot")
    assert agents_teams.remove_member(str(tmp_path), "session-1", "pybot")
    assert config.read_bytes() == before


@pytest.mark.req("M-01")
def test_joining_twice_is_joining_once_and_a_strangers_name_is_refused(config: Path, tmp_path: Path) -> None:
    first = agents_teams.add_member(str(tmp_path), "session-1", "pybot")
    assert agents_teams.add_member(str(tmp_path), "session-1", "pybot") == first
    with pytest.raises(AlreadyExists):
        agents_teams.add_member(str(tmp_path), "session-1", "team-lead")
    assert not agents_teams.remove_member(str(tmp_path), "session-1", "team-lead")
    assert len(json.loads(config.read_bytes())["members"]) == 2


@pytest.mark.req("M-01")
def test_joining_from_many_processes_at_once_loses_nobody(config: Path, tmp_path: Path) -> None:
    children: list[int] = []
    for number in range(6):
        child = os.fork()
        if child == 0:
            try:
                agents_teams.add_member(str(tmp_path), "session-1", f"m{number}")
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert len(json.loads(config.read_bytes())["members"]) == 7


@pytest.mark.req("M-01")
@pytest.mark.parametrize("rubbish", [b"", b"{", b"[]", b'{"members": 3}', b"\xff"])
def test_a_team_file_that_cannot_be_read_is_reported_and_left_alone(
    config: Path, tmp_path: Path, rubbish: bytes
) -> None:
    config.write_bytes(rubbish)
    with pytest.raises(Damaged):
        agents_teams.add_member(str(tmp_path), "session-1", "pybot")
    assert config.read_bytes() == rubbish
    teams, damaged = agents_teams.list_claude_teams(str(tmp_path))
    assert (teams, [error.file for error in damaged]) == ([], [str(config)])


@pytest.mark.req("M-01")
def test_members_with_impossible_names_are_left_out_and_left_in_the_file(config: Path, tmp_path: Path) -> None:
    odd: list[Any] = [{"name": "x" * 300}, {"name": 3}, "nobody", {"name": "a\0b"}, None]
    config.write_bytes(json.dumps(CONFIG | {"members": odd}).encode())
    agents_teams.add_member(str(tmp_path), "session-1", "pybot")
    assert json.loads(config.read_bytes())["members"][:5] == odd
    team = agents_teams.read_claude_team(str(tmp_path), "session-1")
    assert team is not None
    assert [member.name for member in team.members] == ["pybot"]


@pytest.mark.req("M-01")
def test_a_team_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(TeamNotFound):
        agents_teams.add_member(str(tmp_path), "nothing", "pybot")
    assert list(tmp_path.iterdir()) == []
