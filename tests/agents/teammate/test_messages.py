"""What reaches a teammate, and what of it is kept for the view."""

from __future__ import annotations

import asyncio

import pytest

from taskyard.agents.teammate.mail import (
    LONGEST_SHOWN,
    MOST_WAITING,
    RECENT,
    Inbox,
    IncomingMessage,
    RecentMessages,
)


@pytest.mark.req("K-04")
def test_the_last_fifty_messages_are_kept_and_each_is_cut() -> None:
    recent = RecentMessages()
    for number in range(500):
        recent.add({"type": "assistant", "text": f"{number} " + "x" * 1_000_000 * (number == 499), "input": {"a": [1]}})
    kept = recent.shown()
    assert (len(kept), RECENT) == (50, 50)
    assert str(kept[0]["text"]).startswith("450")
    assert len(str(kept[-1]["text"])) == LONGEST_SHOWN
    assert kept[0]["input"] == "{'a': [1]}"


@pytest.mark.req("M-02")
def test_letters_are_dealt_with_in_order_and_the_next_one_of_who_decides_answers_a_question() -> None:
    async def scene() -> None:
        read: list[str] = []
        inbox = Inbox(lambda letter: read.append(letter.text))
        inbox.put(IncomingMessage("first"))
        asking = asyncio.create_task(inbox.answer())
        await asyncio.sleep(0)
        inbox.put(IncomingMessage("go on", sender="bob", may_answer=False))
        inbox.put(IncomingMessage("the answer"))
        inbox.put(IncomingMessage("second"))
        assert await asking == "the answer"
        assert [(await inbox.next()).text for _ in range(3)] == ["first", "go on", "second"]
        assert read == ["the answer", "first", "go on", "second"]

    asyncio.run(scene())


@pytest.mark.req("M-02")
def test_while_many_letters_wait_no_more_are_fetched() -> None:
    async def scene() -> None:
        inbox = Inbox(lambda letter: None)
        for number in range(MOST_WAITING):
            await inbox.room()
            inbox.put(IncomingMessage(str(number)))
        waiting = asyncio.create_task(inbox.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert inbox.take() == IncomingMessage("0")
        await asyncio.wait_for(waiting, 10)

    asyncio.run(scene())


@pytest.mark.req("M-02")
def test_an_answer_comes_through_however_many_letters_wait() -> None:
    async def scene() -> None:
        inbox = Inbox(lambda letter: None)
        for number in range(MOST_WAITING):
            inbox.put(IncomingMessage(str(number), "bob", may_answer=False))
        fetching = asyncio.create_task(inbox.room())
        asking = asyncio.create_task(inbox.answer())
        await asyncio.wait_for(fetching, 10)
        inbox.put(IncomingMessage("the answer"))
        assert await asyncio.wait_for(asking, 10) == "the answer"
        assert len(inbox) == MOST_WAITING

    asyncio.run(scene())
