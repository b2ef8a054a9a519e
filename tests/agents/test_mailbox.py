"""Mail: stored means stored, unknown names are refused, every message is acknowledged once."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from taskyard.agents.mail import Message
from taskyard.agents.mailbox import FileMail
from taskyard.agents.teams import Teams
from taskyard.errors import BadName, BadText, BadValue, NotFound, RecipientNotFound, StorageError
from taskyard.storage import message_ids, process_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def post(tmp_path: Path) -> Iterator[FileMail]:
    with FileMail(str(tmp_path / "home"), "crew", claude_folder=str(tmp_path / "claude")) as post:
        post.open_box("bob")
        yield post


def another(post: FileMail) -> FileMail:
    """A post office as a second process would have it."""
    return FileMail(post.home, post.team, claude_folder=post.claude_folder)


def in_child(act: Callable[[], object]) -> None:
    """Run `act` in a forked child that then dies without a word."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


@pytest.mark.req("M-02")
def test_a_message_arrives_as_it_was_sent(post: FileMail) -> None:
    receipt = post.send("ada", "bob", "hi\nthere ✓", summary="greeting")
    [message] = post.take("bob")
    assert message == Message(
        receipt.id, "ada", "bob", "crew", "message", "hi\nthere ✓", "greeting", {}, message.sent_at, False
    )
    assert receipt.state == "stored"
    assert abs(message.sent_at - time.time() * 1000) < 60_000


@pytest.mark.req("M-02")
def test_the_receipt_follows_the_message(post: FileMail) -> None:
    sent = post.send("ada", "bob", "hi")
    assert post.receipt(sent.id) == "stored"
    post.take("bob")
    assert post.receipt(sent.id) == "delivered"
    assert post.ack("bob", [sent.id]) == (sent.id,)
    assert post.receipt(sent.id) == "read"
    assert post.ack("bob", [sent.id]) == ()
    with pytest.raises(NotFound):
        post.receipt("00000000-0000-8000-a000-000000000000")


@pytest.mark.req("M-02")
def test_a_message_to_an_unknown_name_is_refused_and_names_the_nearest(post: FileMail, tmp_path: Path) -> None:
    with pytest.raises(RecipientNotFound) as caught:
        post.send("ada", "bobb", "hi")
    assert caught.value.nearest == ("bob",)
    assert sorted(os.listdir(tmp_path / "home" / "mail" / "crew")) == ["bob"]


@pytest.mark.req("M-02")
def test_members_and_the_living_can_get_mail_and_those_who_left_cannot(post: FileMail) -> None:
    teams = Teams(post.home, claude_folder=post.claude_folder)
    teams.create("crew", lead="lead")
    teams.join("crew", "carol")
    with process_registry.register(post.home, "dave"):
        assert post.known() == ["bob", "carol", "dave", "lead"]
        for name in post.known():
            assert post.send("ada", name, "hi").state == "stored"
    teams.leave("crew", "carol")
    with pytest.raises(RecipientNotFound):
        post.send("ada", "carol", "too late")
    assert [message.text for message in post.read("carol")] == ["hi"]


@pytest.mark.req("M-02")
def test_what_a_dead_reader_did_not_acknowledge_comes_back_marked_with_the_same_id(post: FileMail) -> None:
    ids = [post.send("ada", "bob", str(n)).id for n in range(5)]

    def read_two_and_die() -> None:
        theirs = another(post)
        theirs.ack("bob", [message.id for message in theirs.take("bob", limit=2)])
        theirs.take("bob", limit=2)

    in_child(read_two_and_die)

    again = post.take("bob")
    assert [(message.id, message.redelivered) for message in again] == [
        (ids[2], True),
        (ids[3], True),
        (ids[4], False),
    ]
    assert post.ack("bob", ids) == (ids[2], ids[3], ids[4])


@pytest.mark.req("M-02")
def test_what_a_living_reader_holds_is_given_to_nobody_else(post: FileMail) -> None:
    sent = post.send("ada", "bob", "hi")
    assert len(post.take("bob")) == 1
    with another(post) as second:
        assert second.take("bob") == []
        assert second.ack("bob", [sent.id]) == (sent.id,)


@pytest.mark.req("M-02")
def test_a_post_office_that_closes_gives_back_what_it_held(post: FileMail) -> None:
    sent = post.send("ada", "bob", "hi")
    with another(post) as second:
        second.take("bob")
    assert [(message.id, message.redelivered) for message in post.take("bob")] == [(sent.id, True)]


@pytest.mark.req("M-02")
def test_mail_held_for_a_time_returns_after_it(post: FileMail) -> None:
    sent = post.send("ada", "bob", "hi")
    assert len(post.take("bob", hold=60)) == 1
    assert post.take("bob") == []
    assert post.ack("bob", [sent.id]) == (sent.id,)
    sent = post.send("ada", "bob", "hi")
    post.take("bob", hold=-1)
    assert [(message.id, message.redelivered) for message in post.take("bob")] == [(sent.id, True)]


@pytest.mark.req("M-02")
def test_reading_acknowledges_a_message_when_the_next_is_asked_for(post: FileMail) -> None:
    ids = [post.send("ada", "bob", str(n)).id for n in range(3)]
    reading = post.read("bob")
    next(reading)
    assert post.receipt(ids[0]) == "delivered"
    next(reading)
    assert [post.receipt(each) for each in ids] == ["read", "delivered", "stored"]
    del reading
    assert [message.text for message in post.read("bob")] == ["2"]
    assert [post.receipt(each) for each in ids] == ["read", "read", "read"]


@pytest.mark.req("M-02")
def test_peeking_moves_nothing(post: FileMail) -> None:
    post.send("ada", "bob", "hi")
    assert [message.text for message in post.peek("bob")] == ["hi"]
    assert post.unread_count("bob") == 1
    assert [message.text for message in post.take("bob")] == ["hi"]
    assert post.unread_count("bob") == 0


@pytest.mark.req("M-02")
def test_a_clock_that_steps_back_between_two_sender_processes_keeps_the_order(
    post: FileMail, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    for back, text in ((0, "first"), (3600, "second"), (7200, "third")):
        monkeypatch.setattr(time, "time_ns", lambda back=back: now - back * 10**9)
        another(post).send("ada", "bob", text)
    assert [message.text for message in post.take("bob")] == ["first", "second", "third"]


@pytest.mark.req("M-02")
def test_a_thousand_messages_in_one_instant_keep_their_order(post: FileMail, monkeypatch: pytest.MonkeyPatch) -> None:
    instant = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: instant)
    for n in range(300):
        post.send("ada", "bob", str(n))
    assert [message.text for message in post.take("bob", limit=1000)] == [str(n) for n in range(300)]


@pytest.mark.req("M-02")
def test_many_threads_of_one_sender_lose_nothing_and_each_keeps_its_order(post: FileMail) -> None:
    def send(thread: int) -> None:
        for n in range(30):
            post.send("ada", "bob", f"{thread} {n}")

    threads = [threading.Thread(target=send, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    texts = [message.text for message in post.take("bob", limit=1000)]
    assert len(texts) == 180
    for number in range(6):
        mine = [text for text in texts if text.startswith(f"{number} ")]
        assert mine == [f"{number} {n}" for n in range(30)]


@pytest.mark.req("M-02")
@pytest.mark.parametrize(
    ("sender", "recipient", "text", "error"),
    [
        ("", "bob", "hi", BadName),
        ("ada", "a\0b", "hi", BadName),
        ("ada", "x" * 201, "hi", BadName),
        ("ada", "bob", "", BadText),
        ("ada", "bob", "bell\a", BadText),
        ("ada", "bob", "\ud800", BadText),
        ("ada", "bob", "x" * 200_001, BadText),
        ("ada", "../bob/../../x", "hi", RecipientNotFound),
        ("ada", "..", "hi", RecipientNotFound),
    ],
)
def test_what_cannot_be_sent_is_refused_and_leaves_nothing(
    post: FileMail, tmp_path: Path, sender: str, recipient: str, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        post.send(sender, recipient, text)
    assert os.listdir(tmp_path / "home" / "mail" / "crew") == ["bob"]
    assert post.unread_count("bob") == 0


@pytest.mark.req("M-02")
def test_unknown_types_odd_data_and_odd_ids_are_refused(post: FileMail) -> None:
    with pytest.raises(BadValue):
        post.send("ada", "bob", "hi", type="gossip")
    with pytest.raises(BadValue):
        post.send("ada", "bob", "hi", data={"x": object()})
    with pytest.raises(BadValue):
        post.send("ada", "bob", "hi", data={"x": float("nan")})
    with pytest.raises(BadValue):
        post.ack("bob", ["../../etc/passwd"])
    with pytest.raises(BadValue):
        post.take("bob", limit=0)
    assert post.unread_count("bob") == 0


@pytest.mark.req("M-02")
def test_rubbish_in_a_box_is_set_aside_and_reported_and_stops_nobody(post: FileMail, tmp_path: Path) -> None:
    box = tmp_path / "home" / "mail" / "crew" / "bob"
    bad = post.send("ada", "bob", "will be torn")
    (box / "new" / bad.id).write_bytes(b'{"from": \xff')
    (box / "new" / "stranger.txt").write_bytes(b"x")
    post.send("ada", "bob", "fine")
    assert [message.text for message in post.take("bob")] == ["fine"]
    assert [os.path.basename(error.file) for error in post.damaged] == [bad.id]
    assert (box / "bad" / bad.id).read_bytes() == b'{"from": \xff'


@pytest.mark.req("M-02")
def test_boxes_are_private_and_planted_links_are_refused(tmp_path: Path) -> None:
    post = FileMail(str(tmp_path / "home"), "crew", claude_folder=str(tmp_path / "claude"))
    old = os.umask(0)
    try:
        post.open_box("bob")
        post.send("ada", "bob", "hi")
    finally:
        os.umask(old)
    for folder, folders, names in os.walk(tmp_path / "home"):
        assert all(os.stat(os.path.join(folder, name)).st_mode & 0o777 == 0o700 for name in folders)
        assert all(os.stat(os.path.join(folder, name)).st_mode & 0o777 == 0o600 for name in names)
    (tmp_path / "target").mkdir()
    (tmp_path / "home" / "mail" / "crew" / "eve").symlink_to(tmp_path / "target")
    with pytest.raises(StorageError):
        post.open_box("eve")
    assert list((tmp_path / "target").iterdir()) == []


@pytest.mark.req("M-02")
def test_what_was_read_long_ago_can_be_forgotten_and_what_waits_stays(
    post: FileMail, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 10 * 86400 * 10**9)
    old = post.send("ada", "bob", "old").id
    post.ack("bob", [message.id for message in post.take("bob")])
    unread = post.send("ada", "bob", "old but unread").id
    assert post.forget("bob", before_ms=now // 10**6 - 5 * 86400 * 1000) == 1
    with pytest.raises(NotFound):
        post.receipt(old)
    assert post.receipt(unread) == "stored"


@pytest.mark.req("M-02")
def test_no_step_ever_lists_what_was_read(post: FileMail, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(50):
        post.send("ada", "bob", str(n))
    post.ack("bob", [message.id for message in post.take("bob")])
    listed: list[tuple[str, int]] = []

    def listdir(folder: str) -> list[str]:
        names = real(folder)
        listed.append((folder, len(names)))
        return names

    real = os.listdir
    monkeypatch.setattr(os, "listdir", listdir)
    post.send("ada", "bob", "one more")
    post.ack("bob", [message.id for message in post.take("bob")])
    assert post.unread_count("bob") == 0
    assert all("/cur" not in folder and count <= 1 for folder, count in listed)


@pytest.mark.req("M-02")
def test_a_long_queue_is_listed_once_and_not_once_per_bite(post: FileMail, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [post.send("ada", "bob", str(n)).id for n in range(40)]
    listings: list[str] = []

    def listdir(folder: str) -> list[str]:
        listings.append(folder)
        return real(folder)

    real = os.listdir
    monkeypatch.setattr(os, "listdir", listdir)
    taken = [message.id for _ in range(10) for message in post.take("bob", limit=4)]
    assert taken == ids
    assert len([folder for folder in listings if folder.endswith("/new")]) == 2


def forked(act: Callable[[], object]) -> int:
    """The pid of a child process that runs `act` and ends."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        act()
        code = 0
    finally:
        os._exit(code)


@pytest.mark.req("M-02")
@pytest.mark.timeout(600)
def test_twenty_senders_and_a_reader_killed_again_and_again_lose_and_double_nothing(
    post: FileMail, tmp_path: Path
) -> None:
    each = 500 if os.environ.get("TASKYARD_SOAK") else 50
    heard, parent = tmp_path / "heard", os.getpid()
    heard.touch()

    def send(name: str) -> None:
        theirs = another(post)
        for n in range(each):
            theirs.send(name, "bob", f"{name} {n}")

    def hear() -> None:
        with another(post) as theirs, open(heard, "ab", buffering=0) as file:
            while os.getppid() == parent:
                for message in theirs.take("bob", limit=7):
                    if theirs.ack("bob", [message.id]):
                        file.write(f"\n{message.id} {message.text}\n".encode())
                theirs.wait("bob", 0.05)

    senders = [forked(partial(send, f"s{number}")) for number in range(20)]
    deadline, lives = time.monotonic() + (500 if each == 500 else 40), itertools.count()
    while senders or post.unread_count("bob"):
        assert time.monotonic() < deadline, f"{post.unread_count('bob')} messages still wait"
        before, reader = heard.stat().st_size, forked(hear)
        grew(heard, before)
        time.sleep(next(lives) % 7 * 0.005)  # not to be safe: readers die at different moments
        os.kill(reader, signal.SIGKILL)
        os.waitpid(reader, 0)
        senders = [pid for pid in senders if not ended_well(pid)]
    check_each_once_and_in_order(post, heard.read_bytes().decode().splitlines(), each)


def ended_well(pid: int) -> bool:
    """Whether a child has ended; one that failed fails the test."""
    found, status = os.waitpid(pid, os.WNOHANG)
    assert status == 0
    return found == pid


def grew(file: Path, size: int) -> bool:
    """Whether a reader heard something; it is given up after 100 looks, as there may be nothing to hear."""
    for _ in range(100):
        if file.stat().st_size > size:
            return True
        time.sleep(0.002)
    return False


def check_each_once_and_in_order(post: FileMail, lines: list[str], each: int) -> None:
    """A reader killed between its acknowledgement and its line leaves a message read but not heard: count the files."""
    # A write that crosses a page may be cut there by the kill: such a line was heard, but cannot be read.
    seen = [parts for parts in map(str.split, lines) if len(parts) == 3 and message_ids.is_message_id(parts[0])]
    assert len({parts[0] for parts in seen}) == len(seen), "an id was acknowledged twice"
    filed = [name for _, _, names in os.walk(f"{post.folder}/bob/cur") for name in names]
    assert len(filed) == len(set(filed)) == 20 * each
    assert {parts[0] for parts in seen} <= set(filed)
    for number in range(20):
        order = [int(parts[2]) for parts in seen if parts[1] == f"s{number}"]
        assert order == sorted(order)
