"""Whatever a client sends, over HTTP or stdio: the server stays up, says what is wrong, and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taskyard
from support.mcp_http import ACCEPT, NEW, OLD, HttpServer, call_headers, call_of
from support.mcp_server import LONGEST, Model, inside, talk
from support.scale import FULL
from support.yards import snapshot

FEW = settings(max_examples=300 if FULL else 30)

#: Bodies that are no message, or none that can be.
BROKEN: list[bytes] = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"7",
    b'"text"',
    b"\xff\xfe\x00",
    b"\x00" * 100,
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":[1],"method":"tools/list"}',
    b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":7}',
    b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"text"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{},"arguments":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"NoSuchTool","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","id":2,"method":"tools/call"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"TaskCreate","arguments":{"subject":"A"}}}]',
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)


@contextmanager
def unchanged() -> Iterator[None]:
    """Nothing of what is on the list changes meanwhile."""
    with taskyard.open(list="demo") as yard:
        yard.tasks.create("A")
        folder = Path(os.environ["CLAUDE_CONFIG_DIR"], "tasks")
        before = snapshot(folder)
        yield
        assert snapshot(folder) == before
        assert [task.subject for task in yard.tasks.list()] == ["A"]


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as found:
        yield found


@pytest.mark.req("T-05")
def test_a_body_that_is_no_message_is_refused_over_http(server: HttpServer) -> None:
    with unchanged():
        for version in (NEW, OLD, "2024-11-05", "9999-99-99", "\xff"):
            for body in BROKEN:
                got = server.post(body, Mcp_Protocol_Version=version)
                assert 400 <= got.status < 500, (version, body[:80], got)
        assert server.is_alive
        assert server.call("TaskList").status == 200


@pytest.mark.req("T-05")
def test_a_body_that_is_no_message_is_refused_within_a_session(server: HttpServer) -> None:
    version = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    opened = server.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": version})
    headers = {"Mcp_Session_Id": opened.headers["mcp-session-id"], "Mcp_Protocol_Version": OLD}
    server.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
    with unchanged():
        for body in BROKEN:
            got = server.post(body, **headers)
            assert got.status < 500, (body[:80], got)
            assert got.status in (200, 202) or got.status >= 400
            if got.status == 200:
                found = got.json
                assert "error" in found or found["result"].get("isError") or "tools" in found["result"], found
        listed = server.post({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}, **headers)
        assert listed.json["id"] == 7
        assert listed.json["result"]["tools"]


@pytest.mark.req("T-05")
def test_random_bodies_and_headers_are_refused_over_http(server: HttpServer) -> None:
    header = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30)

    @FEW
    @given(st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()), header, header, header)
    def tried(body: bytes, version: str, session: str, agent: str) -> None:
        got = server.post(body, Mcp_Protocol_Version=version, Mcp_Session_Id=session, Taskyard_Agent=agent)
        assert 400 <= got.status < 500 or got.status == 202, got

    with unchanged():
        tried()
        assert server.is_alive


@pytest.mark.req("T-05")
def test_random_values_in_place_of_a_message_s_parts_are_refused_over_http(server: HttpServer) -> None:
    @FEW
    @given(JSON, JSON, JSON)
    def tried(number: Any, arguments: Any, meta: Any) -> None:
        message = call_of("TaskUpdate", arguments, id=number)
        assert server.post(message, **call_headers("TaskUpdate")).status in (200, 202, 400)
        message["params"]["_meta"] = meta
        assert server.post(message, **call_headers("TaskUpdate")).status in (200, 202, 400)

    with unchanged():
        tried()
        assert server.is_alive


@pytest.mark.req("T-05")
def test_an_odd_name_is_a_name_or_refused_and_leads_nowhere(server: HttpServer) -> None:
    with unchanged():
        for agent in ("../../etc", "a" * 200, "x" * 201, "\xe9\xff", "*", ".", "%00"):
            found = server.call("TaskList", agent).json["result"]
            assert not found.get("isError") or found["structuredContent"]["error"]["code"] == "bad_name"
        locks = list(Path(os.environ["TASKYARD_HOME"]).parent.rglob("*.lock"))
        assert all(path.parent.name in ("instances", "demo") for path in locks), locks
        assert server.is_alive


@pytest.mark.req("T-05")
def test_odd_methods_and_paths_are_refused_over_http(server: HttpServer) -> None:
    with unchanged():
        for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "BREW"):
            for path in ("/mcp", "/nowhere", "/mcp/", "/%2e%2e/etc/passwd", "/mcp?agent=%00"):
                got = server.bare(method, path, Accept=ACCEPT, Mcp_Session_Id="nobody")
                assert 300 <= got.status < 500, (method, path, got)
        assert server.is_alive


@pytest.mark.req("T-05")
def test_lines_that_are_no_message_are_survived_over_stdio() -> None:
    command = [sys.executable, "-m", "taskyard", "mcp", "--list", "demo"]
    version = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": version}
    last = {"jsonrpc": "2.0", "id": "last", "method": "tools/list"}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    first = [json.dumps(message).encode() for message in (hello, ready)]
    lines = [*first, *BROKEN, os.urandom(300), json.dumps(last).encode()]
    with unchanged(), subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines))
        child.stdin.flush()
        while (answer := json.loads(child.stdout.readline() or b"{}")) and answer.get("id") != "last":
            assert "jsonrpc" in answer
        assert answer.get("result", {}).get("tools")
        child.stdin.close()
        assert child.wait(LONGEST) == 0


def schemas() -> dict[str, dict[str, Any]]:
    """What each tool says that it takes."""
    found: dict[str, dict[str, Any]] = {}

    async def body(model: Model) -> None:
        for tool in (await model.client.list_tools()).tools:
            found[tool.name] = dict(tool.input_schema)

    talk(body)
    return found


@st.composite
def misfits(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that do not fit: something needed is missing, something is unknown, or of a kind nothing accepts."""
    fields, needed = list(schema.get("properties", {})), schema.get("required", [])
    texts = dict.fromkeys(needed, "1")
    ways = ["unknown", *(["missing"] if needed else []), *(["wrong"] if fields else [])]
    way = draw(st.sampled_from(ways))
    if way == "missing":
        texts.pop(draw(st.sampled_from(needed)))
        return dict(texts)
    if way == "unknown":
        return {**texts, draw(st.text(max_size=30).filter(lambda name: name not in fields)): draw(JSON)}
    name = draw(st.sampled_from(fields))
    objects: list[Any] = [] if _takes_objects(schema["properties"][name]) else [{"x": [{}]}, {"": None}]
    return {**texts, name: draw(st.sampled_from([[[{}]], [None, 1], 1e300, *objects]))}


def _takes_objects(field: dict[str, Any]) -> bool:
    return any(kind.get("type") == "object" for kind in (field, *field.get("anyOf", ())))


@pytest.mark.req("T-01", "T-02", "T-03")
def test_arguments_that_do_not_fit_are_refused_by_every_tool() -> None:
    known = schemas()
    count = 60 if FULL else 6

    async def try_all(tries: list[tuple[str, dict[str, Any]]]) -> None:
        async with inside(agent="ada") as model:
            for tool, arguments in tries:
                said = await model.client.call_tool(tool, arguments)
                assert said.is_error, (tool, arguments)
                assert (said.structured_content or {})["error"]["code"] == "bad_arguments", (tool, arguments)

    @settings(max_examples=count)
    @given(st.tuples(*(misfits(schema) for schema in known.values())))
    def tried(arguments: tuple[dict[str, Any], ...]) -> None:
        anyio.run(try_all, list(zip(known, arguments, strict=True)))

    with unchanged():
        tried()
