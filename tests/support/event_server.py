"""
A real MCP server that does what a test tells it: `python event_server.py FOLDER ERA TRANSPORT`.

ERA is `new` (2026-07-28) or `old`, TRANSPORT `stdio` or `http` (on a free port of loopback). In the folder, what is
written to the pipe `orders` is done, a line each; `said` has a line for everything that was asked of the server.

    update URI · log LEVEL TEXT · close · exit N · raw TEXT · huge BYTES
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_loop
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated, ServerEvent

Request = ServerRequestContext[Any, Any]


class Bus(InMemorySubscriptionBus):
    """Says when somebody can hear."""

    def __init__(self, said: Callable[[str], None]) -> None:
        super().__init__()
        self._said = said

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        end = super().subscribe(listener)
        self._said("listen")
        return end


class EventServer:
    def __init__(self, folder: Path, era: str) -> None:
        self._folder = folder
        self._era = era
        self._stdout = os.dup(1)  # what the SDK keeps to itself while it serves
        self._bus = Bus(self._say)
        self._listen = ListenHandler(self._bus)
        self._session: ServerSession | None = None
        self._resources: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the older protocol
            self.server: Server[Any] = Server(
                "events",
                on_subscribe_resource=self._subscribed,
                on_set_logging_level=self._level,
                on_subscriptions_listen=self._listening,
            )
        if era == "old":
            self.server.add_request_handler("server/discover", types.RequestParams, _unknown)

    def _say(self, what: str) -> None:
        with (self._folder / "said").open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")

    async def _subscribed(self, ctx: Request, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._session = ctx.session
        self._say(f"subscribe {params.uri}")
        return types.EmptyResult()

    async def _level(self, ctx: Request, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self._session = ctx.session
        self._say(f"level {params.level}")
        return types.EmptyResult()

    async def _listening(
        self, ctx: Request, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        self._session = ctx.session
        return await self._listen(ctx, params)

    async def obey(self) -> None:
        orders = asyncio.StreamReader()
        pipe = os.fdopen(os.open(self._folder / "orders", os.O_RDWR), "rb", 0)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), pipe)
        while line := await orders.readline():
            word, _, rest = line.decode().rstrip("\n").partition(" ")
            await self._do(word, rest)

    async def _do(self, word: str, rest: str) -> None:
        if word == "update":
            if self._era == "new":
                await self._bus.publish(ResourceUpdated(uri=rest))
            elif self._session is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    await self._session.send_resource_updated(rest)
        elif word == "log" and self._session is not None:
            level, _, text = rest.partition(" ")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await self._session.send_log_message(level, text.encode().decode("unicode_escape"), logger="disk")  # type: ignore[arg-type]
        elif word == "close":
            self._listen.close()
        elif word == "exit":
            os._exit(int(rest))
        elif word == "raw":
            os.write(self._stdout, f"{rest}\n".encode())
        elif word == "huge":
            await asyncio.to_thread(self._write, b"x" * int(rest))

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._stdout, data) :]


async def _unknown(ctx: Request, params: types.RequestParams) -> types.EmptyResult:
    raise MCPError(types.METHOD_NOT_FOUND, "Method not found")


async def main(folder: Path, era: str, transport: str) -> None:
    events = EventServer(folder, era)
    async with anyio.create_task_group() as group:
        group.start_soon(events.obey)
        if transport == "stdio":
            async with stdio_server() as (read, write):
                options = events.server.create_initialization_options()
                if era == "new":
                    await events.server.run(read, write, options)
                else:
                    await serve_loop(events.server, read, write, lifespan_state={}, init_options=options)
        else:
            await _over_http(events, folder)
        group.cancel_scope.cancel()


async def _over_http(events: EventServer, folder: Path) -> None:
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        app: Any = events.server.streamable_http_app()
        (folder / "port.tmp").write_text(str(listening.getsockname()[1]), encoding="utf-8")
        serving = uvicorn.Server(uvicorn.Config(_noting(app, folder), log_level="error", lifespan="on"))
        listening.listen()
        (folder / "port.tmp").rename(folder / "port")
        await serving.serve([listening])


def _noting(app: Any, folder: Path) -> Any:
    """The app, which writes down whether a request brought a token."""

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        for name, value in scope.get("headers", ()):
            if name == b"authorization":
                (folder / "token").write_bytes(value)
        await app(scope, receive, send)

    return noted


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
