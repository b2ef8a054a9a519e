"""Mail in a database: what the contract cannot see, as it takes a server, other machines or a Claude Code."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.cutting_proxy import Proxy
from support.postgres import server
from support.scale import scale
from support.wait import until
from taskyard.agents.teams import config_file
from taskyard.errors import RecipientNotFound
from taskyard.postgres.connection import Database, database
from taskyard.postgres.heartbeat import stop_heartbeat
from taskyard.postgres.mail import PostgresMail
from taskyard.storage import message_ids, process_registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

pytestmark = pytest.mark.req("X-01", "M-02")

#: Seconds after which a reader elsewhere counts as gone.
SHORT = 1.0


@pytest.fixture
def office(address: str, tmp_path: Path) -> Callable[..., PostgresMail]:
    """What opens a post office on a database, as a process would."""
    home, claude = str(tmp_path / "home"), str(tmp_path / "claude")
    return partial(PostgresMail, database(address), home, "crew", claude_folder=claude, silence=SHORT)


def elsewhere(where: Database) -> None:
    """Have all readers be on another machine, as far as the server knows, where no kernel is asked."""
    where.ask("UPDATE instance SET host = 'another/boot'")


def test_what_took_effect_and_was_not_answered_takes_effect_once(leaky: tuple[Proxy, Database], tmp_path: Path) -> None:
    way, where = leaky
    post = PostgresMail(where, str(tmp_path), "crew", claude_folder=str(tmp_path))
    post.open_box("bob")

    way.lose_answer(b"hello there")
    sent = post.send("ada", "bob", "hello there").id
    assert (way.lost, post.unread_count("bob")) == (1, 1)

    more = post.send("ada", "bob", "and more").id
    way.lose_answer(b"until-")  # which a holder's name begins with
    [message] = post.take("bob", limit=1, hold=60)
    assert (way.lost, message.id, message.redelivered) == (2, sent, False)
    assert [waiting.id for waiting in post.peek("bob")] == [more]

    way.lose_answer(sent.encode())
    assert post.ack("bob", [sent]) == (sent,), "it was filed by this very call"
    assert (way.lost, post.receipt(sent)) == (3, "read")


def test_a_reader_elsewhere_that_falls_silent_gives_back_what_it_held(
    office: Callable[..., PostgresMail], address: str
) -> None:
    with office() as post:
        post.open_box("bob")
        sent = post.send("ada", "bob", "hi").id
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            office().take("bob")
            os.write(write, b"taken")
            signal.pause()
        os.read(read, 5)
        elsewhere(database(address))
        assert post.take("bob") == []
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        elsewhere(database(address))

        began = time.monotonic()
        assert post.wait("bob", 20)

        assert time.monotonic() - began < 10 * SHORT
        assert [(message.id, message.redelivered) for message in post.take("bob")] == [(sent, True)]
        os.close(read)
        os.close(write)


def test_a_reader_here_that_is_killed_gives_back_at_once(address: str, tmp_path: Path) -> None:
    post = PostgresMail(database(address), str(tmp_path), "crew", claude_folder=str(tmp_path), silence=3600)
    post.open_box("bob")
    for instance in (False, True):
        sent = post.send("ada", "bob", "hi").id
        child = os.fork()
        if child == 0:
            mine = process_registry.register(str(tmp_path), "bob") if instance else None
            theirs = PostgresMail(database(address), str(tmp_path), "crew", instance=mine, silence=3600)
            theirs.take("bob")
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        assert [(message.id, message.redelivered) for message in post.take("bob")] == [(sent, True)]
        post.ack("bob", [sent])


def test_a_hold_ends_by_the_servers_clock_whatever_ours_says(
    office: Callable[..., PostgresMail], monkeypatch: pytest.MonkeyPatch
) -> None:
    post = office()
    post.open_box("bob")
    now = time.time_ns
    for hours in (-5, 5):
        monkeypatch.setattr(time, "time_ns", lambda hours=hours: now() + hours * 3600 * 10**9)
        sent = post.send("ada", "bob", "hi").id
        assert len(post.take("bob", hold=0.3)) == 1
        assert post.take("bob") == []
        assert post.wait("bob", 10)
        assert post.ack("bob", [message.id for message in post.take("bob")]) == (sent,)


def test_the_order_of_a_sender_is_that_of_storing_whatever_its_clocks_say(
    office: Callable[..., PostgresMail], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    office().open_box("bob")
    for back, text in ((0, "first"), (3600, "second"), (7200, "third")):
        monkeypatch.setattr(time, "time_ns", lambda back=back: now - back * 10**9)
        office().send("ada", "bob", text)

    assert [message.text for message in office().take("bob")] == ["first", "second", "third"]


class Counting(Database):
    """Knows how often it was asked."""

    asked = 0

    def ask(self, *values: Any, **more: Any) -> list[Any]:
        self.asked += 1
        return super().ask(*values, **more)


def test_who_waits_is_told_and_does_not_ask_again_and_again(address: str, tmp_path: Path) -> None:
    where = Counting(address)
    post = PostgresMail(where, str(tmp_path), "crew", claude_folder=str(tmp_path))
    try:
        post.open_box("bob")
        post.wait("bob", 0.3)  # whatever is done once is done
        where.asked = 0
        assert post.wait("bob", 1.0) is False
        assert where.asked <= 6  # two for each look: at the start, at the end, once more if something else stirs
    finally:
        where.close()


def test_mail_goes_on_after_the_server_was_away(tmp_path: Path) -> None:
    with server() as own:
        where = Database(own.address(), patience=30)
        post = PostgresMail(where, str(tmp_path), "crew", claude_folder=str(tmp_path))
        try:
            post.open_box("bob")
            ids = [post.send("ada", "bob", "before").id]
            own.stop(signal.SIGKILL)
            own.start()
            ids.append(post.send("ada", "bob", "after").id)
            assert post.wait("bob", 10)
            assert [message.id for message in post.take("bob")] == ids
        finally:
            stop_heartbeat(own.address())
            where.close()


def test_what_nobody_can_read_is_set_aside_and_stops_nobody(office: Callable[..., PostgresMail], address: str) -> None:
    post = office()
    post.open_box("bob")
    bad = post.send("ada", "bob", "will be torn").id
    database(address).ask("UPDATE message SET body = '{\"from\": 7}'")
    assert post.take("bob") == []
    post.send("ada", "bob", "fine")

    assert [message.text for message in post.take("bob")] == ["fine"]
    assert [error.file for error in post.damaged] == [bad]
    assert database(address).ask("SELECT state FROM message WHERE id = %s", [bad]) == [("bad",)]


# -- Claude Code on this machine ---------------------------------------------------------------


def claude_team(post: PostgresMail) -> Path:
    """A team of Claude Code's here, with a lead that it runs; the folder of its inboxes."""
    file = Path(config_file(post.claude_folder, post.team))
    (file.parent / "inboxes").mkdir(parents=True)
    members = [{"name": "lead", "agentId": "lead@crew"}, {"name": "bob", "tmuxPaneId": "taskyard"}]
    config = {"name": post.team, "createdAt": 1, "leadAgentId": "lead@crew", "members": members}
    file.write_text(json.dumps(config), encoding="utf-8")
    return file.parent / "inboxes"


def test_what_claude_code_sends_is_read_on_any_machine(office: Callable[..., PostgresMail], tmp_path: Path) -> None:
    here, there = office(), office()
    there.home = str(tmp_path / "other")
    inboxes = claude_team(here)
    entries = [
        {"from": "lead", "text": str(n), "timestamp": f"2026-11-16T00:00:0{n}.000Z", "read": False} for n in range(3)
    ]
    (inboxes / "bob.json").write_text(json.dumps(entries), encoding="utf-8")

    assert here.wait("bob", 5)

    assert [(message.sender, message.text) for message in there.take("bob")] == [(("lead"), str(n)) for n in range(3)]
    assert json.loads((inboxes / "bob.json").read_text()) == []
    assert here.take("bob") == []


def test_mail_to_a_member_that_claude_code_runs_goes_to_its_inbox_from_its_own_machine_alone(
    office: Callable[..., PostgresMail], address: str, tmp_path: Path
) -> None:
    here = office()
    elsewhere = PostgresMail(database(address), str(tmp_path / "b"), "crew", claude_folder=str(tmp_path / "none"))
    inboxes = claude_team(here)

    sent = here.send("ada", "lead", "hi").id

    [entry] = json.loads((inboxes / "lead.json").read_text())
    assert (entry["text"], here.receipt(sent), elsewhere.receipt(sent)) == ("hi", "stored", "delivered")
    (inboxes / "lead.json").write_text("[]", encoding="utf-8")
    assert here.receipt(sent) == "read"
    with pytest.raises(RecipientNotFound):
        elsewhere.send("ada", "lead", "hi")


# -- many --------------------------------------------------------------------------------------


@pytest.mark.serial
def test_a_hundred_thousand_messages_slow_nothing_down(office: Callable[..., PostgresMail], address: str) -> None:
    post, where = office(), database(address)
    post.open_box("bob")

    def spent(act: Callable[[], object]) -> float:
        """The quickest of some tries: what else happens on the machine is not meant."""
        times = []
        for _ in range(15):
            began = time.perf_counter()
            act()
            times.append(time.perf_counter() - began)
        return min(times)

    def once() -> None:
        post.send("ada", "bob", "one more")
        post.ack("bob", [message.id for message in post.take("bob", limit=1)])

    before = spent(once)
    for state in ("read", "stored"):
        where.ask(
            "INSERT INTO message (id, box, body, state)"
            " SELECT overlay(gen_random_uuid()::text PLACING '8' FROM 15)::uuid, b.id, m.body, %s"
            " FROM box b, (SELECT body FROM message LIMIT 1) m, generate_series(1, 50000)",
            [state],
        )
    where.ask("ANALYZE message")

    assert spent(once) < 5 * before + 0.002
    assert spent(lambda: post.unread_count("bob")) < 0.25
    assert spent(lambda: post.peek("bob", limit=5)) < 5 * before + 0.002


@pytest.mark.timeout(600)
def test_twenty_senders_and_a_reader_killed_again_and_again_lose_and_double_nothing(
    office: Callable[..., PostgresMail], address: str, tmp_path: Path
) -> None:
    each, heard, parent = scale(500), tmp_path / "heard", os.getpid()
    heard.touch()
    office().open_box("bob")

    def send(name: str) -> None:
        theirs = office()
        for n in range(each):
            theirs.send(name, "bob", f"{name} {n}")

    def hear() -> None:
        with office() as theirs, open(heard, "ab", buffering=0) as file:
            while os.getppid() == parent:
                for message in theirs.take("bob", limit=7):
                    if theirs.ack("bob", [message.id]):
                        again = int(message.redelivered)
                        file.write(f"\n{message.id} {message.text} {again}\n".encode())
                theirs.wait("bob", 0.05)

    senders = [forked(partial(send, f"s{number}")) for number in range(20)]
    where, lives = database(address), itertools.count()
    deadline = time.monotonic() + (500 if each == 500 else 50)
    unread = "SELECT count(*) FROM message WHERE state <> 'read'"
    while senders or where.ask(unread)[0][0]:
        assert time.monotonic() < deadline, f"{where.ask(unread)} messages are not read"
        before, reader = heard.stat().st_size, forked(hear)
        until_grown(heard, before + 40 * each)
        time.sleep(next(lives) % 7 * 0.005)  # not to be safe: readers die at different moments
        os.kill(reader, signal.SIGKILL)
        os.waitpid(reader, 0)
        senders = [pid for pid in senders if not ended_well(pid)]
    assert next(lives) > 3
    check_each_once_and_in_order(where, heard.read_bytes().decode().splitlines(), each)


def forked(act: Callable[[], object]) -> int:
    """The pid of a child process that runs `act` and ends."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        act()
        code = 0
    finally:
        os._exit(code)


def ended_well(pid: int) -> bool:
    """Whether a child has ended; one that failed fails the test."""
    found, status = os.waitpid(pid, os.WNOHANG)
    assert status == 0
    return found == pid


def until_grown(file: Path, size: int) -> None:
    """Wait until a reader heard so much; it is given up after a while, as there may be no more to hear."""
    try:
        until(lambda: file.stat().st_size > size, timeout=0.5)
    except AssertionError:
        pass


def check_each_once_and_in_order(where: Database, lines: list[str], each: int) -> None:
    """A reader killed between its acknowledgement and its line leaves a message read but not heard: count the rows."""
    seen = [parts for parts in map(str.split, lines) if len(parts) == 4 and message_ids.is_message_id(parts[0])]
    assert len({parts[0] for parts in seen}) == len(seen), "an id was acknowledged twice"
    filed = [row[0] for row in where.ask("SELECT id::text FROM message WHERE state = 'read'")]
    assert len(filed) == 20 * each
    assert {parts[0] for parts in seen} <= set(filed)
    for number in range(20):
        order = [int(parts[2]) for parts in seen if parts[1] == f"s{number}"]
        assert order == sorted(order)
