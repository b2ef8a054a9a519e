"""The handshake of `taskyard mcp` on stdio, answered before the SDK is loaded: the same answers, sooner."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import anyio
import pytest
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from support.python import run_python
from support.repo import ROOT
from taskyard import config
from taskyard.agents.engines.provider import HARMLESS_TOOLS
from taskyard.servers.mcp import manifest
from taskyard.servers.mcp.callers import StdioCaller
from taskyard.servers.mcp.front import HandshakeAnswers
from taskyard.servers.mcp.server import build

_spec = importlib.util.spec_from_file_location("manifest_script", ROOT / "scripts" / "manifest.py")
assert _spec is not None and _spec.loader is not None
script = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(script)

OURS = (sys.executable, "-m", "taskyard", "mcp")
TOOLS: dict[str, Any] = script.TOOLS
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
OLD = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1.0")


def ours(messages: Sequence[Mapping[str, Any]], **settings: str) -> list[dict[str, Any]]:
    """What `taskyard mcp` answers."""
    found: list[dict[str, Any]] = script.asked(
        OURS, messages, {"TASKYARD_MCP_STRUCTURED": "1", "TASKYARD_LIST": "demo", **settings}
    )
    return sorted(found, key=lambda one: str(one["id"]))


def sdks(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the SDK answers, given the same tools."""
    found: list[dict[str, Any]] = []

    async def serve() -> None:
        callers = StdioCaller(agent=None, list="demo", tasks_dir=None)
        server = build(callers, config.load_settings())._lowlevel_server
        send, read = create_context_streams[SessionMessage | Exception](len(messages))
        write, receive = create_context_streams[SessionMessage](0)
        async with anyio.create_task_group() as tasks, send, receive:
            tasks.start_soon(server.run, read, write, server.create_initialization_options())
            for message in messages:
                await send.send(SessionMessage(jsonrpc_message_adapter.validate_json(json.dumps(message))))
            for _ in (message for message in messages if "id" in message):
                answer = (await receive.receive()).message
                found.append(json.loads(answer.model_dump_json(by_alias=True, exclude_unset=True)))
            tasks.cancel_scope.cancel()
        await callers.close()

    anyio.run(serve)
    return sorted(found, key=lambda one: str(one.get("id")))


def init(version: str = "2025-11-25", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = script.initialize(version)
    found["params"] |= more
    return found


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


@pytest.mark.req("T-05")
@pytest.mark.parametrize("version", OLD)
def test_a_handshake_is_answered_as_the_sdk_answers_it(version: str) -> None:
    ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
    lists = [{"jsonrpc": "2.0", "id": name, "method": f"{name}/list"} for name in ("prompts", "resources")]
    messages = [init(version), READY, TOOLS, ping, *lists]
    assert ours(messages) == sdks(messages)


@pytest.mark.parametrize(("off", "monitor", "structured"), list(product("01", repeat=3)))
def test_the_tools_on_offer_follow_the_settings_as_in_the_sdk(
    off: str, monitor: str, structured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "TASKYARD_DISABLE_BACKGROUND_TASKS": off,
        "TASKYARD_MONITOR_TOOL": monitor,
        "TASKYARD_MCP_STRUCTURED": structured,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    hello, listed = ours([init(), READY, TOOLS], **settings)
    assert [hello, listed] == sdks([init(), READY, TOOLS])
    names = [tool["name"] for tool in listed["result"]["tools"]]
    assert ("Monitor" in names) == (off == "0" and monitor == "1")
    assert all(("outputSchema" in tool) == (structured == "1") for tool in listed["result"]["tools"])


@pytest.mark.req("Q-03")
def test_without_tools_that_run_commands_the_list_and_mail_are_left_and_nothing_else_can_be_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKYARD_COMMAND_TOOLS", "false")
    messages = [init(), READY, TOOLS, call(3, "Bash", command="touch made")]
    hello, listed, refused = ours(messages, TASKYARD_COMMAND_TOOLS="false")
    assert [hello, listed, refused] == sdks(messages)
    assert {tool["name"] for tool in listed["result"]["tools"]} == set(HARMLESS_TOOLS)
    assert "Bash" not in hello["result"]["instructions"]
    assert "Bash" in json.dumps(refused) and ("error" in refused or refused["result"]["isError"])


def test_a_client_without_a_handshake_gets_the_sdks_answers() -> None:
    methods = ("server/discover", "tools/list", "prompts/list", "resources/list")
    messages = [script.enveloped("2026-07-28", method) for method in methods]
    assert ours(messages) == sdks(messages)
    late = [*messages[:1], init()]  # the first request has decided by which rules this connection is served
    assert ours(late) == sdks(late)


LISTEN: dict[str, Any] = script.enveloped("2026-07-28", "subscriptions/listen")
LISTEN["params"]["notifications"] = {"toolsListChanged": True, "resourcesListChanged": True}


def test_a_stream_of_changes_is_acknowledged_once_and_brings_them_when_the_sdk_is_there(cold: None) -> None:
    """Claude Code asks for the tools only after this."""
    discover, tools = (script.enveloped("2026-07-28", method) for method in ("server/discover", "tools/list"))
    start = script.enveloped("2026-07-28", "tools/call")
    start["params"] |= {"name": "Bash", "arguments": {"command": "true", "run_in_background": True}}
    found = conversation([json.dumps(one).encode() + b"\n" for one in (discover, LISTEN, tools, start)], 5)

    said = [one.get("method", one.get("id")) for one in found]
    assert said[:3] == ["server/discover", ACKNOWLEDGED, "tools/list"]
    assert set(said[3:]) == {"tools/call", "notifications/resources/list_changed"}
    meta = {"io.modelcontextprotocol/subscriptionId": LISTEN["id"]}
    assert found[1] == {
        "jsonrpc": "2.0",
        "method": ACKNOWLEDGED,
        "params": {"_meta": meta, "notifications": LISTEN["params"]["notifications"]},
    }
    assert found[1] in sdks([discover, LISTEN])


UNUSUAL: dict[str, list[dict[str, Any]]] = {
    "tools before the handshake": [TOOLS, init()],
    "a ping before it": [{"jsonrpc": "2.0", "id": "p", "method": "ping"}, init()],
    "no client": [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}],
    "no parameters": [{"jsonrpc": "2.0", "id": 1, "method": "initialize"}],
    "capabilities that are none": [init(capabilities={"roots": {"listChanged": {}}})],
    "a version that is none": [init(protocolVersion=7)],
    "twice": [init(), READY, {**init("2024-11-05"), "id": 7}, TOOLS],
    "a cursor": [init(), READY, {**TOOLS, "params": {"cursor": "x"}}],
    "the other protocol's envelope": [init(), READY, script.enveloped("2026-07-28", "tools/list")],
    "a half envelope": [script.enveloped("2031-01-01", "tools/list")],
    "an unknown method": [init(), READY, {"jsonrpc": "2.0", "id": 5, "method": "no/such"}],
    "a token for progress": [init(), READY, {**TOOLS, "params": {"_meta": {"progressToken": 3}}}],
    "a call at once": [init(), READY, TOOLS, call(9, "TaskList")],
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_what_is_unusual_is_answered_as_the_sdk_answers_it(case: str) -> None:
    assert ours(UNUSUAL[case]) == sdks(UNUSUAL[case])


def conversation(lines: Sequence[bytes], answers: int) -> list[dict[str, Any]]:
    with subprocess.Popen(OURS, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for line in lines:
            process.stdin.write(line)
            process.stdin.flush()
        found = [json.loads(process.stdout.readline()) for _ in range(answers)]
        process.stdin.close()
        assert process.wait(20) == 0
    return found


def test_calls_before_the_sdk_is_loaded_are_answered_once_and_one_may_be_cancelled(cold: None) -> None:
    slow = call(3, "Bash", command="sleep 30")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    messages = [init(), READY, TOOLS, slow, call(4, "TaskCreate", subject="A"), cancel, call(5, "ListJobs")]
    began = time.monotonic()
    found = conversation([json.dumps(one).encode() + b"\n" for one in messages], 4)

    assert time.monotonic() - began < 25
    by_id = {one["id"]: one for one in found}
    assert set(by_id) == {1, 2, 4, 5}
    assert by_id[4]["result"]["content"][0]["text"] == "Task #1 created successfully: A"


def test_a_message_in_pieces_and_one_that_is_none_reach_the_sdk_whole(cold: None) -> None:
    whole = json.dumps(call(3, "TaskCreate", subject="Grüße")).encode() + b"\n"
    first = json.dumps(init()).encode() + b"\n"
    pieces = [first[:9], first[9:] + b"not JSON\n" + whole[:60], whole[60:]]
    hello, unreadable, made = conversation(pieces, 3)

    assert hello["id"] == 1
    assert unreadable["error"]["code"] == -32700
    assert made["result"]["content"][0]["text"] == "Task #1 created successfully: Grüße"


def test_a_client_that_hangs_up_at_once_leaves_nothing_behind(cold: None) -> None:
    began = time.monotonic()
    assert conversation([json.dumps(init()).encode() + b"\n"], 1)[0]["id"] == 1
    assert conversation([json.dumps(one).encode() + b"\n" for one in (init(), READY, TOOLS)], 2)[1]["id"] == 2
    assert time.monotonic() - began < 15


def test_the_stored_answers_are_those_of_the_sdk() -> None:
    assert script.main(["--check"]) == 0, "run `python scripts/manifest.py`"


def test_only_what_is_plain_is_answered_before_the_sdk_is_there() -> None:
    answers = HandshakeAnswers(manifest.load_manifest(manifest.Offer()), list)
    odd = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"initialize","params":{}}\n'
    assert answers.take(odd) is None
    assert answers.kept == [odd]
    assert answers.is_waiting


#: Modules that are loaded when the first answer is sent, of ours and the standard library's. Those of the SDK
#: would be more than a thousand.
LOADED = 110

_LOADED_BY_FRONT = """
import json, os, sys
before = set(sys.modules)
from taskyard.servers.mcp import front
class Counted(front.HandshakeServer):
    def _write(self, answer):
        print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)
        super()._write(answer)
        os._exit(0)
front.HandshakeServer = Counted
from taskyard.cli.main import main
main(["mcp"])
"""


def test_the_first_answer_is_sent_before_anything_heavy_is_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED_BY_FRONT],
        input=json.dumps(init()).encode() + b"\n",
        capture_output=True,
        timeout=30,
        check=True,
    )
    loaded = json.loads(done.stderr)
    assert json.loads(done.stdout)["id"] == 1
    assert not {"mcp", "pydantic", "anyio", "asyncio", "logging", "typing", "subprocess"}.intersection(loaded)
    assert len(loaded) <= LOADED, loaded


@pytest.mark.req("T-05")
def test_what_the_handshake_uses_imports_no_library_that_another_thread_loads() -> None:
    loaded = run_python("""
        import sys
        import taskyard.servers.mcp.front, taskyard.servers.mcp.resource_list
        print([name for name in ("mcp", "mcp_types", "pydantic", "anyio") if name in sys.modules])
    """)

    assert loaded.strip() == "[]"


def seconds_to_tools(server: Sequence[str]) -> float:
    """From the start of the process to the list of tools, as a client sees it."""
    began = time.monotonic()
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for message in (init(), READY, TOOLS):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.readline()
        took = time.monotonic() - began
        process.kill()
    return took


def seconds_to_import(module: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=dict(os.environ))
    return time.monotonic() - began


@pytest.mark.serial
def test_a_client_has_the_tools_within_a_few_times_what_python_takes_to_import_asyncio(cold: None) -> None:
    pairs = [(seconds_to_tools(OURS), seconds_to_import("asyncio")) for _ in range(7)]
    tools, bare = (statistics.median(each) for each in zip(*pairs, strict=True))
    assert tools < 2 * bare, (tools, bare)
