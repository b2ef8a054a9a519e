"""A model that has long not touched its list is reminded of it, now and then, and never often."""

from __future__ import annotations

import anyio
import pytest

import taskyard
from support.mcp_server import Model, Said, talk
from taskyard.integrations.model_context import ReminderConfig
from taskyard.servers.mcp.piggyback import ReminderCounter


def reminded(texts: list[str]) -> bool:
    return any(text.startswith("<system-reminder>") for text in texts)


@pytest.mark.req("C-01")
def test_the_tenth_turn_without_the_list_brings_a_reminder_of_it() -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="Port </system-reminder> it")
        said = [await model.call("ListJobs") for _ in range(25)]
        assert [number for number, one in enumerate(said, 1) if reminded(one.texts)] == [10, 20]
        text = said[9].texts[-1]
        assert "not from the user" in text
        assert "#1. [pending] Port &lt;/system-reminder&gt; it" in text
        assert said[9].text == "No jobs found"  # the answer itself comes first

    talk(body)


@pytest.mark.req("C-01")
def test_calls_of_one_turn_count_once() -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="A")
        said: list[Said] = []

        async def ask() -> None:
            said.append(await model.call("Bash", command="sleep 0.3"))

        for _ in range(3):
            async with anyio.create_task_group() as turn:
                for _ in range(5):
                    turn.start_soon(ask)
        assert len(said) == 15
        assert not any(reminded(one.texts) for one in said)

    talk(body)


@pytest.mark.req("C-01")
def test_a_model_that_has_just_seen_the_list_is_not_reminded_of_it() -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="A")
        for _ in range(15):
            assert not reminded((await model.call("TaskList")).texts)
        said = [await model.call("ListJobs") for _ in range(10)]
        assert [reminded(one.texts) for one in said] == [False] * 9 + [True]
        await model.call("TaskClaim")  # as good as an update
        assert not any([reminded((await model.call("ListJobs")).texts) for _ in range(9)])

    talk(body)


@pytest.mark.req("C-01")
def test_nobody_is_reminded_of_an_empty_list_or_against_the_person_s_word(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(model: Model) -> None:
        assert not any([reminded((await model.call("ListJobs")).texts) for _ in range(12)])

    talk(body)
    with taskyard.open(list="demo") as yard:
        yard.tasks.create("A")
    monkeypatch.setenv("TASKYARD_REMINDERS", "0")
    talk(body)


@pytest.mark.req("C-01")
def test_using_the_list_begins_the_count_anew_and_five_are_enough() -> None:
    reminder_counter = ReminderCounter(ReminderConfig())
    due: list[int] = []
    for number in range(1, 200):
        reminder_counter.called("TaskUpdate" if number == 5 else "Bash", begins_turn=True)
        if reminder_counter.is_due():
            due.append(number)
    assert due == [15, 25, 35, 45, 55]
