"""Lists and outputs as resources: read, bounded, and told of when they change, to those who asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification, TextResourceContents

import taskyard
from support.jobs import marked, wait_until_told
from support.mcp_clients import MODES, run, stdio_client
from support.wait import until
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.servers.mcp.resources import ResourceWatcher, resource_list_target, watch_target

DEMO = "taskyard://lists/demo"

#: What the older protocol has is what is tried here.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TASKYARD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


async def read(client: Client, uri: str) -> str:
    (found,) = (await client.read_resource(uri)).contents
    assert isinstance(found, TextResourceContents)
    assert (str(found.uri), found.mime_type) == (uri, "text/plain")
    return found.text


def add(subject: str, *, to: str = "demo") -> None:
    with taskyard.open(list=to) as yard:
        yard.tasks.create(subject)


@pytest.mark.req("T-05", "O-07")
@pytest.mark.parametrize("mode", MODES)
def test_lists_and_outputs_can_be_found_and_read(home: Path, mode: str) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "demo", mode=mode) as client:
            templates = (await client.list_resource_templates()).resource_templates
            assert [each.uri_template for each in templates] == [
                "taskyard://lists/{list}",
                "taskyard://jobs/{id}/output",
            ]
            add("Build it")
            add("Elsewhere", to="other")
            started = await client.call_tool(
                "Bash", {"command": "echo begun; sleep 100", "run_in_background": True, "description": "the long one"}
            )
            assert started.structured_content is not None
            output = f"taskyard://jobs/{started.structured_content['task_id']}/output"

            found = (await client.list_resources()).resources
            assert [(str(each.uri), each.title) for each in found] == [
                (DEMO, "Tasks of demo"),
                (output, "the long one"),
            ]
            assert await read(client, DEMO) == "#1 [pending] Build it"
            assert await read(client, "taskyard://lists/other") == "#1 [pending] Elsewhere"
            await anyio.to_thread.run_sync(_until_printed, home, started.structured_content["task_id"])
            assert await read(client, output) == "begun\n"

            await client.call_tool("TaskStop", {"task_id": started.structured_content["task_id"]})
            assert [str(each.uri) for each in (await client.list_resources()).resources] == [DEMO]
            assert await read(client, output) == "begun\n", "what is over can still be read"

    run(work)


@pytest.mark.req("O-07", "N-07")
def test_what_is_read_is_bounded_and_counts_for_nobody(home: Path) -> None:
    async def work() -> None:
        bounds = {"TASK_MAX_OUTPUT_LENGTH": "1000"}
        async with stdio_client(home, "--list", "demo", env=bounds) as client:
            started = await client.call_tool("Bash", {"command": "seq 100000; echo THE END", "run_in_background": True})
            assert started.structured_content is not None
            job_id = started.structured_content["task_id"]
            await anyio.to_thread.run_sync(lambda: wait_until_told(Jobs(str(home)), job_id))
            text = await read(client, f"taskyard://jobs/{job_id}/output")
            assert len(text) <= 1000
            assert text.startswith("[Truncated. Full output: ")
            assert text.endswith("THE END\n")
            told = await client.call_tool("TaskList", {})
            assert "<task-notification>" in str(told.content), "a person may have read it: its agent is still told"

            with taskyard.open(list="demo") as yard:
                for number in range(400):
                    yard.tasks.create(f"Task {number} with a subject of some length")
            listed = await read(client, DEMO)
            assert len(listed) < 20_000
            assert "TaskList" in listed.splitlines()[-1], "and says how to see the rest"

    run(work)


HOSTILE = (
    "taskyard://lists/..",
    "taskyard://lists/..%2F..%2Fetc",
    "taskyard://lists/..%2F..%2Fsecret",
    "taskyard://lists/%2Fetc",
    "taskyard://lists/.taskyard",
    "taskyard://lists/a%00b",
    "taskyard://lists/linked%2F",
    "taskyard://lists/" + "a" * 500,
    "taskyard://jobs/b00000000/output",
    "taskyard://jobs/..%2Fjobs/output",
    "taskyard://jobs/..%2F..%2Fsecret/output",
    "taskyard://jobs//output",
    "taskyard://jobs/b00000000/job.json",
    "taskyard://else/where",
    "file:///etc/passwd",
    "",
)


@pytest.mark.req("T-04", "O-02")
@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_ours_is_neither_read_nor_watched(home: Path, mode: str) -> None:
    secret = home.parent / "secret"
    secret.mkdir()
    (secret / "output").write_text("hidden")
    (secret / "1.json").write_text('{"id":"1","subject":"hidden"}')
    add("Here")
    (Path(os.environ["CLAUDE_CONFIG_DIR"]) / "tasks" / "linked").symlink_to(secret)

    async def work() -> None:
        async with stdio_client(home, "--list", "demo", mode=mode) as client:
            for uri in HOSTILE:
                for attempt in (client.read_resource, partial(_subscribed, client)):
                    with pytest.raises(MCPError) as refused:
                        await attempt(uri)
                    assert refused.value.code == -32602, uri
                    assert "hidden" not in refused.value.message
            for attempt in (client.read_resource, partial(_subscribed, client)):
                with pytest.raises(MCPError, match="linked"):
                    await attempt("taskyard://lists/linked")
            assert await read(client, DEMO) == "#1 [pending] Here"

    run(work)


async def _subscribed(client: Client, uri: str) -> None:
    if client.protocol_version == "2025-11-25":
        await client.subscribe_resource(uri)
        return
    async with client.listen(resource_subscriptions=[uri]):
        pass


@pytest.mark.req("T-04")
def test_an_unknown_list_or_job_names_near_ones(home: Path) -> None:
    async def work() -> None:
        add("Here")
        async with stdio_client(home, "--list", "demo") as client:
            with pytest.raises(MCPError, match="demo"):
                await client.read_resource("taskyard://lists/demon")
            answer = await client.call_tool("Bash", {"command": "true"})
            assert answer.structured_content is not None
            known = str(answer.structured_content["task_id"])
            near = known[:-1] + ("0" if known[-1] != "0" else "1")
            with pytest.raises(MCPError, match=known):
                await client.read_resource(f"taskyard://jobs/{near}/output")

    run(work)


@pytest.mark.req("L-18", "T-05")
def test_a_stream_tells_of_changes_of_a_list_by_whomever(home: Path) -> None:
    async def work() -> None:
        later = "taskyard://lists/not-yet"
        async with (
            stdio_client(home, "--list", "demo") as client,
            client.listen(resource_subscriptions=[DEMO, later]) as events,
        ):
            for uri in (DEMO, later, DEMO):
                await anyio.to_thread.run_sync(partial(add, "More", to=uri.rpartition("/")[2]))
                while await anext(events) != ResourceUpdated(uri):
                    pass  # a second word on what came before
            assert (await read(client, DEMO)).count("More") == 2

    run(work)


@pytest.mark.req("O-05", "T-05")
def test_a_stream_tells_of_output_and_of_jobs_that_come_and_go(home: Path) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "demo") as client:
            async with client.listen(resources_list_changed=True) as events:
                started = await client.call_tool("Bash", {"command": "cat", "run_in_background": True, "stdin": True})
                assert await anext(events) == ResourcesListChanged()
            assert started.structured_content is not None
            job_id = started.structured_content["task_id"]
            output = f"taskyard://jobs/{job_id}/output"
            async with client.listen(resource_subscriptions=[output]) as events:
                await client.call_tool("SendInput", {"task_id": job_id, "text": "hello"})
                assert await anext(events) == ResourceUpdated(output)
                assert await read(client, output) == "hello\n"
                await client.call_tool("TaskStop", {"task_id": job_id})
                assert await anext(events) == ResourceUpdated(output), "its end is a change as well"

    run(work)


@pytest.mark.req("L-18", "T-05")
def test_the_older_protocol_tells_of_changes_until_it_is_asked_not_to(home: Path) -> None:
    async def work() -> None:
        told, heard = anyio.create_memory_object_stream[str](100)

        async def hear(message: object) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                told.send_nowait(str(message.params.uri))

        with told, heard:
            async with stdio_client(home, "--list", "demo", mode="legacy", message_handler=hear) as client:
                assert client.server_capabilities.resources is not None
                assert client.server_capabilities.resources.subscribe
                for _ in range(2):  # twice is once
                    await client.subscribe_resource(DEMO)
                await client.subscribe_resource("taskyard://lists/other")
                await anyio.to_thread.run_sync(add, "One")
                assert await heard.receive() == DEMO

                await client.unsubscribe_resource(DEMO)
                await client.unsubscribe_resource("taskyard://lists/never")
                while heard.statistics().current_buffer_used:
                    assert heard.receive_nowait() == DEMO
                await anyio.to_thread.run_sync(add, "Two")
                await anyio.to_thread.run_sync(partial(add, "Three", to="other"))
                assert await heard.receive() == "taskyard://lists/other"

    run(work)


@pytest.mark.req("L-18")
def test_only_what_somebody_is_subscribed_to_is_watched_and_once(home: Path) -> None:
    async def work() -> None:
        bus = InMemorySubscriptionBus()
        heard: list[object] = []
        bus.subscribe(heard.append)
        with taskyard.open(list="demo") as yard:
            watches = ResourceWatcher(bus)
            before = len(asyncio.all_tasks())
            ends = [watches.hold(watch_target(yard, DEMO)) for _ in range(3)]
            assert len(asyncio.all_tasks()) == before + 1
            yard.tasks.create("One")
            await _until(lambda: heard)
            assert set(heard) == {ResourceUpdated(DEMO)}
            for end in ends:
                end()
            await _until(lambda: len(asyncio.all_tasks()) == before)
            heard.clear()
            yard.tasks.create("Two")
            end = watches.hold(resource_list_target(yard))
            await asyncio.to_thread(lambda: yard.jobs.run(Shell("true"), timeout=20))
            await _until(lambda: heard)
            assert set(heard) == {ResourcesListChanged()}, "of the list nobody wanted to hear any more"
            end()

    run(work)


@pytest.mark.req("T-05")
def test_nobody_can_be_subscribed_to_everything(home: Path) -> None:
    async def work() -> None:
        many = [f"taskyard://lists/list-{number}" for number in range(101)]
        async with stdio_client(home, "--list", "demo") as client:
            with pytest.raises(MCPError, match="At most 100"):
                async with client.listen(resource_subscriptions=many):
                    pass
        async with stdio_client(home, "--list", "demo", mode="legacy") as client:
            for uri in many[:100]:
                await client.subscribe_resource(uri)
            with pytest.raises(MCPError, match="At most 100"):
                await client.subscribe_resource(many[100])

    run(work)


@pytest.mark.req("L-18")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("cold")
def test_a_server_with_subscriptions_ends_when_its_client_does(home: Path, mode: str) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "ends-with-us", mode=mode) as client:
            uri = "taskyard://lists/ends-with-us"
            if mode == "legacy":
                await client.subscribe_resource(uri)
                await client.list_resources()
            else:
                async with client.listen(resource_subscriptions=[uri]):
                    await client.list_resources()
                    (server,) = marked("ends-with-us")
                    names = {
                        (Path("/proc") / str(server) / "task" / thread / "comm").read_text()
                        for thread in os.listdir(f"/proc/{server}/task")
                    }
                    assert "taskyard-watch\n" not in names
        assert marked("ends-with-us") == []

    run(work)


def _until_printed(home: Path, job_id: str) -> None:
    until(lambda: (home / "jobs" / job_id / "output").read_text() == "begun\n")


async def _until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110  # nothing tells of what a loop has to do
        await asyncio.sleep(0.005)
