"""Whoever gives up a call wants its command ended, with everything it started; what runs in the background goes on."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client

from support.jobs import marked
from support.mcp_clients import MODES, run, stdio_client
from support.wait import until
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job


def jobs_of(home: Path) -> list[Job]:
    return list(Jobs(str(home)).list(ended=True))


async def called_off(client: Client, command: str) -> None:
    """Begin a command, and give the call up once it runs."""
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "Bash", {"command": command})
        await anyio.to_thread.run_sync(until, lambda: marked("4321.25"))
        group.cancel_scope.cancel()


@pytest.mark.req("B-09", "T-03")
@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_ends_its_command_and_no_other(tmp_path: Path, mode: str) -> None:
    home = tmp_path / "home"

    async def work() -> None:
        async with stdio_client(home, "--list", "demo", mode=mode) as client:
            started = await client.call_tool("Bash", {"command": "sleep 4321.75", "run_in_background": True})
            assert started.structured_content is not None
            await called_off(client, "setsid sleep 4321.25 & sleep 4321.25")
            await anyio.to_thread.run_sync(until, lambda: all(job.is_final for job in jobs_of(home)[1:]))
            kept, ended = jobs_of(home)
            assert ended.end is not None
            assert (ended.end.cause, ended.end.proof) == ("stopped", "proved")
            assert marked("4321.25") == []
            assert not kept.is_final
            assert len(marked("4321.75")) > 0
            listed = await client.call_tool("TaskList", {})
            assert "notification" not in str(listed.content), "whoever gave it up needs no notice"

    run(work)


@pytest.mark.req("B-09", "T-02")
def test_a_cancelled_wait_leaves_the_job_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"

    async def work() -> None:
        async with stdio_client(home, "--list", "demo") as client:
            started = await client.call_tool("Bash", {"command": "sleep 4321.25", "run_in_background": True})
            assert started.structured_content is not None
            with anyio.move_on_after(0.3):
                await client.call_tool("TaskOutput", {"task_id": started.structured_content["task_id"]})
            shown = await client.call_tool("ListJobs", {})
            assert shown.structured_content is not None
            assert shown.structured_content["total"] == 1

    run(work)


@pytest.mark.req("B-09", "B-10")
@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_leaves_during_a_call_leaves_no_command_behind(tmp_path: Path, mode: str) -> None:
    home = tmp_path / "home"

    async def work() -> None:
        with anyio.CancelScope() as scope:
            async with stdio_client(home, "--list", "demo", mode=mode) as client, anyio.create_task_group() as group:
                group.start_soon(client.session.call_tool, "Bash", {"command": "sleep 4321.25; true"})
                await anyio.to_thread.run_sync(until, lambda: marked("4321.25"))
                scope.cancel()
        until(lambda: all(job.is_final for job in jobs_of(home)))
        (job,) = jobs_of(home)
        assert job.end is not None
        assert (job.end.cause, job.end.proof) == ("stopped", "proved")
        assert marked("4321.25") == []

    run(work)
