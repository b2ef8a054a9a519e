"""What clients with more can do, over HTTP: resources that tell of changes, and calls that are put off."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification

import taskyard
from support.mcp_http import NEW, HttpServer, call_of, together
from support.mcp_server import Mode
from support.mcp_tasks import Tasks

DEMO = "taskyard://lists/demo"
BOTH: list[Mode] = ["auto", "legacy"]


def add(subject: str) -> None:
    with taskyard.open(list="demo") as yard:
        yard.tasks.create(subject)


@pytest.mark.req("L-18", "T-05")
def test_a_stream_tells_of_changes_and_does_not_keep_the_server() -> None:
    async def body() -> None:
        async with server.client("ada", stay=True) as model:
            async with model.client.listen(resource_subscriptions=[DEMO]) as events:
                await anyio.to_thread.run_sync(add, "One")
                assert await anext(events) == ResourceUpdated(DEMO)
            async with model.client.listen(resource_subscriptions=[DEMO]):
                assert await anyio.to_thread.run_sync(server.stop) == 0

    with HttpServer() as server:
        together(body)
    assert "Traceback" not in server.said


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.req("L-18", "T-05")
def test_a_session_is_told_of_changes_until_it_ends() -> None:
    async def body() -> None:
        told, heard = anyio.create_memory_object_stream[str](100)

        async def hear(message: object) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                told.send_nowait(str(message.params.uri))

        with told, heard:
            async with server.client("ada", mode="legacy", message_handler=hear) as model:
                await model.client.subscribe_resource(DEMO)
                await anyio.to_thread.run_sync(add, "One")
                assert await heard.receive() == DEMO
        add("Two")
        assert server.is_alive

    with HttpServer() as server:
        together(body)
    assert server.said == ""


@pytest.mark.req("T-05")
@pytest.mark.parametrize("mode", BOTH)
def test_whoever_cannot_be_is_refused_in_the_protocol_s_words_where_no_tool_is_called(mode: Mode) -> None:
    async def body() -> None:
        async with server.client("x" * 201, mode=mode) as model:
            for ask in (model.client.list_resources, partial(model.client.read_resource, DEMO)):
                with pytest.raises(MCPError, match="longer than 200") as caught:
                    await ask()
                assert caught.value.code == -32602

    with HttpServer() as server:
        together(body)


@pytest.mark.req("T-02", "T-05")
def test_a_call_that_is_put_off_answers_as_it_would_have(tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def body() -> None:
        tasks = Tasks()
        async with server.client("ada", extensions=[tasks]) as model, anyio.create_task_group() as group:

            async def let_go() -> None:
                await tasks.first.wait()
                go.touch()

            group.start_soon(let_go)
            said = await model.call("Bash", command=f"until [ -e {go} ]; do sleep 0.02; done; echo done")
            assert said.text == "done\n"
            assert [created.status for created in tasks.created] == ["working"]
            assert not (await model.call("TaskList")).notices

    with HttpServer(TASKYARD_MCP_DEFER_AFTER="0.1") as server:
        together(body)


@pytest.mark.req("T-05")
def test_a_task_that_the_header_names_differently_is_refused() -> None:
    with HttpServer() as server:
        message = call_of("x", {})
        meta = message["params"]["_meta"]
        meta["io.modelcontextprotocol/clientCapabilities"] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        asked = {**message, "method": "tasks/get", "params": {"taskId": "b12345678", "_meta": meta}}
        headers = {"Mcp_Protocol_Version": NEW, "Mcp_Method": "tasks/get"}
        wrong = server.post(asked, **headers, Mcp_Name="b87654321")
        assert wrong.json["error"]["code"] == -32020
        right = server.post(asked, **headers, Mcp_Name="b12345678")
        assert right.json["error"]["code"] == -32602  # there is no such task
