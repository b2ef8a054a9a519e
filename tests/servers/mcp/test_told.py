"""What the answer to a background start says about its end holds for the client that asked."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import anyio
import pytest
from mcp_types import Implementation

import taskyard
from support.mcp_clients import run, stdio_client
from support.wait import until


async def _started(name: str) -> str:
    client_info = Implementation(name=name, version="1")
    home = Path(os.environ["TASKYARD_HOME"])
    ends = home / "ends"
    command = f"while [ ! -e {ends} ]; do sleep 0.02; done; exit 4"
    async with stdio_client(home, "--list", "demo", client_info=client_info) as client:
        said = await client.call_tool("Bash", {"command": command, "run_in_background": True})
        ends.touch()  # an end before the answer would be told in it
        text = str(said.content[0].text)  # type: ignore[union-attr]
        command = text.partition("run_in_background: ")[2]
        if command:
            done = await anyio.run_process(shlex.split(command))
            assert "failed with exit code 4" in done.stdout.decode()
            again = await client.call_tool("TaskList", {})
            assert "task-notification" not in json.dumps(again.model_dump(mode="json"))
        return text


@pytest.mark.req("T-04", "N-07")
def test_claude_code_is_given_a_command_that_wakes_it_and_delivers_the_notice_once() -> None:
    async def body() -> None:
        text = await _started("claude-code")
        assert "does not wake you" in text
        assert "--wait" in text and "--ack" in text

    run(body)


@pytest.mark.req("T-04")
def test_another_client_is_told_when_the_notice_comes_and_nothing_of_waking() -> None:
    async def body() -> None:
        text = await _started("some-client")
        assert "reported in the answer to a later Taskyard call" in text
        assert "wake" not in text and "You will be told" not in text

    run(body)


@pytest.mark.req("N-07", "B-05")
def test_notices_that_are_acknowledged_as_they_are_printed_do_not_come_again() -> None:
    from support.cli import taskyard as cli

    with taskyard.open(list="demo", agent="ada") as yard:
        job = yard.jobs.start(taskyard.Shell("exit 4", on_parent_exit="keep"))
        until(lambda: yard.jobs.get(job.id).is_final)
        (notice,) = yard.notices().waiting()
        said = cli("notices", "take", "--by", "ada", "--xml", "--ack", "--wait", "10s")
        assert job.id in said.out
        assert yard.notices().state(notice.id) == "read"
