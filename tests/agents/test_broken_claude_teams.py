"""What Claude Code left broken stops only what goes through it, and the doctor names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli import taskyard
from taskyard.agents import teams
from taskyard.agents.mailbox import FileMail
from taskyard.agents.teams import Teams
from taskyard.errors import Damaged
from taskyard.yard.doctor import doctor

pytestmark = pytest.mark.req("M-02")


@pytest.fixture
def team(outside: Path) -> Path:
    """The folder of Claude Code's team `crew`, which has alice; bob is in ours of that name."""
    folder = outside / ".claude" / "teams" / "crew"
    (folder / "inboxes").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"members": [{"name": "alice"}]}), encoding="utf-8")
    teams.add_member(str(outside / ".claude"), "crew", "pybot")
    return folder


def post(outside: Path) -> FileMail:
    return FileMail(str(outside / "state"), "crew", claude_folder=str(outside / ".claude"))


def break_config(team: Path, how: str) -> None:
    (team / "config.json").unlink()
    if how == "a folder":
        (team / "config.json").mkdir()
    else:
        (team / "config.json").write_text(how, encoding="utf-8")


@pytest.mark.parametrize("how", ["{", "[]", "a folder"])
def test_a_broken_record_of_a_team_keeps_no_mail_from_members_of_ours(outside: Path, team: Path, how: str) -> None:
    break_config(team, how)
    home = str(outside / "state")
    Teams(home, claude_folder=str(outside / "none")).create("crew", lead="bob")
    mail = post(outside)
    mail.open_box("pybot")

    for name in ("bob", "pybot"):
        assert mail.send("ada", name, "hello").state == "stored"
        assert [message.text for message in post(outside).take(name)] == ["hello"]
    mail.inform("ada", "bob", type="task_assignment", data={"taskId": "1"})
    assert {"bob", "pybot"} <= set(mail.known())
    assert [error.file for error in mail.damaged] == [str(team / "config.json")]
    with pytest.raises(Damaged, match="taskyard doctor"):
        mail.send("ada", "alice", "perhaps she is Claude Code's")


def test_the_command_line_sends_and_warns_and_the_doctor_says_who_can_repair(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_config(team, "{")
    monkeypatch.setenv("TASKYARD_LIST", "crew")
    taskyard("task", "add", "a", "--list", "crew")
    (team / "config.json").rename(team / "away")
    taskyard("team", "create", "crew", "--lead", "bob")
    (team / "away").rename(team / "config.json")

    sent = taskyard("mail", "send", "bob", "hello")

    assert (sent.code, "config.json cannot be read" in sent.err) == (0, True)
    examined = taskyard("doctor")
    assert examined.code == 1
    assert "damaged-claude-team" in examined.out
    assert str(team / "config.json") in examined.out
    assert "it is Claude Code's" in examined.out


def findings(team: Path) -> list[tuple[str, str]]:
    with doctor(tasks_dir=team / "tasks", list="plan") as list_doctor:
        return [(one.name, Path(one.file).name) for one in list_doctor.examine() if one.file.startswith(str(team))]


def test_the_doctor_names_inboxes_that_cannot_be_read_and_changes_nothing(team: Path) -> None:
    assert findings(team) == []
    odd = json.dumps([7, {"from": "x", "text": "fine"}, {"read": True}])
    for name, text in (("alice", odd), ("pybot", odd), ("eve", "[]"), ("carl", "{}"), ("dora", "[")):
        (team / "inboxes" / f"{name}.json").write_text(text, encoding="utf-8")
    (team / "inboxes" / "notes.txt").write_text("x", encoding="utf-8")
    before = {path: path.read_bytes() for path in (team / "inboxes").iterdir()}

    assert findings(team) == [("damaged-claude-inbox", f"{name}.json") for name in ("carl", "dora", "pybot")]
    assert {path: path.read_bytes() for path in (team / "inboxes").iterdir()} == before

    break_config(team, "")
    assert findings(team) == [
        ("damaged-claude-team", "config.json"),
        ("damaged-claude-inbox", "carl.json"),
        ("damaged-claude-inbox", "dora.json"),
    ]


def test_names_that_no_team_can_have_are_passed_over(outside: Path, team: Path) -> None:
    (team.parent / ("x" * 230)).mkdir()
    (team.parent / "with space").mkdir()

    assert teams.claude_team_names(str(outside / ".claude")) == ["crew"]
    assert findings(team) == []


def test_bridged_mail_leaves_no_folder_open_to_others(outside: Path, team: Path) -> None:
    post(outside).send("ada", "alice", "hello")

    made = [path for path in (outside / "state").rglob("*") if path.is_dir()]
    assert {oct(path.stat().st_mode & 0o777) for path in made} == {"0o700"}
    assert any(path.name == "cur" for path in made)
