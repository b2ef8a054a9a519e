"""The loop of a teammate, through jobs inside this program: what it takes, in which order, and what becomes of it."""

from __future__ import annotations

import asyncio

import pytest

from support.teams import SOON, easily, team, until
from taskyard import TaskStatus, Teammate
from taskyard.agents.engines.engine import RateLimit, TurnResult
from taskyard.agents.identity import TeammateIdentity
from taskyard.agents.teammate.embedded import Working, run
from taskyard.agents.teammate.loop import Turn
from taskyard.core.system import now_ms
from taskyard.core.values import as_list


@pytest.mark.req("M-04", "L-08")
def test_tasks_are_taken_by_ascending_id_and_a_blocked_one_when_its_blocker_is_done() -> None:
    worked: list[str] = []

    async def work(turn: Turn) -> str:
        assert turn.task is not None
        worked.append(turn.task.id)
        return "done"

    async def scene() -> str:
        async with team() as yard:
            for number in range(1, 12):
                yard.tasks.create(f"Task {number}")
            yard.tasks.block("1", by="3")
            [job] = await run(yard.jobs, [Teammate("ada", "crew")], work=work)
            return str(job.facts["result"])

    result = asyncio.run(scene())
    assert worked == ["2", "3", "1", "4", "5", "6", "7", "8", "9", "10", "11"]
    assert result.startswith("Completed 11 tasks: #2, #3, #1,")
    assert result.endswith("It ended because every task is completed.")


@pytest.mark.req("M-04")
def test_several_teammates_do_every_task_once_and_in_the_order_of_dependencies() -> None:
    done: list[str] = []

    async def work(turn: Turn) -> str:
        assert turn.task is not None
        await asyncio.sleep(0)
        done.append(turn.task.id)
        return "done"

    async def scene() -> None:
        async with team() as yard:
            for number in range(1, 41):
                yard.tasks.create(f"Task {number}", blocked_by=[str(number - 4)] if number > 4 else [])
            jobs = await run(yard.jobs, [Teammate(f"m{n}", "crew") for n in range(6)], work=work)
            assert {job.status.value for job in jobs} == {"completed"}
            assert all(task.is_done for task in yard.tasks.list())
            assert len([task for job in jobs for task in as_list(job.facts["completed"]) or ()]) == 40

    asyncio.run(scene())
    assert sorted(done, key=int) == [str(number) for number in range(1, 41)]
    assert all(done.index(str(n - 4)) < done.index(str(n)) for n in range(5, 41))


@pytest.mark.req("M-04", "M-02", "K-04")
def test_idle_is_told_once_per_change_and_new_work_is_taken_at_once() -> None:
    told: list[tuple[str, bool]] = []

    def on_idle(who: TeammateIdentity, is_idle: bool) -> None:
        told.append((who.id, is_idle))

    async def scene() -> None:
        async with team() as yard:
            spec = Working(Teammate("ada", "crew", until="stopped"), easily, [on_idle])
            job = await yard.jobs.start(spec)
            await until(lambda: told == [("ada@crew", True)])
            assert yard.jobs.get(job.id).facts["isIdle"] is True
            [ada] = [seen for seen in yard.teams.members("crew") if seen.member.name == "ada"]
            assert (ada.liveness, ada.member.kind) == ("idle", "in-process")

            woken = yard.mail.send(
                "lead", "ada", type="task_assignment", data={"taskId": "7"}
            )  # of a task that is gone
            await until(lambda: yard.mail.receipt(woken.id) == "read")
            task = yard.tasks.create("Port the importer")
            await until(lambda: told[1:] == [("ada@crew", False), ("ada@crew", True)])
            assert yard.tasks.get(task.id).is_done
            yard.tasks.update(task.id, description="Nothing to do about that.")
            await yard.jobs.stop(job.id)
            mail = yard.mail.take("lead")
            assert [message.type for message in mail] == ["idle_notification"] * 2
            assert mail[1].data["idleReason"] == "available"
            assert mail[1].data["result"] == "did Port the importer"

    asyncio.run(scene())
    assert len(told) == 3


@pytest.mark.req("L-09", "M-04")
def test_a_task_that_fails_three_times_is_set_aside_and_the_lead_hears_why() -> None:
    tries: list[str] = []
    fuel: list[str] = []

    async def work(turn: Turn) -> TurnResult | str:
        assert turn.task is not None
        if turn.task.subject == "Easy":
            return "done"
        tries.append(turn.prompt)
        if not fuel:
            raise RuntimeError("no fuel")
        return fuel.pop()

    async def scene() -> None:
        async with team() as yard:
            hard, easy = yard.tasks.create("Hard"), yard.tasks.create("Easy")
            job = await yard.jobs.start(Working(Teammate("ada", "crew"), work))
            await until(lambda: yard.jobs.get(job.id).facts["isIdle"])
            assert len(tries) == 3
            assert "An earlier attempt failed: RuntimeError: no fuel" in tries[2]
            left = yard.tasks.get(hard.id)
            assert (left.status, left.owner, left.is_held) == (TaskStatus.PENDING, None, True)
            assert yard.tasks.get(easy.id).is_done
            notes = [change.act.note for change in yard.tasks.log(hard.id) if change.act.cause == "release"]
            assert notes == ["failed: RuntimeError: no fuel"] * 3
            [mail] = [message for message in yard.mail.take("lead") if message.type == "message"]
            assert "was set aside: it failed 3 times, last because: RuntimeError: no fuel" in mail.text
            assert mail.text.endswith(f"or `taskyard task assign {hard.id} AGENT --list crew`.")

            fuel.append("done")  # the lead looked into it
            yard.tasks.assign(hard.id, "ada")
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert ended.facts["completed"] == [easy.id, hard.id]
            assert len(tries) == 4

    asyncio.run(scene())


@pytest.mark.req("K-08", "L-10")
def test_a_stop_ends_the_loop_and_gives_the_task_in_hand_back() -> None:
    begun = asyncio.Event()

    async def work(turn: Turn) -> str:
        begun.set()
        await asyncio.sleep(3600)
        return ""

    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Endless")
            job = await yard.jobs.start(Working(Teammate("ada", "crew"), work))
            await asyncio.wait_for(begun.wait(), SOON)
            held = yard.tasks.get(task.id)
            assert (held.status, held.owner) == (TaskStatus.IN_PROGRESS, "ada")
            [stopped] = await yard.jobs.stop(job.id)
            assert stopped.outcome == "stopped"
            back = yard.tasks.get(task.id)
            assert (back.status, back.owner, back.lease, back.extra) == (TaskStatus.PENDING, None, None, {})
            assert [member.name for member in yard.teams.get("crew").members] == ["lead"]

    asyncio.run(scene())


@pytest.mark.req("L-21", "M-04")
def test_only_tasks_that_suit_a_teammate_are_taken() -> None:
    async def scene() -> None:
        async with team() as yard:
            plain = yard.tasks.create("Anybody's")
            gpu = yard.tasks.create("Train", requires=["gpu"])
            docs = yard.tasks.create("Write", labels=["docs"])
            ada = await yard.jobs.start(Working(Teammate("ada", "crew", labels=["docs"]), easily))
            await until(lambda: yard.tasks.get(docs.id).is_done)
            bob = await yard.jobs.start(Working(Teammate("bob", "crew"), easily))
            await until(lambda: yard.tasks.get(plain.id).is_done and yard.jobs.get(bob.id).facts["isIdle"])
            assert yard.tasks.get(gpu.id).owner is None
            [eve] = await run(yard.jobs, [Teammate("eve", "crew", capabilities=["gpu"])], work=easily)
            assert eve.facts["completed"] == [gpu.id]
            for job in (ada, bob):
                assert (await yard.jobs.wait(job.id, timeout=SOON)).status.value == "completed"

    asyncio.run(scene())


@pytest.mark.req("L-16", "M-04")
def test_what_a_teammate_is_given_comes_first_and_nobody_else_takes_it() -> None:
    worked: list[tuple[str, str]] = []
    gate = asyncio.Event()

    async def work(turn: Turn) -> str:
        assert turn.task is not None
        worked.append((turn.who.name, turn.task.subject))
        await gate.wait()
        return "done"

    async def scene() -> None:
        async with team() as yard:
            yard.tasks.create("Open")
            yard.tasks.create("Bob's", owner="bob")
            jobs = [await yard.jobs.start(Working(Teammate(name, "crew"), work)) for name in ("bob", "ada")]
            await until(lambda: len(worked) == 2)
            gate.set()
            await yard.jobs.wait_all([job.id for job in jobs], timeout=SOON)

    asyncio.run(scene())
    assert sorted(worked) == [("ada", "Open"), ("bob", "Bob's")]


@pytest.mark.req("M-04")
def test_what_takes_too_long_counts_as_failed_and_what_failed_for_a_moment_is_tried_again() -> None:
    answers = [TurnResult(error="429", is_retryable=True), TurnResult("done")]

    async def work(turn: Turn) -> TurnResult:
        assert turn.task is not None
        if turn.task.subject == "Slow":
            await asyncio.sleep(3600)
        return answers.pop(0)

    async def scene() -> None:
        async with team() as yard:
            limited, slow = yard.tasks.create("Limited"), yard.tasks.create("Slow")
            job = await yard.jobs.start(Working(Teammate("ada", "crew", task_timeout=0.05), work))
            await until(lambda: yard.jobs.get(job.id).facts["isIdle"])
            assert yard.tasks.get(limited.id).is_done
            assert yard.tasks.get(slow.id).extra["failed"] == {
                "count": 3,
                "reason": "it took longer than 0.05 s",
                "by": "ada",
            }
            await yard.jobs.stop(job.id)

    asyncio.run(scene())


@pytest.mark.req("K-04", "B-14")
def test_a_paused_teammate_takes_nothing_until_it_is_resumed() -> None:
    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew"), easily))
            await until(lambda: yard.jobs.get(job.id).facts["isIdle"])
            assert await yard.jobs.pause(job.id)
            task = yard.tasks.create("Later")
            other = await yard.jobs.start(Working(Teammate("bob", "crew", until="stopped"), easily))
            await until(lambda: yard.jobs.get(other.id).facts["isIdle"])
            await yard.jobs.resume(job.id)
            await yard.jobs.wait(job.id, timeout=SOON)
            assert yard.tasks.get(task.id).is_done
            await yard.jobs.stop(other.id)

    asyncio.run(scene())


@pytest.mark.req("M-01", "M-04")
def test_whoever_is_taken_out_of_its_team_ends() -> None:
    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew"), easily))
            await until(lambda: yard.jobs.get(job.id).facts["isIdle"])
            yard.teams.remove("crew", force=True)
            yard.tasks.create("Too late?")
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert ended.status.value == "completed", ended.end

    asyncio.run(scene())


@pytest.mark.req("Q-01")
def test_a_conversation_that_is_lost_at_a_rate_limit_starts_again_and_costs_no_attempt() -> None:
    turns: list[tuple[str | None, bool]] = []

    async def work(turn: Turn) -> TurnResult:
        turns.append((turn.session, "Task #1: Write it" in turn.prompt))
        if len(turns) == 1:
            turn.watch.record({"type": "system", "subtype": "init", "session_id": "s1"})
            return TurnResult(rate_limit=RateLimit("google", "429", now_ms() + 100))
        if turn.session is not None:
            return TurnResult(error="Error resuming session", is_session_lost=True)
        return TurnResult("done")

    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Write it")
            await run(yard.jobs, [Teammate("ada", "crew")], work=work)
            found = yard.tasks.get(task.id)
            assert (found.is_done, found.extra.get("failed")) == (True, None)

    asyncio.run(scene())
    assert turns == [(None, True), ("s1", True), (None, True)]
