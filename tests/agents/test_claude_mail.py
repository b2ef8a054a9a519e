"""The bridge to Claude Code's inboxes: its format to the byte, each message once, whatever dies when."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.agents import claude_mail, teams
from taskyard.agents.claude_mail import from_text, to_entry, to_text
from taskyard.agents.mail import Message
from taskyard.agents.mailbox import FileMail
from taskyard.core import files
from taskyard.errors import Damaged, RecipientNotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: As Claude Code left it in a run.
INBOX = r"""[
  {
    "from": "team-lead",
    "text": "hi pybot\nsecond line",
    "summary": "s",
    "timestamp": "2026-11-15T21:47:27.464Z",
    "msgV": 1,
    "msg_id": "56fdd8b9-496a-40c8-b9ae-305e95059d6b",
    "type": "message",
    "read": false
  },
  {
    "from": "team-lead",
    "text": "{\"type\":\"task_assignment\",\"taskId\":\"1\",\"subject\":\"A\",\"description\":\"da\",\"assignedBy\":\"team-lead\",\"timestamp\":\"2026-11-15T21:47:27.737Z\"}",
    "timestamp": "2026-11-15T21:47:27.737Z",
    "msgV": 1,
    "msg_id": "6941568a-7b62-4430-a069-a14395454c33",
    "type": "message",
    "read": false
  },
  {
    "from": "team-lead",
    "text": "{\"type\":\"shutdown_request\",\"requestId\":\"shutdown-1794779248067@pybot\",\"from\":\"team-lead\",\"reason\":\"bye\",\"timestamp\":\"2026-11-15T21:47:28.067Z\"}",
    "timestamp": "2026-11-15T21:47:28.067Z",
    "msgV": 1,
    "msg_id": "ba5f0f32-b848-4af0-8d87-0da3403fc979",
    "type": "message",
    "read": false
  }
]"""  # noqa: E501  (as it was found)

CONFIG: dict[str, Any] = {
    "name": "crew",
    "leadAgentId": "team-lead@crew",
    "members": [
        {"name": "team-lead", "agentType": "team-lead", "tmuxPaneId": "leader", "backendType": "in-process"},
        {"name": "alice", "agentType": "general-purpose", "tmuxPaneId": "in-process", "backendType": "in-process"},
    ],
}


class Yard:
    """A team of Claude Code's, which pybot of ours has joined."""

    def __init__(self, tmp_path: Path) -> None:
        self.home, self.claude = str(tmp_path / "home"), str(tmp_path / "claude")
        self.inboxes = tmp_path / "claude" / "teams" / "crew" / "inboxes"
        self.inboxes.mkdir(parents=True)
        (self.inboxes.parent / "config.json").write_bytes(json.dumps(CONFIG, indent=2).encode())
        teams.add_member(self.claude, "crew", "pybot")

    def post(self) -> FileMail:
        return FileMail(self.home, "crew", claude_folder=self.claude)

    def inbox(self, name: str) -> list[Any]:
        found: list[Any] = json.loads((self.inboxes / f"{name}.json").read_bytes())
        return found

    def fill(self, entries: bytes | list[Any]) -> None:
        data = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
        (self.inboxes / "pybot.json").write_bytes(data)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def entry(text: str, number: int, **more: object) -> dict[str, object]:
    return {
        "from": "team-lead",
        "text": text,
        "timestamp": "2026-11-15T21:47:27.464Z",
        "msg_id": f"id-{number}",
        "type": "message",
        "read": False,
    } | more


@pytest.mark.req("M-02")
def test_what_claude_code_wrote_to_our_member_arrives_and_leaves_the_inbox(yard: Yard) -> None:
    yard.fill(INBOX.encode())
    hello, assignment, shutdown = yard.post().take("pybot")
    assert (hello.sender, hello.recipient, hello.type, hello.text, hello.summary) == (
        "team-lead",
        "pybot",
        "message",
        "hi pybot\nsecond line",
        "s",
    )
    assert hello.sent_at == 1794779247464
    assert assignment.type == "task_assignment"
    assert assignment.data["taskId"] == "1"
    assert (shutdown.type, shutdown.text) == ("shutdown_request", "bye")
    assert (yard.inboxes / "pybot.json").read_bytes() == b"[]"
    assert sorted(os.listdir(yard.inboxes)) == ["pybot.json"]


@pytest.mark.req("M-02")
def test_a_protocol_message_that_comes_in_and_goes_out_again_is_the_same_text(yard: Yard) -> None:
    yard.fill(INBOX.encode())
    texts = [found["text"] for found in yard.inbox("pybot")]
    assert [to_text(message) for message in yard.post().take("pybot")] == texts


@pytest.mark.req("M-02")
def test_mail_to_a_member_of_claude_code_is_in_its_inbox_in_its_format(yard: Yard) -> None:
    post = yard.post()
    sent = post.send("pybot", "alice", "grüße\n✓", summary="s")
    [found] = yard.inbox("alice")
    stamp = found["timestamp"]
    assert (yard.inboxes / "alice.json").read_bytes().decode() == (
        '[\n  {\n    "from": "pybot",\n    "text": "grüße\\n✓",\n    "summary": "s",\n'
        f'    "timestamp": "{stamp}",\n    "msgV": 1,\n    "msg_id": "{sent.id}",\n'
        '    "type": "message",\n    "read": false\n  }\n]'
    )
    assert post.receipt(sent.id) == "stored"
    (yard.inboxes / "alice.json").write_bytes(b"[]")  # as Claude Code does at delivery
    assert post.receipt(sent.id) == "read"
    assert post.take("alice") == []


@pytest.mark.req("M-02", "L-16")
def test_an_assignment_to_a_member_of_claude_code_is_its_protocol_message(yard: Yard) -> None:
    task = {
        "taskId": "7",
        "subject": "s",
        "description": "d",
        "assignedBy": "pybot",
        "timestamp": "2026-11-16T00:00:00Z",
    }
    yard.post().inform("pybot", "alice", type="task_assignment", data=task)
    text = yard.inbox("alice")[0]["text"]
    assert text.startswith(
        '{"type":"task_assignment","taskId":"7","subject":"s","description":"d","assignedBy":"pybot","timestamp":"20'
    )


@pytest.mark.req("M-02")
def test_both_kinds_of_members_are_known_and_misspelt_ones_are_not(yard: Yard) -> None:
    with pytest.raises(RecipientNotFound) as caught:
        yard.post().send("pybot", "alcie", "hi")
    assert caught.value.nearest == ("alice",)
    assert os.listdir(yard.inboxes) == []


@pytest.mark.req("M-02")
def test_the_inbox_of_a_member_that_claude_code_runs_is_never_emptied_by_us(yard: Yard) -> None:
    post = yard.post()
    post.send("pybot", "alice", "hi")
    assert post.take("alice") == []
    assert len(yard.inbox("alice")) == 1


@pytest.mark.req("M-02")
def test_messages_without_ids_and_repeated_words_all_arrive_once(yard: Yard) -> None:
    same = {"from": "team-lead", "text": "same", "timestamp": "t"}
    yard.fill([same, same, entry("x", 1), entry("x", 1)])
    post = yard.post()
    assert [message.text for message in post.take("pybot")] == ["same", "same", "x"]
    yard.fill([same])
    assert [message.text for message in post.take("pybot")] == ["same"]


@pytest.mark.req("M-02")
@pytest.mark.parametrize(
    "rubbish", [b"", b"[", b"{}", b"null", b"\xff\xfe", b"[" * 5000, b'[{"from": "a", "text": "b"'], ids=repr
)
def test_an_inbox_that_cannot_be_read_is_reported_and_left_alone(yard: Yard, rubbish: bytes) -> None:
    yard.fill(rubbish)
    post = yard.post()
    post.send("ada", "pybot", "by our own way")
    assert [message.text for message in post.take("pybot")] == ["by our own way"]
    assert [error.file for error in post.damaged] == [str(yard.inboxes / "pybot.json")]
    (yard.inboxes / "alice.json").write_bytes(rubbish)
    with pytest.raises(Damaged):
        post.send("pybot", "alice", "hi")
    assert (yard.inboxes / "pybot.json").read_bytes() == rubbish
    assert (yard.inboxes / "alice.json").read_bytes() == rubbish


@pytest.mark.req("M-02")
def test_odd_entries_stay_in_the_inbox_and_the_others_arrive(yard: Yard) -> None:
    odd: list[Any] = [3, None, {"from": "x"}, {"from": "a\0b", "text": "t"}, {"from": "", "text": "t"}]
    yard.fill([*odd, entry("fine", 1), entry("\ud800 \u0007 odd", 2)])
    post = yard.post()
    assert [message.text for message in post.take("pybot")] == ["fine", "\ud800 \u0007 odd"]
    assert yard.inbox("pybot") == odd
    assert len(post.damaged) == len(odd)
    assert post.take("pybot") == []
    assert len(post.damaged) == len(odd), "reported once, as long as nothing changes"


@pytest.mark.req("M-02")
def test_messages_somebody_read_are_not_ours_to_deliver(yard: Yard) -> None:
    yard.fill([entry("old", 1, read=True), entry("new", 2)])
    assert [message.text for message in yard.post().take("pybot")] == ["new"]
    assert [found["text"] for found in yard.inbox("pybot")] == ["old"]


@pytest.mark.req("M-02")
def test_a_planted_link_is_neither_read_nor_written(yard: Yard, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_bytes(json.dumps([entry("x", 1)]).encode())
    (yard.inboxes / "pybot.json").symlink_to(secret)
    post = yard.post()
    assert post.take("pybot") == []
    assert len(post.damaged) == 1
    assert json.loads(secret.read_bytes()) == [entry("x", 1)]


@pytest.mark.req("M-02")
def test_our_mail_flows_while_an_inbox_is_locked(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_mail, "FETCH_TIMEOUT", 0.05)
    yard.fill([entry("x", 1)])
    (yard.inboxes / "pybot.json.lock").mkdir()
    post = yard.post()
    post.send("ada", "pybot", "ours")
    assert [message.text for message in post.take("pybot")] == ["ours"]
    (yard.inboxes / "pybot.json.lock").rmdir()
    assert [message.text for message in post.take("pybot")] == ["x"]


@pytest.mark.req("M-02")
def test_senders_on_both_sides_lose_nothing_in_one_inbox(yard: Yard) -> None:
    def as_claude_code(number: int) -> None:
        """Read, append, replace, under a plain lock folder: npm's never has the sticky bit ours has."""
        path = str(yard.inboxes / "pybot.json")
        for n in range(10):
            while not made(f"{path}.lock"):
                time.sleep(0.001)
            entries = [*json.loads(files.read(path) or b"[]"), entry(f"{number} {n}", number * 1000 + n)]
            files.replace(path, json.dumps(entries).encode())
            os.rmdir(f"{path}.lock")

    yard.fill([])
    children = [forked(partial(as_claude_code, number)) for number in range(3)]
    post, texts = yard.post(), list[str]()
    for _ in range(2000):
        texts += [message.text for message in post.read("pybot")]
        children = [pid for pid in children if os.waitpid(pid, os.WNOHANG) == (0, 0)]
        if not children and len(texts) >= 30:
            break
        post.wait("pybot", 0.01)
    for number in range(3):
        assert [text for text in texts if text.startswith(f"{number} ")] == [f"{number} {n}" for n in range(10)]


def made(folder: str) -> bool:
    try:
        os.mkdir(folder, 0o755)
    except FileExistsError:
        return False
    return True


def forked(act: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        act()
    finally:
        os._exit(0)


def die_at(step: int, act: Callable[[], object]) -> bool:
    """Run `act` in a child that is killed before its `step`th change of the disk; False if it came through."""
    child = os.fork()
    if child == 0:
        left = [step]

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        for name in ("rename", "unlink", "mkdir", "rmdir", "write", "pwrite"):
            setattr(os, name, counted(getattr(os, name)))
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.req("M-02")
def test_a_bridge_killed_at_any_step_delivers_each_message_exactly_once(yard: Yard) -> None:
    post = yard.post()
    post.open_box("pybot")
    step, died = 1, True
    while died:
        yard.fill([entry(f"{step} {n}", step * 1000 + n) for n in range(3)])
        died = die_at(step, lambda: yard.post().unread_count("pybot"))
        texts = [message.text for message in yard.post().read("pybot")]
        assert texts == [f"{step} {n}" for n in range(3)], f"killed before change {step}"
        assert yard.inbox("pybot") == []
        step += 1
    assert step > 15, "the child was never killed late enough to mean anything"


@pytest.mark.req("M-02")
def test_what_was_staged_before_a_crash_arrives_even_if_the_inbox_is_gone(yard: Yard) -> None:
    seen: set[int] = set()
    for step in range(1, 60):
        yard.fill([entry(f"{step}", step)])
        died = die_at(step, lambda: yard.post().unread_count("pybot"))
        stage = f"{yard.home}/mail/crew/pybot/stage"
        staged = os.listdir(stage) if os.path.isdir(stage) else []
        (yard.inboxes / "pybot.json").unlink()
        texts = [message.text for message in yard.post().read("pybot")]
        assert len(texts) <= 1
        if any(not name.endswith(".tmp") for name in staged):
            seen.add(step)
            assert texts == [str(step)]
        if not died:
            break
    assert seen


@pytest.mark.req("M-02")
@pytest.mark.parametrize("text", ["{", '{"type": "gossip"}', '{"type": "message"}', '{"type": ["x"]}', "[1]", "{}"])
def test_json_that_is_no_protocol_message_is_text(text: str) -> None:
    assert from_text(text) == ("message", {})


@pytest.mark.req("M-02")
def test_a_shutdown_request_goes_out_in_claude_codes_order() -> None:
    message = Message("i", "ada", "bob", "crew", "shutdown_request", "bye", None, {"requestId": "r"}, 0)
    assert to_entry(message)["text"] == (
        '{"type":"shutdown_request","requestId":"r","from":"ada","reason":"bye","timestamp":"1970-01-01T00:00:00.000Z"}'
    )
