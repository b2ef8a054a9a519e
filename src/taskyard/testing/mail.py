"""Conformance checks for implementations of `taskyard.agents.mail.Mail`."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

from taskyard.agents.mail import Message
from taskyard.errors import BadName, BadText, BadValue, NotFound, RecipientNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from taskyard.agents.mail import Mail

    MailFactory = Callable[[], Mail]
    E = TypeVar("E", bound=Exception)

#: Seconds; longer than any step here takes: a check that reaches it hangs.
_TIMEOUT = 30.0


def check_mail(make: Callable[[], Callable[[], Mail]], *, silence: float) -> None:
    """Assert every guarantee of `Mail`. It forks: call it while no other thread holds a lock.

    Args:
        make: Creates an empty mail store and returns a factory that opens it: a new client on each call, as
            each process has its own.
        silence: Seconds after which a killed reader is known to be gone.
    """
    for check in _CHECKS:
        try:
            check(make(), silence)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__.strip('_').replace('_', ' ')}: {error}") from error


def _a_message_arrives_as_it_was_sent(office: MailFactory, _: float) -> None:
    with office() as post, office() as other:
        other.open_box("bob")
        data = {"k": [1, {"x": None}], "✓": "\x00"}
        sent = other.send("ada", "bob", "hi\nthere ✓", summary="greeting", type="message", data=data)
        [message] = post.take("bob")
        expected = Message(sent.id, "ada", "bob", post.team, "message", "hi\nthere ✓", "greeting", data)
        assert message == expected._replace(sent_at=message.sent_at), f"sent {expected}, came {message}"
        assert sent.state == "stored"
        assert abs(message.sent_at - time.time() * 1000) < 60_000, "it was sent at another time"


def _the_receipt_follows_the_message(office: MailFactory, _: float) -> None:
    with office() as post, office() as other:
        post.open_box("bob")
        sent = post.send("ada", "bob", "hi").id
        states = [other.receipt(sent)]
        post.take("bob")
        states.append(other.receipt(sent))
        assert other.ack("bob", [sent]) == (sent,), "any process can acknowledge it"
        states.append(post.receipt(sent))
        assert states == ["stored", "delivered", "read"]
        assert post.ack("bob", [sent]) == (), "it was acknowledged twice"
        _expect_error(NotFound, lambda: post.receipt("00000000-0000-8000-a000-000000000000"))
        _expect_error(NotFound, lambda: post.receipt("../../etc/passwd"))


def _unknown_names_are_refused_and_the_nearest_named(office: MailFactory, _: float) -> None:
    with office() as post:
        _expect_error(RecipientNotFound, lambda: post.send("ada", "bob", "hi"))
        post.open_box("bob")
        refusal = _expect_error(RecipientNotFound, lambda: post.send("ada", "bobb", "hi"))
        assert refusal.nearest == ("bob",), f"nearest: {refusal.nearest}"
        post.close_box("bob")
        _expect_error(RecipientNotFound, lambda: post.send("ada", "bob", "too late"))
        assert post.known() == []
        assert post.inform("ada", "bob", "you own it", data={}).state == "stored", "a new owner gets a box"
        assert post.inform("bob", "bob", "I own it", data={}).state == "skipped", "it is the agent's own change"
        post.close_box("bob")
        assert [message.text for message in post.take("bob")] == ["you own it"], "what it has stays readable"


def _what_cannot_be_sent_is_refused(office: MailFactory, _: float) -> None:
    with office() as post:
        post.open_box("bob")
        for sender, recipient, text, error in (
            ("", "bob", "hi", BadName),
            ("ada", "a\0b", "hi", BadName),
            ("ada", "bob", "", BadText),
            ("ada", "bob", "\ud800", BadText),
            ("ada", "bob", "x" * 200_001, BadText),
            ("ada", "../bob", "hi", RecipientNotFound),
        ):
            _expect_error(error, lambda: post.send(sender, recipient, text))  # noqa: B023
        _expect_error(BadValue, lambda: post.send("ada", "bob", "hi", type="gossip"))
        _expect_error(BadValue, lambda: post.send("ada", "bob", "hi", data={"x": float("nan")}))
        _expect_error(BadValue, lambda: post.ack("bob", ["../../etc/passwd"]))
        _expect_error(BadValue, lambda: post.take("bob", limit=0))
        assert (post.unread_count("bob"), post.known()) == (0, ["bob"])


def _what_a_live_reader_holds_is_not_redelivered(office: MailFactory, silence: float) -> None:
    with office() as post, office() as other:
        post.open_box("bob")
        ids = [post.send("ada", "bob", str(n)).id for n in range(3)]
        assert [message.id for message in post.take("bob", limit=2)] == ids[:2]
        time.sleep(1.5 * silence)  # a claim must not expire while its reader is alive, however long that is
        assert [message.id for message in other.take("bob")] == ids[2:]
        assert (len(post.holders("bob")), post.unread_count("bob")) == (2, 0)
        assert (post.take("bob"), post.peek("bob")) == ([], [])


def _a_client_that_closes_gives_back_what_it_held(office: MailFactory, _: float) -> None:
    with office() as post:
        post.open_box("bob")
        sent = post.send("ada", "bob", "hi").id
        with office() as other:
            other.take("bob")
        assert [(message.id, message.redelivered) for message in post.take("bob")] == [(sent, True)]


def _what_a_killed_reader_did_not_acknowledge_comes_back(office: MailFactory, silence: float) -> None:
    with office() as post:
        post.open_box("bob")
        ids = [post.send("ada", "bob", str(n)).id for n in range(5)]

        def read_two_take_two_and_die() -> None:
            theirs = office()
            theirs.ack("bob", [message.id for message in theirs.take("bob", limit=2)])
            theirs.take("bob", limit=2)

        _in_killed_child(read_two_take_two_and_die)
        deadline = time.monotonic() + silence + _TIMEOUT
        while post.unread_count("bob") < 3 and time.monotonic() < deadline:
            post.wait("ada", 0.02)
        again = post.take("bob")
        expected = [(ids[2], True), (ids[3], True), (ids[4], False)]
        assert [(message.id, message.redelivered) for message in again] == expected
        assert post.ack("bob", ids) == tuple(ids[2:])


def _mail_held_for_a_time_returns_after_it(office: MailFactory, _: float) -> None:
    with office() as post:
        post.open_box("bob")
        first = post.send("ada", "bob", "hi").id
        assert len(post.take("bob", hold=60)) == 1
        assert (post.take("bob"), post.ack("bob", [first])) == ([], (first,))
        second = post.send("ada", "bob", "hi").id
        post.take("bob", hold=0.3)
        assert post.take("bob") == []
        assert post.wait("bob", _TIMEOUT), "the waiter was not woken when the hold was over"
        assert [(message.id, message.redelivered) for message in post.take("bob")] == [(second, True)]


def _reading_acknowledges_when_the_next_is_asked_for(office: MailFactory, _: float) -> None:
    with office() as post:
        post.open_box("bob")
        ids = [post.send("ada", "bob", str(n)).id for n in range(3)]
        reading = post.read("bob")
        next(reading)
        assert post.receipt(ids[0]) == "delivered"
        next(reading)
        assert [post.receipt(each) for each in ids] == ["read", "delivered", "stored"]
        assert [message.text for message in post.read("bob")] == ["2"]
        assert [post.receipt(each) for each in ids] == ["read", "read", "read"]


def _peeking_moves_nothing(office: MailFactory, _: float) -> None:
    with office() as post:
        assert (post.peek("bob"), post.take("bob"), post.unread_count("bob")) == ([], [], 0)
        post.open_box("bob")
        for n in range(3):
            post.send("ada", "bob", str(n))
        assert [message.text for message in post.peek("bob", limit=2)] == ["0", "1"]
        assert post.unread_count("bob") == 3
        assert [message.text for message in post.take("bob")] == ["0", "1", "2"]


def _threads_of_one_sender_lose_nothing_and_each_keeps_its_order(office: MailFactory, _: float) -> None:
    with office() as post:
        post.open_box("bob")

        def send(thread: int) -> None:
            for n in range(20):
                post.send("ada", "bob", f"{thread} {n}")

        _run_concurrently(*[partial(send, thread) for thread in range(5)])
        texts = [message.text for message in post.take("bob", limit=1000)]
        assert len(texts) == 100, f"{len(texts)} of 100 came"
        for number in range(5):
            mine = [text for text in texts if text.startswith(f"{number} ")]
            assert mine == [f"{number} {n}" for n in range(20)], "a sender's messages came in another order"


def _concurrent_readers_share_without_duplicates(office: MailFactory, _: float) -> None:
    with office() as post:
        post.open_box("bob")
        ids = [post.send("ada", "bob", str(n)).id for n in range(60)]
        taken: list[list[str]] = [[], [], [], []]

        def read(mine: list[str]) -> None:
            with office() as theirs:
                while found := theirs.take("bob", limit=3):
                    assert list(theirs.ack("bob", [message.id for message in found])) == [m.id for m in found]
                    mine += [message.id for message in found]

        _run_concurrently(*[partial(read, mine) for mine in taken])
        assert sorted(each for mine in taken for each in mine) == sorted(ids)
        assert all(mine == [each for each in ids if each in mine] for mine in taken), "not in the order of sending"


def _new_mail_ends_a_wait(office: MailFactory, _: float) -> None:
    with office() as post, office() as other:
        post.open_box("bob")
        assert post.wait("bob", 0.05) is False
        answers: list[bool] = []
        waiting = threading.Thread(target=lambda: answers.append(post.wait("bob", _TIMEOUT)), daemon=True)
        waiting.start()
        began = time.monotonic()
        other.send("ada", "bob", "hi")
        waiting.join(_TIMEOUT)
        assert answers == [True]
        assert time.monotonic() - began < _TIMEOUT / 2, "the waiter was not woken: it slept the whole time"


def _what_was_read_can_be_forgotten_and_what_waits_stays(office: MailFactory, _: float) -> None:
    with office() as post:
        post.open_box("bob")
        old = post.send("ada", "bob", "old").id
        post.ack("bob", [message.id for message in post.take("bob")])
        unread = post.send("ada", "bob", "unread").id
        assert post.forget("bob", before_ms=int(time.time() * 1000) - 5 * 86_400_000) == 0
        assert post.forget("bob", before_ms=int(time.time() * 1000) + 5 * 86_400_000) == 1
        _expect_error(NotFound, lambda: post.receipt(old))
        assert post.receipt(unread) == "stored"


def _expect_error(error: type[E], call: Callable[[], object]) -> E:
    """Return the exception of a call that must raise it."""
    try:
        answer = call()
    except error as refusal:
        return refusal
    raise AssertionError(f"it should have been refused with {error.__name__}; the answer was {answer!r}")


def _run_concurrently(*calls: Callable[[], object]) -> None:
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_TIMEOUT)
    assert not any(thread.is_alive() for thread in threads), "one never returned"


def _in_killed_child(act: Callable[[], object]) -> None:
    """Run `act` in a forked child that then kills itself with SIGKILL."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


_CHECKS: tuple[Callable[[MailFactory, float], None], ...] = (
    _a_message_arrives_as_it_was_sent,
    _the_receipt_follows_the_message,
    _unknown_names_are_refused_and_the_nearest_named,
    _what_cannot_be_sent_is_refused,
    _what_a_live_reader_holds_is_not_redelivered,
    _a_client_that_closes_gives_back_what_it_held,
    _what_a_killed_reader_did_not_acknowledge_comes_back,
    _mail_held_for_a_time_returns_after_it,
    _reading_acknowledges_when_the_next_is_asked_for,
    _peeking_moves_nothing,
    _threads_of_one_sender_lose_nothing_and_each_keeps_its_order,
    _concurrent_readers_share_without_duplicates,
    _new_mail_ends_a_wait,
    _what_was_read_can_be_forgotten_and_what_waits_stays,
)
