"""Around the loop: hooks that do not let a teammate idle, checks that do not let a task be done."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support.cli import process
from support.teams import SOON, team, until
from taskyard import Teammate
from taskyard.agents.teammate.embedded import Working, run
from taskyard.agents.teammate.loop import Turn
from taskyard.storage import trust


def hooks(outside: Path, **events: str) -> None:
    """Have commands run at events, as the person's own hooks."""
    settings = {"hooks": {name: [{"hooks": [{"type": "command", "command": it}]}] for name, it in events.items()}}
    (outside / ".claude").mkdir(exist_ok=True)
    (outside / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


@pytest.mark.req("H-01", "M-04")
def test_a_hook_may_send_a_teammate_on_before_it_idles(tmp_path: Path, outside: Path) -> None:
    prompts: list[str] = []
    again = f"{tmp_path}/again"
    once = f"cat > {tmp_path}/asked; test -e {again} || {{ touch {again}; echo 'Tidy up.' >&2; exit 2; }}"
    hooks(outside, TeammateIdle=once)

    async def work(turn: Turn) -> str:
        prompts.append(turn.prompt)
        return "tidy"

    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew", until="stopped"), work))
            await until(lambda: yard.jobs.get(job.id).facts.get("isIdle"))
            await until(lambda: len(yard.mail.peek("lead")) == 1)
            await yard.jobs.stop(job.id)

    asyncio.run(scene())
    asked = json.loads((tmp_path / "asked").read_text(encoding="utf-8"))
    assert (asked["hook_event_name"], asked["teammate_name"], asked["team_name"]) == ("TeammateIdle", "ada", "crew")
    assert [prompt.partition("\n\n")[2] for prompt in prompts] == ["You are not done yet:\n\nTidy up."]


@pytest.mark.req("H-01", "M-04")
def test_one_that_a_hook_keeps_busy_is_not_woken_in_place_of_one_that_waits(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_POLL_INTERVAL", "600")  # nobody looks but for news
    hooks(outside, TeammateIdle="grep -q bob || { echo 'Tidy up.' >&2; exit 2; }")
    busy, done = asyncio.Event(), asyncio.Event()

    async def work(turn: Turn) -> str:
        if turn.who.name == "ada":
            busy.set()
            await done.wait()
        return "done"

    async def scene() -> None:
        async with team() as yard:
            ada = await yard.jobs.start(Working(Teammate("ada", "crew", until="stopped"), work))
            await asyncio.wait_for(busy.wait(), SOON)
            bob = await yard.jobs.start(Working(Teammate("bob", "crew", until="stopped"), work))
            await until(lambda: len(yard.mail.peek("lead")) == 1)
            task = yard.tasks.create("For whoever waits")
            await until(lambda: yard.tasks.get(task.id).is_done)
            done.set()
            await yard.jobs.stop(ada.id, bob.id)

    asyncio.run(scene())


@pytest.mark.req("H-01")
def test_a_hook_that_never_agrees_does_not_keep_a_teammate_for_ever(outside: Path) -> None:
    turns: list[str] = []
    hooks(outside, TeammateIdle="echo 'More!' >&2; exit 2")

    async def work(turn: Turn) -> str:
        turns.append(turn.prompt)
        return "done"

    async def scene() -> None:
        async with team() as yard:
            job = await yard.jobs.start(Working(Teammate("ada", "crew", until="stopped"), work))
            await until(lambda: yard.jobs.get(job.id).facts.get("isIdle") and len(turns) == 10)
            await yard.jobs.stop(job.id)

    asyncio.run(scene())


@pytest.mark.req("L-21", "M-04")
def test_what_does_not_pass_its_check_goes_back_to_its_worker_with_the_reason(tmp_path: Path) -> None:
    prompts: list[str] = []
    check = f"cat {tmp_path}/built"
    trust.trust_command(check, str(tmp_path))

    async def work(turn: Turn) -> str:
        prompts.append(turn.prompt)
        if len(prompts) == 2:
            (tmp_path / "built").write_text("yes", encoding="utf-8")
        return "done"

    async def scene() -> None:
        async with team() as yard:
            yard.tasks.create("Build", acceptance={"command": check, "cwd": str(tmp_path)})
            [job] = await run(yard.jobs, [Teammate("ada", "crew")], work=work)
            assert (job.facts["completed"], job.facts["failed"]) == (["1"], [])

    asyncio.run(scene())
    assert len(prompts) == 2
    assert "Task #1 is not completed: it was refused." in prompts[1]
    assert "No such file" in prompts[1]


@pytest.mark.req("L-21", "M-04")
def test_finished_work_whose_acceptance_command_is_not_trusted_waits_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    turns: list[str] = []

    async def work(turn: Turn) -> str:
        turns.append(turn.prompt)
        return "done"

    async def scene() -> None:
        async with team() as yard:
            task = yard.tasks.create("Build", acceptance={"command": "touch ran"})
            job = await yard.jobs.start(Working(Teammate("ada", "crew"), work))
            await until(lambda: any(mail.type == "message" for mail in yard.mail.peek("lead")))
            [mail] = [mail for mail in yard.mail.peek("lead") if mail.type == "message"]
            assert f"taskyard trust {task.id} --list crew" in mail.text and "touch ran" in mail.text
            await yard.jobs.stop(job.id)
            waits = yard.tasks.get(task.id)
            assert (waits.status.value, waits.owner, waits.is_held) == ("in_progress", "me", False)
            words = ("trust", task.id, "--list", "crew", "--yes")
            trusted = await asyncio.to_thread(process, *words)
            assert trusted.code == 0, trusted
            done = yard.tasks.get(task.id)
            assert done.is_done and "awaiting" not in done.extra

    asyncio.run(scene())
    assert len(turns) == 1
    assert (tmp_path / "ran").exists()
