"""Teammates on two machines, one list, one team, one post office."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.teams import SOON, until
from taskyard import Teammate, open_async
from taskyard.agents.teammate.embedded import Working
from taskyard.agents.teammate.loop import Turn

OTHER = """
import asyncio, sys
from taskyard import Teammate; from taskyard import open_async
from taskyard.agents.teammate.loop import Turn; from taskyard.agents.teammate.embedded import Working

async def work(turn: Turn) -> str:
    return f"{turn.who.name} did " + (turn.task.subject if turn.task else turn.prompt[-20:])

async def be() -> None:
    async with open_async(list="crew", agent="south") as yard:
        job = await yard.jobs.start(Working(Teammate("bob", "crew", until="stopped", labels=["south"]), work))
        print("there", flush=True)
        print((await yard.jobs.wait(job.id)).status, flush=True)

asyncio.run(be())
"""


@pytest.mark.req("X-01", "M-04", "K-04")
def test_teammates_on_two_machines_share_the_work_and_write_to_each_other(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_STORE", address)
    monkeypatch.setenv("TASKYARD_POLL_INTERVAL", "600")  # nobody looks but for news
    south = {**os.environ, "TASKYARD_HOME": str(tmp_path / "south"), "CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}

    async def work(turn: Turn) -> str:
        return f"{turn.who.name} did it"

    async def scene(other: subprocess.Popen[str]) -> None:
        assert other.stdout is not None
        async with open_async(list="crew", agent="lead") as yard:
            yard.teams.create("crew", lead="lead")
            job = await yard.jobs.start(Working(Teammate("ada", "crew", until="stopped", labels=["north"]), work))
            assert await asyncio.to_thread(other.stdout.readline) == "there\n"
            await until(lambda: len(yard.teams.get("crew").members) == 3)
            for label in ("north", "south", "north", "south"):
                yard.tasks.create(f"work in the {label}", labels=[label])
            await until(lambda: all(task.is_done for task in yard.tasks.list()))
            assert [task.owner for task in yard.tasks.list()] == ["ada", "bob", "ada", "bob"]
            assert {seen.member.name: seen.liveness for seen in yard.teams.members("crew")}["bob"] in ("idle", "alive")

            yard.mail.send("lead", "bob", "How do you do?")
            await until(lambda: any("bob did" in message.text for message in yard.mail.peek("lead")))
            yard.mail.send("lead", "bob", type="shutdown_request", data={"requestId": "1"})
            assert await asyncio.to_thread(other.stdout.readline) == "completed\n"
            await until(lambda: [m.name for m in yard.teams.get("crew").members] == ["lead", "ada"])
            await yard.jobs.stop(job.id)

    with subprocess.Popen([sys.executable, "-c", OTHER], env=south, stdout=subprocess.PIPE, text=True) as other:
        try:
            asyncio.run(asyncio.wait_for(scene(other), 2 * SOON))
        finally:
            other.kill()
    assert not (tmp_path / "south" / "mail").exists()
