"""Prompts that people choose: a goal as tasks, finished work for a verifier."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

import taskyard
from support.mcp_clients import MODES, run, stdio_client


async def prompt(client: Client, name: str, **arguments: str) -> str:
    found = await client.get_prompt(name, arguments)
    (message,) = found.messages
    assert isinstance(message.content, TextContent)
    assert message.role == "user"
    return message.content.text


@pytest.mark.req("C-02", "L-17", "T-05")
@pytest.mark.parametrize("mode", MODES)
def test_there_are_prompts_to_plan_and_to_verify(tmp_path: Path, mode: str) -> None:
    async def work() -> None:
        async with stdio_client(tmp_path / "home", "--list", "demo", mode=mode) as client:
            found = (await client.list_prompts()).prompts
            shown = {each.name: [(one.name, one.required) for one in each.arguments or []] for each in found}
            assert shown == {"plan": [("goal", True)], "verify": [("task_id", False)]}
            assert all(one.description for each in found for one in each.arguments or [])

    run(work)


@pytest.mark.req("C-02")
def test_a_goal_is_planned_as_tasks_that_wait_for_each_other(tmp_path: Path) -> None:
    async def work() -> None:
        async with stdio_client(tmp_path / "home", "--list", "demo") as client:
            text = await prompt(client, "plan", goal="Ship {version} 2 <today>\n")
            assert "Ship {version} 2 <today>" in text
            for word in ("TaskList", "blockedBy", "acceptance", "verifier"):
                assert word in text
            for arguments in ({}, {"goal": ""}, {"goal": " \n"}, {"goal": "x", "by": "ada"}):
                with pytest.raises(MCPError, match="goal") as refused:
                    await client.get_prompt("plan", arguments)
                assert refused.value.code == -32602

    run(work)


@pytest.mark.req("L-17")
def test_finished_work_goes_to_a_verifier_of_the_type_that_is_set(tmp_path: Path) -> None:
    async def work() -> None:
        with taskyard.open(list="demo") as yard:
            yard.tasks.create("Build it", description="With {braces} & care")
            yard.tasks.create("Leave it")
        async with stdio_client(tmp_path / "home", "--list", "demo", env={"TASKYARD_VERIFIER": "sceptic"}) as client:
            assert "nothing to verify" in await prompt(client, "verify")
            await client.call_tool("TaskUpdate", {"taskId": "1", "status": "completed"})

            everything = await prompt(client, "verify")
            assert "#1 [completed] Build it" in everything
            assert "Leave it" not in everything
            assert "Start a sceptic agent" in everything

            one = await prompt(client, "verify", task_id="#1")
            assert "Description: With {braces} & care" in one
            assert "not completed yet" in await prompt(client, "verify", task_id="2")

    run(work)


@pytest.mark.req("T-04")
def test_a_task_there_is_not_cannot_be_verified(tmp_path: Path) -> None:
    async def work() -> None:
        async with stdio_client(tmp_path / "home", "--list", "demo") as client:
            for task_id in ("9", "../1", "x" * 5000, "1; rm"):
                with pytest.raises(MCPError) as refused:
                    await client.get_prompt("verify", {"task_id": task_id})
                assert refused.value.code == -32602

    run(work)
