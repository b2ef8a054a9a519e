"""Teams: who is in them, and who of them the kernel says is alive."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from taskyard.agents import teams as agents_teams
from taskyard.agents.mailbox import FileMail
from taskyard.agents.teams import Teams
from taskyard.config import Settings
from taskyard.core import system
from taskyard.core.system import process_start, this_host
from taskyard.errors import AlreadyExists, BadName, BadValue, NotFound, TeamHasLivingMembers, TeamNotFound
from taskyard.storage import process_registry

if TYPE_CHECKING:
    from pathlib import Path

CLAUDE_CONFIG = {
    "name": "session-1",
    "createdAt": 1794778543518,
    "leadAgentId": "team-lead@session-1",
    "leadProcess": {"pid": 0, "pidSpace": "", "procStart": "0"},
    "members": [
        {"agentId": "team-lead@session-1", "name": "team-lead", "tmuxPaneId": "leader", "backendType": "in-process"},
        {"agentId": "alice@session-1", "name": "alice", "color": "blue", "tmuxPaneId": "%3", "backendType": "tmux"},
    ],
}


@pytest.fixture
def teams(tmp_path: Path) -> Teams:
    return Teams(str(tmp_path / "home"), claude_folder=str(tmp_path / "claude"))


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def states(teams: Teams, team: str) -> dict[str, str]:
    return {seen.member.name: seen.liveness for seen in teams.members(team)}


@pytest.mark.req("M-01")
def test_a_team_has_a_lead_and_members_and_can_be_found_again(teams: Teams) -> None:
    teams.create("crew", lead="ada")
    teams.join("crew", "bob", colour="blue")
    found = teams.get("crew")
    assert (found.name, found.lead, [member.name for member in found.members]) == ("crew", "ada", ["ada", "bob"])
    assert found.members[1].colour == "blue"
    assert [team.name for team in teams.list()] == ["crew"]


@pytest.mark.req("M-01")
def test_a_team_without_a_name_gets_one_of_three_words(teams: Teams) -> None:
    names = {teams.create().name for _ in range(5)}
    assert len(names) == 5
    assert all(len(name.split("-")) == 3 for name in names)


@pytest.mark.req("M-01")
def test_a_second_team_of_a_name_is_refused_and_an_unknown_one_names_the_nearest(teams: Teams) -> None:
    teams.create("crew")
    with pytest.raises(AlreadyExists):
        teams.create("crew")
    with pytest.raises(TeamNotFound) as caught:
        teams.join("crw", "bob")
    assert caught.value.nearest == ("crew",)
    with pytest.raises(BadName):
        teams.create("a\0b")
    with pytest.raises(BadValue):
        teams.join("crew", "bob", kind="ghost")
    assert teams.get("crew").members == ()


@pytest.mark.req("M-01", "M-03")
def test_a_living_member_keeps_its_name_and_a_dead_one_makes_room(teams: Teams) -> None:
    teams.create("crew")
    process = sleeper()
    teams.join("crew", "bob", pid=process.pid, start=process_start(process.pid))
    with pytest.raises(AlreadyExists):
        teams.join("crew", "bob")
    process.kill()
    process.communicate(timeout=10)
    teams.join("crew", "bob", colour="red")
    assert [member.colour for member in teams.get("crew").members] == ["red"]


@pytest.mark.req("M-03")
def test_liveness_is_what_the_kernel_says(teams: Teams, monkeypatch: pytest.MonkeyPatch) -> None:
    me = process_registry.register(teams.home, "ada")
    process = sleeper()
    teams.create("crew", lead="ada", instance=me)
    teams.join("crew", "bob", kind="tmux", pid=process.pid, start=process_start(process.pid))
    teams.join("crew", "carol", kind="external")
    assert states(teams, "crew") == {"ada": "idle", "bob": "idle", "carol": "unknown"}

    teams.progress("crew", "bob")
    assert states(teams, "crew")["bob"] == "alive"
    now = system.now_ms()
    monkeypatch.setattr("taskyard.agents.teams.now_ms", lambda: now + 61_000)
    assert states(teams, "crew") == {"ada": "idle", "bob": "stalled", "carol": "unknown"}
    patient = Teams(teams.home, settings=Settings(stalled_after=100), claude_folder=teams.claude)
    assert states(patient, "crew")["bob"] == "alive"
    teams.progress("crew", "bob", state="idle")
    assert states(teams, "crew")["bob"] == "idle"

    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)
    me.leave()
    assert states(teams, "crew") == {"ada": "dead", "bob": "dead", "carol": "unknown"}


@pytest.mark.req("M-03")
def test_a_pid_of_another_boot_is_dead_and_of_another_machine_unknown(teams: Teams) -> None:
    teams.create("crew")
    teams.join("crew", "bob", pid=os.getpid(), start=process_start())
    path = agents_teams.path_of(teams.home, "crew")
    machine = this_host().partition("/")[0]
    for host, expected in ((f"{machine}/before", "dead"), ("elsewhere/now", "unknown")):
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        record["members"][0]["host"] = host
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file)
        assert states(teams, "crew") == {"bob": expected}


@pytest.mark.req("M-01", "L-10")
def test_a_team_with_living_members_is_removed_only_by_force_and_its_mail_is_kept(teams: Teams) -> None:
    post = FileMail(teams.home, "crew", claude_folder=teams.claude)
    teams.create("crew", lead="ada")
    teams.join("crew", "bob", pid=os.getpid(), start=process_start())
    post.send("ada", "bob", "unread")
    with pytest.raises(TeamHasLivingMembers) as caught:
        teams.remove("crew")
    assert caught.value.members == ("bob",)
    assert post.unread_count("bob") == 1

    assert [member.name for member in teams.remove("crew", force=True).members] == ["ada", "bob"]

    assert teams.list() == ()
    teams.create("crew")
    teams.join("crew", "bob")
    assert post.unread_count("bob") == 0
    kept = [name for _, _, names in os.walk(os.path.join(teams.home, "mail", ".dissolved")) for name in names]
    assert len(kept) == 2  # the message, and how far its sender had counted


@pytest.mark.req("M-01")
def test_leaving_takes_a_member_out_and_a_stranger_cannot_leave(teams: Teams) -> None:
    teams.create("crew")
    teams.join("crew", "bob")
    assert teams.leave("crew", "bob").name == "bob"
    with pytest.raises(NotFound):
        teams.leave("crew", "bob")
    with pytest.raises(NotFound):
        teams.progress("crew", "bob")
    assert teams.get("crew").members == ()


@pytest.mark.req("M-01")
def test_members_joining_from_many_processes_at_once_are_all_there(teams: Teams) -> None:
    teams.create("crew")
    children: list[int] = []
    for number in range(8):
        child = os.fork()
        if child == 0:
            try:
                teams.join("crew", f"m{number}")
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert sorted(member.name for member in teams.get("crew").members) == [f"m{number}" for number in range(8)]


@pytest.mark.req("M-01")
@pytest.mark.parametrize("rubbish", [b"", b"{", b"[]", b'{"name": 3, "members": []}', b"\xff\xfe", b"[" * 5000])
def test_a_record_that_cannot_be_read_is_named_and_hides_nobody_else(teams: Teams, rubbish: bytes) -> None:
    teams.create("crew")
    teams.create("other")
    path = agents_teams.path_of(teams.home, "crew")
    with open(path, "wb") as file:
        file.write(rubbish)
    assert [team.name for team in teams.list()] == ["other"]
    assert [error.file for error in teams.damaged] == [path]
    with open(path, "rb") as file:
        assert file.read() == rubbish


@pytest.mark.req("M-01", "M-03")
def test_teams_of_claude_code_are_listed_and_live_as_long_as_its_process(teams: Teams) -> None:
    folder = os.path.join(teams.claude, "teams", "session-1")
    os.makedirs(folder)
    process = sleeper()
    config = CLAUDE_CONFIG | {
        "leadProcess": {
            "pid": process.pid,
            "pidSpace": f"{os.uname().nodename}#{os.readlink('/proc/self/ns/pid')}",
            "procStart": str(process_start(process.pid)),
        }
    }
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    [team] = teams.list()
    assert (team.name, team.lead, team.source) == ("session-1", "team-lead", "claude")
    assert states(teams, "session-1") == {"team-lead": "idle", "alice": "unknown"}
    process.kill()
    process.communicate(timeout=10)
    assert states(teams, "session-1") == {"team-lead": "dead", "alice": "unknown"}
    with pytest.raises(AlreadyExists):
        teams.create("session-1")
    shutil.rmtree(folder)
    with pytest.raises(TeamNotFound):
        teams.get("session-1")
