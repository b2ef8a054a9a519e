"""Teammates on a list in a database: woken by its server, and in no folder's way."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

import taskyard
from support.teams import SOON, easily, team, until
from taskyard import Teammate
from taskyard.agents.teammate.embedded import Working, run

pytestmark = pytest.mark.req("X-01", "M-04")


@pytest.fixture(autouse=True)
def shared(address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TASKYARD_STORE", address)
    monkeypatch.setenv("TASKYARD_POLL_INTERVAL", "300")  # whoever is woken is woken by the server
    return address


def test_teammates_drain_a_list_that_is_in_a_database() -> None:
    async def scene() -> None:
        async with team() as yard:
            for number in range(6):
                yard.tasks.create(f"Task {number}", blocked_by=[str(number)] if number % 2 else [])
            mates = [Teammate(name, "crew") for name in ("ada", "bob")]
            async with asyncio.timeout(SOON):
                jobs = await run(yard.jobs, mates, work=easily)
            assert {str(job.status) for job in jobs} <= {"completed", "JobStatus.COMPLETED"}
            assert all(task.is_done for task in yard.tasks.list())
            trackers = [task for task in yard.tasks.list(internal=True) if task.is_internal]
            assert trackers
            assert all(task.is_done for task in trackers)

    asyncio.run(scene())
    assert not os.path.exists(os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "tasks"))


def test_an_idle_teammate_is_woken_by_another_machines_task(shared: str) -> None:
    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew", until="stopped"), easily))
            await until(lambda: yard.jobs.get(job.id).facts.get("isIdle"))
            await asyncio.sleep(0.3)  # it has looked for the last time by itself
            with taskyard.open(store=shared, list="crew", agent="elsewhere") as other:
                made = other.tasks.create("From afar")
                began = time.monotonic()
                await until(lambda: other.tasks.get(made.id).is_done)
            assert time.monotonic() - began < 5
            await yard.jobs.stop(job.id)

    asyncio.run(scene())


def test_what_an_engine_runs_finds_the_same_list(shared: str, tmp_path: os.PathLike[str]) -> None:
    note = f"{tmp_path}/env"
    script = f'echo "$TASKYARD_STORE|$TASKYARD_TASKS_DIR" > {note}; {os.sys.executable} -m taskyard task list --json'  # type: ignore[attr-defined]

    async def scene() -> None:
        async with team() as yard:
            yard.tasks.create("Look around")
            spec = Teammate("ada", "crew", engine="command", command=["sh", "-c", f"cat > /dev/null; {script}"])
            async with asyncio.timeout(SOON):
                await yard.jobs.wait((await yard.jobs.start(spec)).id)
            assert yard.tasks.get("1").is_done

    asyncio.run(scene())
    with open(note, encoding="utf-8") as file:
        assert file.read() == f"{shared}|\n"
