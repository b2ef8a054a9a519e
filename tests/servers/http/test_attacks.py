"""Hostile connections to each of our HTTP servers: a client with a token is answered at once, memory stays bounded."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from support import attacker
from support.a2a_places import Yard
from support.mcp_http import ACCEPT, NEW, HttpServer
from support.web import WebServer

#: Seconds in which a client with a token has its answer.
AT_ONCE = 1.0

#: Bytes of memory (PSS) a server may have.
MEMORY = 150_000_000

#: Seconds for which a client asks again and again.
WHILE = 3.0

KINDS = ("silent", "header", "body", "pipelined", "slow", "stream")


class Target(NamedTuple):
    """A server under attack."""

    address: str
    pid: int
    public: bytes  #: a request that is answered without a token
    stream: bytes  #: a request, with a token, whose answer goes on
    asks: bytes  #: a request of the client that is to be answered


def _request(address: str, path: str, *, method: str = "GET", token: str = "", body: bytes = b"", **more: str) -> bytes:
    headers = {"Host": address, **{name.replace("_", "-"): value for name, value in more.items()}}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body:
        headers["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


@contextmanager
def _web(folder: Path) -> Generator[Target]:
    with WebServer() as server:
        at, token = server.address, server.token
        stream = _request(at, "/api/stream", token=token)
        yield Target(at, server.process.pid, _request(at, "/"), stream, _request(at, "/api/snapshot.json", token=token))


@contextmanager
def _mcp(folder: Path) -> Generator[Target]:
    with HttpServer() as server:
        at, token = server.address, server.token
        asks = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": _META}}
        listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"_meta": _META, **_WANTED}}

        def call(body: dict[str, object]) -> bytes:
            return _request(
                at,
                "/mcp",
                method="POST",
                token=token,
                body=json.dumps(body).encode(),
                Accept=ACCEPT,
                Content_Type="application/json",
                MCP_Protocol_Version=NEW,
                Mcp_Method=str(body["method"]),
            )

        yield Target(at, server.process.pid, _request(at, "/healthz"), call(listen), call(asks))


@contextmanager
def _a2a(folder: Path) -> Generator[Target]:
    yard = Yard(folder)
    with yard.serve() as server:
        other = Path(yard.cli("a2a", "token", "hostile")["token_file"]).read_text(encoding="ascii").strip()
        at = urllib.parse.urlsplit(server.url).netloc

        def call(token: str, method: str, params: dict[str, object]) -> bytes:
            said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            more = {"Content_Type": "application/json", "A2A_Version": "1.0"}
            return _request(at, "/rpc", method="POST", token=token, body=json.dumps(said).encode(), **more)

        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "/forever"}]}
        stream = call(other, "SendStreamingMessage", {"message": message})
        yield Target(
            at,
            server.process.pid,
            _request(at, "/.well-known/agent-card.json"),
            stream,
            call(server.token, "ListTasks", {}),
        )


_META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_WANTED = {"notifications": {"toolsListChanged": True}}

SERVERS = {"web": _web, "mcp": _mcp, "a2a": _a2a}


def _answer_to(target: Target) -> bytes:
    """The status line of the answer to an honest client on a connection of its own."""
    host, _, port = target.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as made:
        made.sendall(target.asks)
        return made.makefile("rb").readline()


def _memory(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no memory")


@contextmanager
def _attacked(target: Target, kinds: tuple[str, ...], count: int) -> Generator[None]:
    """`count` hostile connections of each kind."""
    port = target.address.rpartition(":")[2]
    requests = [f"{kind}={(target.stream if kind == 'stream' else target.public).hex()}" for kind in kinds]
    command = [sys.executable, attacker.__file__, port, str(count), *requests]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


def _holds_out(name: str, folder: Path, kinds: tuple[str, ...], count: int) -> None:
    with SERVERS[name](folder) as target:
        assert b" 200 " in _answer_to(target)
        waits: list[float] = []
        most = 0
        with _attacked(target, kinds, count):
            until = time.monotonic() + WHILE
            while time.monotonic() < until:
                began = time.monotonic()
                assert b" 200 " in _answer_to(target)
                waits.append(time.monotonic() - began)
                most = max(most, _memory(target.pid))
        print(f"{name}: {len(waits)} answers, longest {max(waits):.3f} s, {most / 1e6:.0f} MB", flush=True)
        assert max(waits) < AT_ONCE
        assert most < MEMORY


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.serial
def test_six_hundred_hostile_connections_keep_nobody_waiting(name: str, tmp_path: Path) -> None:
    _holds_out(name, tmp_path, KINDS, 100)
