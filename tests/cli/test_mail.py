"""`taskyard mail` from a shell."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from support.command import Shell
from support.wait import until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("TASKYARD_TASKS_DIR", str(tmp_path / "tasks"))
    monkeypatch.setenv("TASKYARD_LIST", "crew")
    found = Shell(capsys)
    found("team", "create", "crew", "--lead", "ada")
    found("team", "join", "crew", "bob")
    return found


@pytest.mark.req("M-02")
def test_a_message_is_stored_read_once_and_its_receipt_follows(shell: Shell) -> None:
    sent = shell.json("mail", "send", "bob", "The API is frozen", "--from", "ada")
    assert shell("mail", "receipts", sent["id"]).out == f"{sent['id']}  stored\n"

    assert shell("mail", "read", "--agent", "bob").out == "ada, 0s ago\n    The API is frozen\n"
    assert shell.json("mail", "receipts", sent["id"]) == [{"id": sent["id"], "state": "read"}]
    assert shell("mail", "read", "--agent", "bob").out == "No mail for bob.\n"


@pytest.mark.req("M-02")
def test_looking_leaves_messages_unread(shell: Shell) -> None:
    shell("mail", "send", "bob", "hi")
    first = shell.json("mail", "read", "--by", "bob", "--peek")
    assert [(message["from"], message["text"]) for message in first] == [("me", "hi")]
    assert shell.json("mail", "read", "--by", "bob") == first


@pytest.mark.req("M-02")
def test_an_unknown_recipient_is_refused_and_names_the_nearest(shell: Shell) -> None:
    ran = shell("mail", "send", "bbo", "hi", "--json")
    assert (ran.code, ran.error["code"], ran.error["nearest"]) == (4, "recipient_not_found", ["bob"])


@pytest.mark.req("M-02")
def test_text_may_come_from_stdin(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("line 1\nline 2\n"))
    shell("mail", "send", "bob", "-")
    assert shell("mail", "read", "--agent", "bob").out == "me, 0s ago\n    line 1\n    line 2\n"


@pytest.mark.req("L-16")
def test_an_assignment_reads_as_the_task_it_is(shell: Shell) -> None:
    shell("task", "add", "Port the importer", "--description", "All of it", "--owner", "bob", "--by", "ada")

    assert shell("mail", "read", "--agent", "bob").out == (
        "ada, 0s ago, task assignment\n    #1 Port the importer\n    All of it\n"
    )


def test_text_of_others_cannot_act_on_the_terminal(shell: Shell) -> None:
    from taskyard.agents.mailbox import FileMail

    FileMail(str(shell_home()), "crew").send("ada", "bob", "fine", data={"x": "\x1b[2J"}, type="idle_notification")
    assert "\x1b" not in shell("mail", "read", "--agent", "bob").out


def shell_home() -> str:
    from taskyard import config

    return config.home()


@pytest.mark.req("M-02")
def test_what_could_not_be_shown_stays_unread(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("mail", "send", "bob", "hi")

    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

        def fileno(self) -> int:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Closed())
        from taskyard.cli.main import main

        assert main(["mail", "read", "--agent", "bob"]) == 141

    [message] = shell.json("mail", "read", "--agent", "bob")
    assert (message["text"], message["redelivered"]) == ("hi", True)


def is_read(shell: Shell, message_id: str) -> bool:
    return bool(shell.json("mail", "receipts", message_id)[0]["state"] == "read")


@pytest.mark.req("M-02", "L-18")
def test_following_shows_each_message_as_it_comes(shell: Shell) -> None:
    follower = subprocess.Popen(
        [sys.executable, "-m", "taskyard", "mail", "read", "--agent", "bob", "--follow", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout is not None
    try:
        for text in ("first", "second"):
            sent = shell.json("mail", "send", "bob", text)
            assert json.loads(follower.stdout.readline())["data"]["text"] == text
            until(partial(is_read, shell, sent["id"]))
    finally:
        follower.kill()
        follower.communicate(timeout=10)


@pytest.mark.req("M-02")
def test_following_ends_when_no_mail_came_for_so_long(shell: Shell) -> None:
    shell("mail", "send", "bob", "hi")
    ran = shell("mail", "read", "--agent", "bob", "--follow", "--timeout", "0.2s")
    assert (ran.code, ran.out) == (0, "me, 0s ago\n    hi\n")


@pytest.mark.parametrize("words", [("--peek", "--follow"), ("--timeout", "3s")])
def test_options_that_contradict_each_other_are_refused(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell("mail", "read", *words).code == 2
