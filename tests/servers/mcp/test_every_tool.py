"""Every tool in success and in refusal, over stdio and HTTP, in the current protocol and the one before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

import taskyard
from support.mcp_http import HttpServer
from support.mcp_server import LONGEST, Mode, Model, over_stdio


@asynccontextmanager
async def connected(transport: str, mode: Mode) -> AsyncIterator[Model]:
    if transport == "stdio":
        async with over_stdio("--agent", "ada", mode=mode) as model:
            yield model
    else:
        with HttpServer() as server:
            async with server.client("ada", mode=mode) as model:
                yield model


async def _list(model: Model) -> None:
    assert (await model.call("TaskCreate", subject="A")).text == "Task #1 created successfully: A"
    assert (await model.refused("TaskCreate", subject="")).code == "bad_arguments"
    assert (await model.call("TaskGet", taskId="1")).text == "Task #1: A\nStatus: pending\nDescription: A"
    assert (await model.refused("TaskGet", taskId="9")).text == "Task not found"
    assert (await model.call("TaskList")).text == "#1 [pending] A"
    assert (await model.refused("TaskList", status="lost")).code == "bad_arguments"
    assert (await model.call("TaskClaim")).data["task"]["owner"] == "ada"
    assert (await model.refused("TaskClaim")).code == "nothing_free"
    assert (await model.call("TaskUpdate", taskId="1", status="completed")).text == "Updated task #1 status"
    assert (await model.refused("TaskUpdate", taskId="1", status="in_progress")).code == "bad_transition"


async def _jobs(model: Model) -> None:
    assert (await model.call("Bash", command="echo hello")).text == "hello\n"
    assert (await model.refused("Bash", command="exit 4")).data["exitCode"] == 4
    asking = (await model.call("Bash", command="read x; echo $x", stdin=True, run_in_background=True)).data["task_id"]
    assert asking in (await model.call("ListJobs")).text
    assert (await model.refused("ListJobs", all="perhaps")).code == "bad_arguments"
    assert (await model.call("SendInput", task_id=asking, text="yes")).text == f"Typed into {asking}."
    watching = await model.call("Monitor", command="sleep 60", description="Nothing")
    assert watching.data["task_type"] == "monitor_mcp" and watching.data["task_id"] in watching.text
    assert (await model.refused("Monitor", mcp_url="http://127.0.0.1:9/mcp")).code == "usage"
    assert (await model.call("TaskStop", task_id=watching.data["task_id"])).data["outcome"] == "stopped"
    read = await model.call("TaskOutput", task_id=asking)
    assert (read.data["output"], read.data["exitCode"]) == ("yes\n", 0)
    assert (await model.refused("SendInput", task_id=asking, text="yes")).code == "job_ended"
    assert (await model.refused("TaskOutput", task_id="bxxxxxxxx")).code == "job_not_found"
    for tool, field in (("TaskStop", "task_id"), ("KillShell", "shell_id")):
        runs = (await model.call("Bash", command="sleep 60", run_in_background=True)).data["task_id"]
        assert (await model.call(tool, **{field: runs})).data["outcome"] == "stopped"
        assert (await model.refused(tool, **{field: "bxxxxxxxx"})).code == "job_not_found"


async def _agents(model: Model) -> None:
    said = await model.call("Agent", prompt="count to three")
    assert (said.text, said.data["task_type"]) == ("count to three", "local_agent")
    assert (await model.refused("Agent", prompt="go", engine="no-such-engine")).code == "engine_not_found"
    steps = [{"id": "one", "run": "true"}]
    ran = await model.call("Workflow", definition={"name": "Short", "steps": steps})
    assert ran.text.startswith("one [completed] (b")
    assert (await model.refused("Workflow", definition={"steps": []})).code == "bad_workflow"


async def _mail(model: Model) -> None:
    assert (await model.call("SendMessage", to="bob", message="hello")).text == "Message sent to bob."
    assert (await model.refused("SendMessage", to="nobody", message="hello")).code == "recipient_not_found"
    assert (await model.call("ReadMail")).data["messages"] == []
    assert (await model.refused("ReadMail", limit=0)).code == "bad_arguments"


async def _teams(model: Model) -> None:
    made = await model.call("TeamCreate", team_name="crew")
    assert made.data["list"] == "crew"
    assert (await model.refused("TeamCreate", team_name="crew")).code == "already_exists"


@pytest.mark.req("T-01", "T-03", "T-05")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_every_tool_answers_and_refuses_alike(transport: str, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", "cat")
    with taskyard.open(list="demo") as yard:
        yard.mail.open_box("bob")
    tried: set[str] = set()

    async def body() -> None:
        with anyio.fail_after(LONGEST):
            async with connected(transport, mode) as model:
                call = model.call

                async def noted(tool: str, **arguments: object) -> object:
                    tried.add(tool)
                    return await call(tool, **arguments)

                model.call = noted  # type: ignore[method-assign, assignment]  # what is tried is written down
                for part in (_list, _jobs, _agents, _mail, _teams):
                    await part(model)
                assert {tool.name for tool in (await model.client.list_tools()).tools} == tried

    anyio.run(body)
