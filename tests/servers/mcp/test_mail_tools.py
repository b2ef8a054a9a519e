"""Mail between agents, through the tools."""

from __future__ import annotations

import pytest

import taskyard
from support.ended_jobs import end_job
from support.mcp_server import Model, talk
from taskyard.config import home


@pytest.mark.req("T-03", "M-02")
def test_a_message_reaches_the_one_it_is_for() -> None:
    with taskyard.open(list="demo", agent="bob") as bob:
        bob.mail.open_box("bob")

        async def body(model: Model) -> None:
            assert (await model.call("SendMessage", to="bob", message="hello", summary="hi")).text == (
                "Message sent to bob."
            )
            refused = await model.refused("SendMessage", to="bobby", message="hello")
            assert (refused.code, refused.data["error"]["nearest"]) == ("recipient_not_found", ["bob"])
            assert (await model.call("ReadMail")).text == "No mail"

        talk(body, agent="ada")
        (message,) = bob.mail.take("bob")
        assert (message.sender, message.text, message.summary) == ("ada", "hello", "hi")


@pytest.mark.req("N-03")
def test_next_notices_come_before_waiting_messages_and_later_ones_after() -> None:
    with taskyard.open(list="demo", agent="bob") as bob:

        async def body(model: Model) -> None:
            await model.call("TaskList")
            bob.mail.open_box("ada")
            bob.mail.send("bob", "ada", "first")
            later, urgent = end_job(home(), "ada"), end_job(home(), "ada", priority="next")
            rode = await model.call("TaskList")
            first, mail, last = rode.texts[-3:]
            assert urgent in first and later not in first
            assert mail == "[1 message waits for you: ReadMail shows them.]"
            assert later in last and urgent not in last
            assert [notice["task_id"] for notice in rode.notices] == [urgent, later]

        talk(body, agent="ada")


@pytest.mark.req("M-02", "L-16")
def test_mail_is_announced_with_the_next_answer_and_read_once() -> None:
    with taskyard.open(list="demo", agent="bob") as bob:

        async def body(model: Model) -> None:
            await model.call("TaskList")
            bob.mail.open_box("ada")
            bob.mail.send("bob", "ada", "first")
            bob.mail.send("bob", "ada", "second")
            rode = await model.call("TaskList")
            assert rode.texts[-1] == "[2 messages wait for you: ReadMail shows them.]"
            read = await model.call("ReadMail", limit=1)
            assert read.text == "From bob (message): first\n\n… +1 more: ReadMail again."
            assert [one["text"] for one in (await model.call("ReadMail")).data["messages"]] == ["second"]
            assert (await model.call("ReadMail")).texts == ["No mail"]

        talk(body, agent="ada")


@pytest.mark.req("M-02")
def test_a_message_to_everyone_goes_to_all_others() -> None:
    with taskyard.open(list="demo", agent="bob") as yard:
        for name in ("ada", "bob", "cyd"):
            yard.mail.open_box(name)

        async def body(model: Model) -> None:
            sent = await model.call("SendMessage", to="*", message="all hands")
            assert sorted(sent.data["sent"]) == ["bob", "cyd"]

        talk(body, agent="ada")
        assert [yard.mail.unread_count(name) for name in ("ada", "bob", "cyd")] == [0, 1, 1]
