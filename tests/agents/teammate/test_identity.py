"""Inside a teammate, code acts as that teammate, and sees nothing of another's."""

from __future__ import annotations

import asyncio
import threading

import pytest

import taskyard
from support.teams import team
from taskyard import Teammate, config
from taskyard.agents.identity import current
from taskyard.agents.teammate.embedded import run
from taskyard.agents.teammate.loop import Turn


@pytest.mark.req("K-04", "L-14", "L-09")
def test_a_yard_opened_inside_a_teammate_is_its_own() -> None:
    async def work(turn: Turn) -> str:
        assert turn.task is not None
        with taskyard.open() as yard:
            assert (yard.agent, yard.tasks.name) == (turn.who.name, turn.who.team)
            mine = yard.tasks.get(turn.task.id)
            assert mine.lease is not None
            assert mine.lease.instance == turn.who.instance.id
            yard.tasks.complete(turn.task.id)  # by the very claim of the teammate
        return "done"

    async def scene() -> None:
        async with team("crew") as yard, team("other") as second:
            yard.tasks.create("Ours")
            second.tasks.create("Theirs")
            pair = [Teammate("ada", "crew"), Teammate("ada", "other")]
            jobs = await run(yard.jobs, pair, work=work)
            assert [job.facts["result"] for job in jobs] == [
                "Completed 1 task: #1. It ended because every task is completed."
            ] * 2

    asyncio.run(scene())


@pytest.mark.req("K-04")
def test_no_identity_leaks_between_the_tasks_and_threads_of_one_program() -> None:
    seen: list[tuple[str, str, str | None]] = []

    def look(who: str, where: str) -> None:
        here = current()
        seen.append((who, where, here.id if here is not None else None))

    async def work(turn: Turn) -> str:
        who = turn.who.id
        for _ in range(5):
            look(who, "work")
            await asyncio.sleep(0)
            await asyncio.gather(asyncio.to_thread(look, who, "thread"), _later(who))
        return "done"

    async def _later(who: str) -> None:
        await asyncio.sleep(0)
        look(who, "task")

    async def scene() -> None:
        async with team() as yard:
            for number in range(12):
                yard.tasks.create(f"Task {number}")
            bystander = asyncio.create_task(_watch())
            await run(yard.jobs, [Teammate(f"m{n}", "crew") for n in range(4)], work=work)
            bystander.cancel()
            assert current() is None
            assert config.teammate_team.get() is None

    async def _watch() -> None:
        while True:
            assert current() is None
            await asyncio.sleep(0)

    asyncio.run(scene())
    assert len(seen) == 12 * 5 * 3
    assert [entry for entry in seen if entry[0] != entry[2]] == []


@pytest.mark.req("K-04")
def test_a_thread_that_does_not_take_its_context_along_acts_for_nobody() -> None:
    seen: list[object] = []

    async def work(turn: Turn) -> str:
        thread = threading.Thread(target=lambda: seen.append(current()))
        thread.start()
        thread.join()
        return "done"

    async def scene() -> None:
        async with team() as yard:
            yard.tasks.create("Task")
            await run(yard.jobs, [Teammate("ada", "crew")], work=work)

    asyncio.run(scene())
    assert seen == [None]
