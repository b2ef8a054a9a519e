"""`taskyard mcp --http` in a process of its own, met by the official client and by bare requests."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from support.mcp_server import LONGEST, Mode, Model

#: What a bare request of either protocol says of itself.
ACCEPT = "application/json, text/event-stream"
NEW, OLD = "2026-07-28", "2025-11-25"


class Got(NamedTuple):
    """The answer to a bare request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, of an event stream the last message in it."""
        text = self.body.decode()
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            text = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")][-1]
        return json.loads(text)


class HttpServer:
    """A server, for the length of a `with` block."""

    def __init__(self, *words: str, address: str = "0", list: str = "demo", **env: str) -> None:
        command = [sys.executable, "-m", "taskyard", "mcp", "--http", address, "--list", list, "--json", *words]
        self.errors = Path(os.environ["HOME"]) / f"errors-{os.urandom(4).hex()}"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.said
        self.ready: dict[str, Any] = json.loads(line)["data"]
        self.url = str(self.ready["url"])
        self.address = urllib.parse.urlsplit(self.url).netloc
        file = self.ready["token_file"]
        self.token = Path(file).read_text(encoding="ascii").strip() if file else env.get("TASKYARD_MCP_TOKEN", "")

    @property
    def said(self) -> str:
        """What it wrote to stderr."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        code = self.process.wait(LONGEST)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None and self.bare("GET", "/healthz", token=None).status == 200

    @asynccontextmanager
    async def client(
        self,
        agent: str | None = None,
        *,
        mode: Mode = "auto",
        own: str = "robot",
        query: str = "",
        stay: bool = False,
        **more: Any,
    ) -> AsyncIterator[Model]:
        """A client under a name; `stay`: it does not say goodbye."""
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Taskyard-Agent": agent} if agent else {})
        async with httpx2.AsyncClient(headers=headers, timeout=LONGEST, trust_env=False) as http_client:
            transport = streamable_http_client(self.url + query, http_client=http_client, terminate_on_close=not stay)
            info = Implementation(name=own, version="1")
            async with Client(transport, mode=mode, client_info=info, **more) as client:
                yield Model(client)

    def talk(self, body: Callable[[Model], Awaitable[None]], agent: str | None = "ada", *, mode: Mode = "auto") -> None:
        """Have a conversation."""

        async def run() -> None:
            async with self.client(agent, mode=mode) as model:
                await body(model)

        together(run)

    def bare(
        self,
        method: str,
        path: str = "/mcp",
        body: bytes | Any = None,
        *,
        token: str | None = "",
        **headers: str,
    ) -> Got:
        """A bare request; with the right token unless told otherwise. `Content_Type` as a keyword is `Content-Type`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token or self.token}")
        connection = http.client.HTTPConnection(self.address, timeout=LONGEST)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Got(answer.status, found, answer.read())
        finally:
            connection.close()

    def post(self, message: object, **headers: str) -> Got:
        """A bare message."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        headers = {"Content_Type": "application/json", "Accept": ACCEPT, **headers}
        return self.bare("POST", "/mcp", data, **headers)

    def call(self, tool: str, agent: str = "ada", **arguments: Any) -> Got:
        """A bare call in the current protocol."""
        return self.post(call_of(tool, arguments), **call_headers(tool), Taskyard_Agent=agent)


def call_of(tool: str, arguments: object, *, id: object = 1) -> dict[str, Any]:
    """A tool call in the current protocol."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def call_headers(tool: str) -> dict[str, str]:
    return {"Mcp_Protocol_Version": NEW, "Mcp_Method": "tools/call", "Mcp_Name": tool}


def together(*bodies: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run all of them at once, bounded; the first failure is the test's."""

    async def run() -> None:
        with anyio.fail_after(LONGEST):
            async with anyio.create_task_group() as group:
                for body in bodies:
                    group.start_soon(body)

    try:
        anyio.run(run)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None
