"""A teammate's mail: letters, being shut down, plans."""

from __future__ import annotations

import asyncio

import pytest

from support.teams import SOON, easily, team, until
from taskyard import AsyncYard, TaskStatus, Teammate
from taskyard.agents.mail import Message
from taskyard.agents.teammate.embedded import Working
from taskyard.agents.teammate.loop import Turn


def of_type(yard: AsyncYard, kind: str) -> list[Message]:
    """What waits for the lead, of one type."""
    return [message for message in yard.mail.peek("lead") if message.type == kind]


@pytest.mark.req("M-02", "K-04")
def test_a_message_is_a_prompt_of_its_own_and_the_answer_is_mailed_back() -> None:
    prompts: list[str] = []

    async def work(turn: Turn) -> str:
        prompts.append(turn.prompt)
        return "Two are left."

    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew", prompt="Be brief.", until="stopped"), work))
            await until(lambda: yard.jobs.get(job.id).facts.get("isIdle"))
            sent = yard.mail.send("lead", "ada", "How many are left?")
            await until(lambda: of_type(yard, "message"))
            [answer] = of_type(yard, "message")
            assert (answer.sender, answer.text, answer.data) == ("ada", "Two are left.", {"inReplyTo": sent.id})
            await until(lambda: yard.mail.receipt(sent.id) == "read")
            await until(lambda: len(of_type(yard, "idle_notification")) == 2)
            await yard.jobs.stop(job.id)

    asyncio.run(scene())
    [prompt] = prompts
    assert prompt.startswith("You are ada, a teammate in team crew.")
    assert "Be brief." in prompt
    assert prompt.endswith("A message from lead:\n\nHow many are left?")


@pytest.mark.req("M-02")
def test_two_teammates_do_not_answer_each_other_for_ever() -> None:
    heard: list[tuple[str, str]] = []

    async def work(turn: Turn) -> str:
        heard.append((turn.who.name, turn.prompt.rpartition("\n\n")[2]))
        return "Thanks!"

    async def scene() -> None:
        async with team() as yard:
            jobs = [
                await yard.jobs.start(Working(Teammate(name, "crew", until="stopped"), work)) for name in ("ada", "bob")
            ]
            await until(lambda: all(yard.jobs.get(job.id).facts.get("isIdle") for job in jobs))
            yard.mail.send("ada", "bob", "Hello bob")
            await until(lambda: len(of_type(yard, "idle_notification")) == 4)  # each was busy once more
            yard.mail.send("lead", "bob", "Anything else?")
            await until(lambda: ("bob", "Anything else?") in heard)
            await yard.jobs.stop(*[job.id for job in jobs])

    asyncio.run(scene())
    assert heard == [("bob", "Hello bob"), ("ada", "Thanks!"), ("bob", "Anything else?")]


@pytest.mark.req("K-04", "M-02")
def test_what_is_typed_into_its_job_reaches_it_too() -> None:
    prompts: list[str] = []

    async def work(turn: Turn) -> str:
        prompts.append(turn.prompt)
        return "ok"

    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew", until="stopped"), work))
            await until(lambda: yard.jobs.get(job.id).facts.get("isIdle"))
            assert await yard.jobs.send(job.id, "Look at the log\n")
            await until(lambda: prompts)
            assert prompts[0].endswith("\n\nLook at the log")
            await yard.jobs.stop(job.id)

    asyncio.run(scene())


@pytest.mark.req("M-02", "M-04")
def test_a_shutdown_request_is_answered_and_the_task_in_hand_is_finished_first() -> None:
    gate = asyncio.Event()

    async def work(turn: Turn) -> str:
        await gate.wait()
        return "done"

    async def scene() -> None:
        async with team() as yard:
            task, later = yard.tasks.create("In hand"), yard.tasks.create("Later")
            job = await yard.jobs.start(Working(Teammate("ada", "crew"), work))
            await until(lambda: yard.tasks.get(task.id).owner == "ada")
            yard.mail.send("lead", "ada", "enough", type="shutdown_request", data={"requestId": "r-1"})
            await until(lambda: of_type(yard, "shutdown_approved"))
            [answer] = of_type(yard, "shutdown_approved")
            assert (answer.sender, answer.data["requestId"]) == ("ada", "r-1")
            assert answer.data["backendType"] == "in-process"
            gate.set()
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert ended.status.value == "completed"
            assert str(ended.facts["result"]).endswith("It ended because lead asked it to.")
            assert yard.tasks.get(task.id).is_done
            assert yard.tasks.get(later.id).owner is None

    asyncio.run(scene())


@pytest.mark.req("M-02", "L-10")
def test_a_second_shutdown_request_ends_it_at_once_and_the_task_goes_back() -> None:
    async def work(turn: Turn) -> str:
        await asyncio.sleep(3600)
        return ""

    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Endless")
            job = await yard.jobs.start(Working(Teammate("ada", "crew"), work))
            await until(lambda: yard.tasks.get(task.id).owner == "ada")
            for _ in range(2):
                yard.mail.send("lead", "ada", "enough", type="shutdown_request")
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert ended.status.value == "completed"
            back = yard.tasks.get(task.id)
            assert (back.status, back.owner, back.extra) == (TaskStatus.PENDING, None, {})

    asyncio.run(scene())


@pytest.mark.req("M-02")
def test_only_the_lead_or_the_person_shuts_a_teammate_down() -> None:
    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew", until="stopped"), easily))
            await until(lambda: yard.jobs.get(job.id).facts.get("isIdle"))
            sent = yard.mail.send("mallory", "ada", "go away", type="shutdown_request")
            await until(lambda: yard.mail.receipt(sent.id) == "read")
            assert not yard.jobs.get(job.id).is_final
            (refusal,) = yard.mail.take("mallory")
            assert refusal.text == "ada goes on: only lead or me can shut it down."
            yard.mail.send("me", "ada", "please", type="shutdown_request")
            assert (await yard.jobs.wait(job.id, timeout=SOON)).status.value == "completed"

    asyncio.run(scene())


async def _plans(yard: AsyncYard, count: int) -> Message:
    await until(lambda: len(of_type(yard, "plan_approval_request")) == count)
    return of_type(yard, "plan_approval_request")[-1]


@pytest.mark.req("K-04", "M-02")
def test_a_plan_that_the_lead_rejects_is_revised_and_work_begins_when_one_is_approved() -> None:
    prompts: list[str] = []

    async def work(turn: Turn) -> str:
        prompts.append(turn.prompt)
        return f"Plan {len(prompts)}"

    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Port the importer")
            job = await yard.jobs.start(Working(Teammate("ada", "crew", plan_first=True), work))
            asked = await _plans(yard, 1)
            assert (asked.data["planContent"], asked.data["taskId"]) == ("Plan 1", task.id)
            assert yard.jobs.get(job.id).facts["awaitsApproval"] is True
            verdict = {"requestId": asked.data["requestId"], "approved": False, "feedback": "Tests first."}
            yard.mail.send("mallory", "ada", type="plan_approval_response", data={**verdict, "approved": True})
            yard.mail.send("lead", "ada", type="plan_approval_response", data=verdict)
            asked = await _plans(yard, 2)
            assert len(prompts) == 2
            assert asked.data["planContent"] == "Plan 2"
            late = {"requestId": verdict["requestId"], "approved": False, "feedback": "about the first plan"}
            yard.mail.send("lead", "ada", type="plan_approval_response", data=late)
            verdict = {"requestId": asked.data["requestId"], "approved": True}
            yard.mail.send("lead", "ada", type="plan_approval_response", data=verdict)
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert ended.facts["completed"] == [task.id]

    asyncio.run(scene())
    assert "The lead says:\nTests first." in prompts[1]
    assert "The plan that was approved:\nPlan 2" in prompts[2]
    assert len(prompts) == 3


@pytest.mark.req("K-04")
def test_plans_are_revised_a_bounded_number_of_times() -> None:
    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Port the importer")
            job = await yard.jobs.start(Working(Teammate("ada", "crew", plan_first=True), easily))
            for count in range(1, 6):
                asked = await _plans(yard, count)
                verdict = {"requestId": asked.data["requestId"], "approved": False, "feedback": "no"}
                yard.mail.send("lead", "ada", type="plan_approval_response", data=verdict)
            await until(lambda: "failed" in yard.tasks.get(task.id).extra)
            failed = yard.tasks.get(task.id).extra["failed"]
            assert failed == {"count": 1, "reason": "5 plans were not approved; the last word was: no", "by": "ada"}
            await yard.jobs.stop(job.id)

    asyncio.run(scene())


@pytest.mark.req("K-04", "M-02")
def test_a_shutdown_while_a_plan_waits_for_its_verdict_gives_the_task_back() -> None:
    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Port the importer")
            job = await yard.jobs.start(Working(Teammate("ada", "crew", plan_first=True), easily))
            await _plans(yard, 1)
            yard.mail.send("lead", "ada", type="shutdown_request")
            await yard.jobs.wait(job.id, timeout=SOON)
            assert (yard.tasks.get(task.id).owner, yard.tasks.get(task.id).extra) == (None, {})

    asyncio.run(scene())
