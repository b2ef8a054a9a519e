"""The MCP server as its clients meet it: by the official client, in this process for breadth, else over stdio."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
from mcp.client.client import Client
from mcp_types import CallToolResult, Implementation

from support.mcp_clients import PATIENCE, stdio_client
from taskyard import config
from taskyard.servers.mcp.callers import StdioCaller
from taskyard.servers.mcp.server import build

#: No test talks to a server for longer, in seconds.
LONGEST = PATIENCE

Mode = Literal["auto", "legacy"]


class Model:
    """A client that speaks as a model's would: tool calls, answered in text and data."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Said:
        return Said(await self.client.call_tool(tool, arguments))

    async def refused(self, tool: str, **arguments: Any) -> Said:
        said = await self.call(tool, **arguments)
        assert said.is_error, said.texts
        return said


class Said:
    """One answer."""

    def __init__(self, result: CallToolResult) -> None:
        assert isinstance(result, CallToolResult)
        self.is_error = bool(result.is_error)
        self.texts: list[str] = [block.text for block in result.content if block.type == "text"]
        self.data: dict[str, Any] = dict(result.structured_content or {})
        self.notices: list[dict[str, Any]] = list((result.meta or {}).get("taskyard/notices", []))

    @property
    def text(self) -> str:
        """What was asked for, without what rode along."""
        return self.texts[0]

    @property
    def code(self) -> str:
        """Which refusal it is."""
        return str(self.data["error"]["code"])


@asynccontextmanager
async def inside(
    *, agent: str | None = None, mode: Mode = "auto", patience: float = 20.0, program: str | None = None
) -> AsyncIterator[Model]:
    """A client of a server in this process; `program`: the name that it gives itself."""
    callers = StdioCaller(agent=agent, list="demo", tasks_dir=None)
    structured = os.environ.get("TASKYARD_MCP_STRUCTURED", "1") == "1"
    server = build(callers, config.load_settings()._replace(mcp_patience=patience, mcp_structured=structured))
    try:
        info = None if program is None else Implementation(name=program, version="1")
        async with Client(server, mode=mode, client_info=info) as client:
            yield Model(client)
    finally:
        await callers.close()


@asynccontextmanager
async def over_stdio(*words: str, mode: Mode = "auto", env: dict[str, str] | None = None) -> AsyncIterator[Model]:
    """A client of `taskyard mcp` in a process of its own."""
    home = Path(os.environ["TASKYARD_HOME"])
    structured = {"TASKYARD_MCP_STRUCTURED": os.environ.get("TASKYARD_MCP_STRUCTURED", "1")}
    async with stdio_client(home, "--list", "demo", *words, env={**structured, **(env or {})}, mode=mode) as client:
        yield Model(client)


def talk(
    body: Callable[[Model], Awaitable[None]],
    *,
    agent: str | None = None,
    mode: Mode = "auto",
    patience: float = 20.0,
    program: str | None = None,
) -> None:
    """Have a conversation with a server in this process."""

    async def run() -> None:
        with anyio.fail_after(LONGEST):
            async with inside(agent=agent, mode=mode, patience=patience, program=program) as model:
                await body(model)

    _run(run)


def talk_over_stdio(body: Callable[[Model], Awaitable[None]], *words: str, mode: Mode = "auto") -> None:
    """Have a conversation with `taskyard mcp`."""

    async def run() -> None:
        with anyio.fail_after(LONGEST):
            async with over_stdio(*words, mode=mode) as model:
                await body(model)

    _run(run)


def _run(body: Callable[[], Awaitable[None]]) -> None:
    try:
        anyio.run(body)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]  # what went wrong, without the tasks it went wrong in
        raise error from None
