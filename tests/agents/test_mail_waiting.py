"""Waiting for mail: the kernel tells of it, ours and Claude Code's alike."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.wait import until
from taskyard.agents.mailbox import FileMail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENTRY = {"from": "lead", "text": "hi", "timestamp": "2026-11-16T00:00:00.000Z", "msg_id": "m1", "read": False}


@pytest.fixture
def post(tmp_path: Path) -> Iterator[FileMail]:
    with FileMail(str(tmp_path / "home"), "crew", claude_folder=str(tmp_path / "claude")) as post:
        post.open_box("bob")
        yield post


@pytest.fixture
def looks(post: FileMail, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for every look at a box."""
    found: list[str] = []
    count = post.unread_count

    def counted(agent: str) -> int:
        found.append(agent)
        return count(agent)

    monkeypatch.setattr(post, "unread_count", counted)
    return found


def woken_by(post: FileMail, looks: list[str], act: Callable[[], object]) -> bool:
    """Whether `act` ends a wait for bob's mail that had found none."""
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(post.wait("bob", 10)))
    waiting.start()
    until(lambda: looks, what="the first look")
    act()
    waiting.join(timeout=8)
    return answers == [True]


@pytest.mark.req("M-02", "L-18")
def test_new_mail_ends_the_wait(post: FileMail, looks: list[str]) -> None:
    sender = FileMail(post.home, post.team, claude_folder=post._claude.claude)

    assert woken_by(post, looks, lambda: sender.send("ada", "bob", "hi"))


@pytest.mark.req("M-02", "L-18")
def test_without_mail_the_wait_ends_with_its_time_and_looks_at_nothing_meanwhile(
    post: FileMail, looks: list[str]
) -> None:
    assert post.wait("bob", 0.3) is False
    assert len(looks) <= 3  # at the start and at the end; one more if something else stirred in the folder


@pytest.mark.req("M-02", "L-18")
def test_mail_that_claude_code_wrote_ends_the_wait_too(post: FileMail, looks: list[str]) -> None:
    inboxes = Path(post.watched_folders("bob")[1])
    inboxes.mkdir(parents=True)
    config = {"name": post.team, "createdAt": 1, "leadAgentId": f"lead@{post.team}", "members": [{"name": "lead"}]}
    (inboxes.parent / "config.json").write_text(json.dumps(config), encoding="utf-8")

    assert woken_by(post, looks, lambda: (inboxes / "bob.json").write_text(json.dumps([ENTRY]), encoding="utf-8"))


@pytest.mark.req("M-02")
def test_mail_that_a_dead_reader_had_in_hand_ends_the_wait(post: FileMail, looks: list[str]) -> None:
    post.send("ada", "bob", "hi")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        post.take("bob")
        os.write(write, b"taken")
        signal.pause()
    os.read(read, 5)

    def die() -> None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    assert woken_by(post, looks, die)
    assert [message.redelivered for message in post.take("bob")] == [True]
    os.close(read)
    os.close(write)
