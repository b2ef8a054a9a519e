"""A teammate of ours in a team of Claude Code's, and what it leaves to others."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import taskyard
from support.teams import SOON, easily, team, until
from support.wait import until as wait_until
from taskyard import TaskStatus, Teammate
from taskyard.agents.teammate.embedded import Working
from taskyard.agents.teammate.loop import Turn
from taskyard.storage.locks import RangeLock
from taskyard.tasks.task_list import TaskList

CONFIG: dict[str, Any] = {
    "name": "ct",
    "leadAgentId": "team-lead@ct",
    "members": [{"name": "team-lead", "agentType": "team-lead", "tmuxPaneId": "leader"}],
}


@pytest.fixture
def claude() -> Path:
    """The folder of a team of Claude Code's."""
    folder = Path(os.environ["CLAUDE_CONFIG_DIR"], "teams", "ct")
    (folder / "inboxes").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2), encoding="utf-8")
    return folder


def inbox(folder: Path, name: str) -> list[dict[str, Any]]:
    """What is said in an inbox: protocol messages, each a JSON text."""
    try:
        entries: list[dict[str, Any]] = json.loads((folder / "inboxes" / f"{name}.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return []  # not there yet, or about to be written
    return [json.loads(entry["text"]) for entry in entries]


def names(folder: Path) -> list[str]:
    return [member["name"] for member in json.loads((folder / "config.json").read_bytes())["members"]]


@pytest.mark.req("M-02", "M-04", "K-04")
def test_in_a_team_of_claude_codes_it_idles_and_is_shut_down_in_claude_codes_words(claude: Path) -> None:
    async def scene() -> None:
        async with taskyard.open_async(list="ct") as yard:
            task = yard.tasks.create("Port it")
            job = await yard.jobs.start(Working(Teammate("ada", "ct", until="stopped"), easily))
            await until(lambda: inbox(claude, "team-lead"))
            [told] = inbox(claude, "team-lead")
            assert (told["type"], told["from"], told["idleReason"]) == ("idle_notification", "ada", "available")
            assert yard.tasks.get(task.id).is_done
            assert names(claude) == ["team-lead", "ada"]

            asked = {"type": "shutdown_request", "requestId": "shutdown-1@ada", "from": "team-lead", "reason": "done"}
            entry = {"from": "team-lead", "text": json.dumps(asked), "timestamp": "2026-01-01T00:00:00.000Z"}
            (claude / "new").write_text(json.dumps([{**entry, "read": False}]), encoding="utf-8")
            (claude / "new").rename(claude / "inboxes" / "ada.json")
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert ended.status.value == "completed"
            answer = inbox(claude, "team-lead")[-1]
            assert (answer["type"], answer["requestId"]) == ("shutdown_approved", "shutdown-1@ada")
            assert names(claude) == ["team-lead"]

    asyncio.run(scene())


@pytest.mark.req("L-09", "M-04")
def test_a_task_that_was_taken_away_meanwhile_is_let_go_and_counts_for_nothing() -> None:
    gate = asyncio.Event()

    async def work(turn: Turn) -> str:
        await gate.wait()
        return "done"

    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Mine?")
            job = await yard.jobs.start(Working(Teammate("ada", "crew"), work))
            await until(lambda: yard.tasks.get(task.id).owner == "ada")
            yard.tasks.assign(task.id, "zoe")  # by the lead
            gate.set()
            await until(lambda: yard.jobs.get(job.id).facts["isIdle"])
            now = yard.tasks.get(task.id)
            assert (now.owner, now.is_done) == ("zoe", False)
            yard.tasks.delete(task.id)
            yard.tasks.create("Another")
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert ended.facts["completed"] == ["3"]

    asyncio.run(scene())


@pytest.mark.req("L-16", "M-04")
def test_what_it_is_given_while_it_looks_comes_before_what_is_anybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[str] = []

    async def work(turn: Turn) -> str:
        assert turn.task is not None
        worked.append(turn.task.subject)
        return "done"

    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew", until="stopped"), work))
            await until(lambda: yard.jobs.get(job.id).facts["isIdle"])
            looked, meanwhile = TaskList.list, [True]

            def told() -> str:
                return yard.mail.send("lead", "ada", type="task_assignment", data={"taskId": "9"}).id

            def look(self: TaskList, **how: Any) -> object:
                found = looked(self, **how)
                if threading.current_thread().name.startswith("taskyard-team") and meanwhile:
                    meanwhile.clear()
                    for subject, owner in (("Open", None), ("Given", "ada"), ("Open too", None)):
                        yard.tasks.create(subject, owner=owner)
                    sent = told()
                    wait_until(lambda: yard.mail.receipt(sent) == "read", timeout=SOON)
                return found

            monkeypatch.setattr(TaskList, "list", look)
            told()
            await until(lambda: len(worked) == 3)
            await yard.jobs.stop(job.id)

    asyncio.run(scene())
    assert worked == ["Open", "Given", "Open too"]


@pytest.mark.req("L-10", "L-09")
def test_one_teammates_end_releases_only_its_own() -> None:
    async def work(turn: Turn) -> str:
        await asyncio.sleep(3600)
        return ""

    async def scene() -> None:
        async with team() as yard:
            for number in range(3):
                yard.tasks.create(f"Task {number}")
            jobs = [await yard.jobs.start(Working(Teammate(f"m{n}", "crew"), work)) for n in range(3)]
            await until(lambda: all(task.owner for task in yard.tasks.list()))
            owners = {task.owner: task.id for task in yard.tasks.list()}
            assert len({task.lease.instance for task in yard.tasks.list() if task.lease}) == 3
            await yard.jobs.stop(jobs[1].id)
            assert yard.tasks.get(owners["m1"]).status is TaskStatus.PENDING
            for name in ("m0", "m2"):
                assert yard.tasks.get(owners[name]).owner == name

    asyncio.run(scene())


@pytest.mark.req("M-04", "L-04")
def test_a_lock_that_somebody_holds_for_long_does_not_end_a_teammate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.2")

    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Locked")
            folder = Path(os.environ["CLAUDE_CONFIG_DIR"], "tasks", "crew")
            with RangeLock(str(folder / ".taskyard" / "lock")) as lock:
                lock.take(int(task.id), timeout=SOON, what="a test's task")
                job = await yard.jobs.start(Working(Teammate("ada", "crew"), easily))
                await asyncio.sleep(0.4)  # longer than it waits at once: that is what is tested
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert (ended.status.value, ended.facts["completed"]) == ("completed", [task.id])

    asyncio.run(scene())
