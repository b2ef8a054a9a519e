"""The official MCP client at the other end of `taskyard mcp`, as any program would be."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

#: No test waits longer for anything, in seconds.
PATIENCE = 40.0

#: The two protocols a client may speak: the current one, and the one before it.
MODES = ("auto", "legacy")


@asynccontextmanager
async def stdio_client(
    home: Path, *args: str, env: Mapping[str, str] | None = None, mode: str = "auto", **options: Any
) -> AsyncIterator[Client]:
    """A client with a server of its own; `home` is its $TASKYARD_HOME, `options` are the client's own."""
    around = {**os.environ, "TASKYARD_HOME": str(home), **(env or {})}
    server = StdioServerParameters(command=sys.executable, args=["-m", "taskyard", "mcp", *args], env=around)
    async with Client(server, mode=mode, **options) as client:
        yield client


def run(work: Callable[..., Awaitable[None]], *args: object) -> None:
    """Run a test's own coroutine, for as long as a test may take."""
    anyio.run(partial(_bounded, work, *args))


async def _bounded(work: Callable[..., Awaitable[None]], *args: object) -> None:
    with anyio.fail_after(PATIENCE):
        await work(*args)
