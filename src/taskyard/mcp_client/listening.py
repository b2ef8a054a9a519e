"""
The events of an MCP server: changes of resources and log messages, a line each, for as long as it is there.

Since 2026-07-28 a client opens one stream of what it wants to hear; before, it subscribed to each resource and set a
level for the log. Which of them a server speaks is found out by the official client.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, cast

import anyio
import httpx2
import mcp_types as types
from mcp.client._transport import TransportStreams
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from taskyard.harmless import safe
from taskyard.mcp_client.stdio import server

#: Seconds for one answer of a server.
_PATIENCE = 30.0

#: Seconds between two looks whether a server over HTTP of the older protocol is still there: nothing else tells.
_PING_EVERY = 10.0

#: Characters of a log message that are kept.
_LONGEST = 100_000


class Lost(Exception):
    """There is no server to hear any more, and why."""


class Wish(NamedTuple):
    """Which server, and what of it."""

    argv: tuple[str, ...] = ()  #: starts it; else there is a URL
    url: str = ""
    token: str | None = None
    resources: tuple[str, ...] = ()
    logs: str | None = None


async def listen(wish: Wish, heard: Callable[[str], None], began: Callable[[], object]) -> None:
    """Say each event to `heard`, until the server closes the stream in good order; `began` when it can come to that.

    Raises:
        Lost: the server is gone, or was never there.
    """
    listener = _Listener(wish, heard, began)
    try:
        await listener.listen()
    except Lost:
        raise
    except Exception as error:  # whatever the client and its libraries raise: the connection is over
        raise Lost(listener.gone or _words(error)) from error


class _Listener:
    """One connection."""

    def __init__(self, wish: Wish, heard: Callable[[str], None], began: Callable[[], object]) -> None:
        self._wish = wish
        self._heard = heard
        self._began = began
        self._is_gone = anyio.Event()
        self._is_old = False  # whether changes come as messages of their own, not on a stream
        self.gone = ""  #: why it is, where that is known

    async def listen(self) -> None:
        client = Client(
            self._transport(),
            logging_callback=self._log,
            log_level=cast("types.LoggingLevel | None", self._wish.logs),
            message_handler=self._message,
            read_timeout_seconds=_PATIENCE,
            client_info=types.Implementation(name="taskyard-monitor", version="1"),
            cache=None,
        )
        async with client:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                await self._stream(client)
            else:
                await self._subscribe(client)

    def _transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        return server(self._wish.argv, self._lose) if self._wish.argv else _over_http(self._wish)

    def _lose(self, why: str) -> None:
        self.gone = why
        self._is_gone.set()

    async def _stream(self, client: Client) -> None:
        """One stream of everything, by the current protocol."""
        async with client.listen(resource_subscriptions=self._wish.resources) as stream:
            granted = stream.honored.resource_subscriptions or []
            if refused := [uri for uri in self._wish.resources if uri not in granted]:
                raise Lost(f"its server does not tell of changes of {safe(refused[0])}")
            self._began()
            try:
                async for event in stream:
                    if isinstance(event, ResourceUpdated):
                        self._heard(_updated(event.uri))
            except SubscriptionLost:
                raise Lost(await self._why()) from None

    async def _why(self) -> str:
        """Why the stream broke; a server of our own says so a moment later."""
        if self._wish.argv:
            with anyio.move_on_after(2.0):
                await self._is_gone.wait()
        return self.gone or "the connection was lost"

    async def _subscribe(self, client: Client) -> None:
        """Resource by resource, by the older protocol."""
        session, self._is_old = client.session, True
        if self._wish.logs is not None:
            await session.send_request(_level(self._wish.logs), types.EmptyResult)
        for uri in self._wish.resources:
            await session.send_request(_subscription(uri), types.EmptyResult)
        self._began()
        while not self._is_gone.is_set():
            with anyio.move_on_after(None if self._wish.argv else _PING_EVERY):
                await self._is_gone.wait()
            if not self._is_gone.is_set():
                await session.send_request(types.PingRequest(), types.EmptyResult)
        raise Lost(self.gone)

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
        logger = f" {safe(params.logger)}" if params.logger else ""
        self._heard(f"{params.level}{logger}: {safe(data[:_LONGEST])}")

    async def _message(self, message: IncomingMessage) -> None:
        if self._is_old and isinstance(message, types.ResourceUpdatedNotification):
            self._heard(_updated(message.params.uri))


def _level(level: str) -> types.SetLevelRequest:
    return types.SetLevelRequest(params=types.SetLevelRequestParams(level=cast("types.LoggingLevel", level)))


def _subscription(uri: str) -> types.SubscribeRequest:
    return types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))


def _updated(uri: object) -> str:
    return f"updated: {safe(str(uri))}"


@asynccontextmanager
async def _over_http(wish: Wish) -> AsyncGenerator[TransportStreams]:
    headers = {} if wish.token is None else {"Authorization": f"Bearer {wish.token}"}
    # A stream on which nothing happens is no failure; every answer is waited for with patience, no longer.
    timeout = httpx2.Timeout(_PATIENCE, read=None)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout) as http,
        streamable_http_client(wish.url, http_client=http) as streams,
    ):
        yield streams


def _words(error: BaseException) -> str:
    """What went wrong, without the tasks it went wrong in."""
    found = error
    while isinstance(found, BaseExceptionGroup):
        found = cast("BaseExceptionGroup[BaseException]", found).exceptions[0]
    if isinstance(found, Lost):
        return str(found)
    return f"the connection failed: {safe(str(found))[:300] or type(found).__name__}"
