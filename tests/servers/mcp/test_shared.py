"""The tools of a model where lists are in a database: read, changed, subscribed to, and refused in words it can use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types import TextResourceContents

import taskyard
from support.gate import Gate, gate
from support.mcp_clients import run, stdio_client

pytestmark = pytest.mark.req("X-01", "T-05")


@pytest.fixture
def door(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    with gate(address) as made:
        monkeypatch.setenv("TASKYARD_STORE", made.address)
        monkeypatch.setenv("TASKYARD_DATABASE_PATIENCE", "0.3")
        yield made


async def read(client: Client, uri: str) -> str:
    (found,) = (await client.read_resource(uri)).contents
    assert isinstance(found, TextResourceContents)
    return found.text


def add(address: str, subject: str, to: str) -> None:
    with taskyard.open(store=address, list=to) as yard:
        yard.tasks.create(subject)


def test_lists_in_a_database_are_worked_on_and_read(door: Gate, address: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with stdio_client(tmp_path / "home", "--list", "demo", "--agent", "ada") as client:
            await client.call_tool("TaskCreate", {"subject": "Build it", "description": "all"})
            add(address, "Elsewhere", "other")
            assert await read(client, "taskyard://lists/demo") == "#1 [pending] Build it"
            assert await read(client, "taskyard://lists/other") == "#1 [pending] Elsewhere"
            with pytest.raises(Exception, match="No list"):
                await read(client, "taskyard://lists/nowhere")

    run(work)


def test_changes_of_a_list_in_a_database_are_told_to_who_subscribed(door: Gate, address: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with stdio_client(tmp_path / "home", "--list", "demo") as client:
            uri = "taskyard://lists/other"
            async with client.listen(resource_subscriptions=[uri]) as stream:
                events = aiter(stream)
                for number in range(4):
                    await anyio.to_thread.run_sync(add, address, f"Task {number}", "other")
                    with anyio.fail_after(10):
                        assert await anext(events) == ResourceUpdated(uri)
                assert "Task 3" in await read(client, uri)

    run(work)


def test_a_model_is_told_that_the_database_is_away_and_goes_on_when_it_is_back(door: Gate, tmp_path: Path) -> None:
    async def work() -> None:
        async with stdio_client(tmp_path / "home", "--list", "demo", "--agent", "ada") as client:
            await client.call_tool("TaskCreate", {"subject": "Build it", "description": "all"})
            door.shut()
            refused = await client.call_tool("TaskList", {})
            assert refused.is_error
            assert refused.structured_content is not None
            error = refused.structured_content["error"]
            assert (error["code"], error["retryable"]) == ("disconnected", True)
            assert "cannot be reached" in str(refused.content)
            door.open()
            found = await client.call_tool("TaskList", {})
            assert "Build it" in str(found.content)

    run(work)
