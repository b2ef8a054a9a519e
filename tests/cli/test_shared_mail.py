"""Mail and teams from the shells of two machines that share a database."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import taskyard
from support.cli import Ran
from support.cli import taskyard as command
from support.mcp_server import Model, talk

pytestmark = pytest.mark.req("X-01", "M-01", "M-02")


class Machine:
    """One machine: its own home, its own Claude Code, the same database."""

    def __init__(self, home: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._home = home
        self._address = address
        self._monkeypatch = monkeypatch

    def here(self) -> None:
        """Be on this machine from now on."""
        for name, value in {
            "HOME": self._home,
            "TASKYARD_HOME": self._home / "taskyard",
            "CLAUDE_CONFIG_DIR": self._home / "claude",
            "TASKYARD_STORE": self._address,
            "TASKYARD_LIST": "crew",
        }.items():
            self._monkeypatch.setenv(name, str(value))

    def __call__(self, *words: str) -> Ran:
        self.here()
        return command(*words)


@pytest.fixture
def machines(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, Machine]:
    north, south = (Machine(tmp_path / name, address, monkeypatch) for name in ("north", "south"))
    return north, south


def test_a_team_and_its_mail_are_the_same_on_both(machines: tuple[Machine, Machine]) -> None:
    north, south = machines
    north("team", "create", "crew", "--lead", "ada")
    assert south("team", "join", "crew", "bob").code == 0
    shown = north("team", "show", "crew", "--json").data
    assert [(one["name"], one["liveness"]) for one in shown["members"]] == [("ada", "unknown"), ("bob", "unknown")]

    sent = north("mail", "send", "bob", "The API is frozen", "--from", "ada", "--json").data["id"]
    assert south("mail", "receipts", sent).out == f"{sent}  stored\n"
    assert [one["text"] for one in south("mail", "read", "--agent", "bob", "--json").data] == ["The API is frozen"]
    assert north("mail", "receipts", sent).out == f"{sent}  read\n"

    refused = south("mail", "send", "add", "hi", "--json")
    assert (refused.code, refused.error["code"], refused.error["nearest"]) == (4, "recipient_not_found", ["ada"])
    assert south("task", "add", "Write it down", "--owner", "ada").code == 0
    assert [one["type"] for one in north("mail", "read", "--by", "ada", "--json").data] == ["task_assignment"]
    assert south("team", "leave", "crew", "bob").code == 0
    assert [line.split()[0] for line in north("team", "show", "crew").lines] == ["Team", "ada"]
    assert north("team", "remove", "crew").code == 0
    assert south("team", "list", "--json").data == []


def test_who_follows_mail_hears_at_once_of_what_another_machine_sends(machines: tuple[Machine, Machine]) -> None:
    north, south = machines
    north("team", "create", "crew", "--lead", "ada")
    north.here()
    argv = [sys.executable, "-m", "taskyard", "mail", "read", "--by", "ada", "--follow", "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as following:
        try:
            assert following.stdout is not None
            south("mail", "send", "ada", "first")
            assert "first" in following.stdout.readline()  # from now on it sleeps
            began = time.monotonic()
            south("mail", "send", "ada", "second")
            assert "second" in following.stdout.readline()
            assert time.monotonic() - began < 5
        finally:
            following.kill()


def test_models_on_two_machines_write_to_each_other(machines: tuple[Machine, Machine]) -> None:
    north, south = machines
    south.here()
    with taskyard.open(list="demo", agent="bob") as bob:
        north.here()

        async def body(model: Model) -> None:
            assert (await model.call("SendMessage", to="bob", message="hello", summary="hi")).text == (
                "Message sent to bob."
            )
            refused = await model.refused("SendMessage", to="bobby", message="hello")
            assert (refused.code, refused.data["error"]["nearest"]) == ("recipient_not_found", ["bob"])
            bob.mail.send("bob", "ada", "hello yourself")
            read = await model.call("ReadMail")
            assert [one["text"] for one in read.data["messages"]] == ["hello yourself"]
            await model.call("TaskList")  # what was read is acknowledged with the next request
            assert bob.mail.unread_count("ada") == 0

        talk(body, agent="ada")
        [message] = bob.mail.take("bob")
        assert (message.sender, message.text, message.summary) == ("ada", "hello", "hi")
        assert bob.mail.holders("ada") == []
