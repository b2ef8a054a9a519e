"""A check or hook that takes its time keeps nobody waiting but whoever asked for it, and ends if that one gives up."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from support.cli import taskyard
from support.jobs import marked
from support.mcp_server import Model, talk, talk_over_stdio
from support.wait import until

#: Far less than a check lasts, in seconds.
AT_ONCE = 10.0


async def with_check(model: Model, command: str) -> None:
    """Task 1 is done when `command` says so."""
    await model.call("TaskCreate", subject="A", acceptance={"command": command, "cwd": os.getcwd()})
    allowed = await anyio.to_thread.run_sync(lambda: taskyard("trust", "1", "--yes", "--list", "demo"))
    assert allowed.code == 0, allowed


@pytest.mark.req("L-04", "T-01")
def test_other_calls_of_the_connection_are_answered_while_a_check_runs(tmp_path: Path) -> None:
    began, go = tmp_path / "began", tmp_path / "go"

    async def body(model: Model) -> None:
        await with_check(model, f"touch {began}; until [ -e {go} ]; do sleep 0.02; done")
        said: list[str] = []

        async def complete() -> None:
            said.append((await model.call("TaskUpdate", taskId="1", status="completed")).text)

        async with anyio.create_task_group() as group:
            group.start_soon(complete)
            await anyio.to_thread.run_sync(until, began.exists)
            with anyio.fail_after(AT_ONCE):
                assert (await model.call("TaskCreate", subject="B")).text == "Task #2 created successfully: B"
                assert "#1 [pending] A" in (await model.call("TaskList")).text
                assert not (await model.call("ListJobs")).is_error
                assert not (await model.call("ReadMail")).is_error
            assert said == []
            go.touch()
        assert said == ["Updated task #1 status, metadata"]

    talk(body, agent="ada")


@pytest.mark.req("H-02", "T-03")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_completion_that_was_given_up_ends_its_check_and_saves_nothing(mode: str) -> None:
    async def body(model: Model) -> None:
        await with_check(model, "sleep 4322.25; true")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: model.call("TaskUpdate", taskId="1", status="completed", subject="X"))
            await anyio.to_thread.run_sync(until, lambda: marked("4322.25"))
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(until, lambda: not marked("4322.25"))
        assert (await model.call("TaskList")).text == "#1 [pending] A"

    talk_over_stdio(body, mode="legacy" if mode == "legacy" else "auto")
