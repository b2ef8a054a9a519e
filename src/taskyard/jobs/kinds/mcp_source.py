"""MCP servers as sources of a monitor, through the official client; imported only by monitors of one.

Events are changes of resources and log messages, one line each, until the server is gone. Since protocol
2026-07-28 a client opens one stream of subscriptions; before, it subscribed to each resource and set a log
level. The official client finds out which protocol a server supports.

A server given as a command is started here, communicates on stdin and stdout, and is terminated with its
whole process group. Unlike the client's own transport, `spawn_server` limits the length of a message and
reports at once that the server has exited, with its exit code. The server inherits stderr.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, cast

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from taskyard.core import subprocesses
from taskyard.core.text import escape_control

#: Bytes of one message: no resource is read here, so that a longer message is never an event.
MAX_MESSAGE_BYTES = 4_000_000


@asynccontextmanager
async def spawn_server(argv: Sequence[str], gone: Callable[[str], None]) -> AsyncGenerator[TransportStreams]:
    """Run a server for the duration of a `with` block; call `gone` with the reason if it ends before that.

    Raises:
        OSError: It cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=MAX_MESSAGE_BYTES,
    )
    said, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read_messages, process, said, gone)
            group.start_soon(_write_messages, process, to_send)
            yield heard, outgoing
            group.cancel_scope.cancel()
    finally:
        for stream in (said, heard, outgoing, to_send):
            stream.close()
        with anyio.CancelScope(shield=True):  # every wait in it is bounded
            await subprocesses.terminate(process)


async def _read_messages(
    process: asyncio.subprocess.Process,
    said: MemoryObjectSendStream[SessionMessage | Exception],
    gone: Callable[[str], None],
) -> None:
    assert process.stdout is not None
    async with said:
        try:
            while line := await process.stdout.readline():
                await said.send(_parse_message(line))
        except ValueError:
            gone(f"its server sent a message of more than {MAX_MESSAGE_BYTES:,} bytes")
            return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the receiver is closed
        with anyio.move_on_after(
            subprocesses.CHILD_TERM_GRACE
        ):  # it closed its output, as most servers do when they exit
            await process.wait()
        gone(f"its server ended ({subprocesses.describe_exit(process.returncode)})")


def _parse_message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write_messages(
    process: asyncio.subprocess.Process, to_send: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    assert process.stdin is not None
    async with to_send:
        async for message in to_send:
            process.stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            try:
                await process.stdin.drain()
            except ConnectionError:
                return  # `_read_messages` notices the exit


#: Seconds for one response of a server.
_REQUEST_TIMEOUT = 30.0

#: Seconds between pings of an HTTP server with the older protocol: nothing else reveals that it is gone.
_PING_INTERVAL = 10.0

#: Characters kept of a log message.
_MAX_LOG_CHARS = 100_000


class SourceLost(Exception):
    """The server is gone, for the reason in the message."""


class McpSubscription(NamedTuple):
    """A server, and the events to subscribe to."""

    argv: tuple[str, ...] = ()  #: command that starts it; if empty there is a URL
    url: str = ""
    token: str | None = None
    resources: tuple[str, ...] = ()
    logs: str | None = None


async def listen(wish: McpSubscription, heard: Callable[[str], None], began: Callable[[], object]) -> None:
    """Call `heard` with each event until the server closes the stream in good order; call `began` once subscribed.

    Raises:
        SourceLost: The server is gone, or was never reachable.
    """
    listener = _Listener(wish, heard, began)
    try:
        await listener.listen()
    except SourceLost:
        raise
    except Exception as error:  # any exception of the client and its libraries: the connection is over
        raise SourceLost(listener.gone or _error_text(error)) from error


class _Listener:
    """One connection."""

    def __init__(self, wish: McpSubscription, heard: Callable[[str], None], began: Callable[[], object]) -> None:
        self._wish = wish
        self._heard = heard
        self._began = began
        self._is_gone = anyio.Event()
        self._is_old = False  # whether changes arrive as separate messages, not on a stream
        self.gone = ""  #: the reason of the loss, where it is known

    async def listen(self) -> None:
        client = Client(
            self._transport(),
            logging_callback=self._log,
            log_level=cast("types.LoggingLevel | None", self._wish.logs),
            message_handler=self._message,
            read_timeout_seconds=_REQUEST_TIMEOUT,
            client_info=types.Implementation(name="taskyard-monitor", version="1"),
            cache=None,
        )
        async with client:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                await self._stream(client)
            else:
                await self._subscribe(client)

    def _transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        return spawn_server(self._wish.argv, self._lose) if self._wish.argv else _http_transport(self._wish)

    def _lose(self, why: str) -> None:
        self.gone = why
        self._is_gone.set()

    async def _stream(self, client: Client) -> None:
        """Read one stream of all events, by the current protocol."""
        async with client.listen(resource_subscriptions=self._wish.resources) as stream:
            granted = stream.honored.resource_subscriptions or []
            if refused := [uri for uri in self._wish.resources if uri not in granted]:
                raise SourceLost(f"its server does not report changes of {escape_control(refused[0])}")
            self._began()
            try:
                async for event in stream:
                    if isinstance(event, ResourceUpdated):
                        self._heard(_format_update(event.uri))
            except SubscriptionLost:
                raise SourceLost(await self._why()) from None

    async def _why(self) -> str:
        """Return why the stream broke; the exit of a server started here is known a moment later."""
        if self._wish.argv:
            with anyio.move_on_after(2.0):
                await self._is_gone.wait()
        return self.gone or "the connection was lost"

    async def _subscribe(self, client: Client) -> None:
        """Subscribe resource by resource, by the older protocol, until the server is gone."""
        session, self._is_old = client.session, True
        if self._wish.logs is not None:
            await session.send_request(_level_request(self._wish.logs), types.EmptyResult)
        for uri in self._wish.resources:
            await session.send_request(_subscribe_request(uri), types.EmptyResult)
        self._began()
        while not self._is_gone.is_set():
            with anyio.move_on_after(None if self._wish.argv else _PING_INTERVAL):
                await self._is_gone.wait()
            if not self._is_gone.is_set():
                await session.send_request(types.PingRequest(), types.EmptyResult)
        raise SourceLost(self.gone)

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
        logger = f" {escape_control(params.logger)}" if params.logger else ""
        self._heard(f"{params.level}{logger}: {escape_control(data[:_MAX_LOG_CHARS])}")

    async def _message(self, message: IncomingMessage) -> None:
        if self._is_old and isinstance(message, types.ResourceUpdatedNotification):
            self._heard(_format_update(message.params.uri))


def _level_request(level: str) -> types.SetLevelRequest:
    return types.SetLevelRequest(params=types.SetLevelRequestParams(level=cast("types.LoggingLevel", level)))


def _subscribe_request(uri: str) -> types.SubscribeRequest:
    return types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))


def _format_update(uri: object) -> str:
    return f"updated: {escape_control(str(uri))}"


@asynccontextmanager
async def _http_transport(wish: McpSubscription) -> AsyncGenerator[TransportStreams]:
    headers = {} if wish.token is None else {"Authorization": f"Bearer {wish.token}"}
    # A stream without events is no failure (no read timeout); each response has its own timeout.
    timeout = httpx2.Timeout(_REQUEST_TIMEOUT, read=None)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout) as http,
        streamable_http_client(wish.url, http_client=http) as streams,
    ):
        yield streams


def _error_text(error: BaseException) -> str:
    """Return the text of an error, without the exception groups around it."""
    found = error
    while isinstance(found, BaseExceptionGroup):
        found = cast("BaseExceptionGroup[BaseException]", found).exceptions[0]
    if isinstance(found, SourceLost):
        return str(found)
    return f"the connection failed: {escape_control(str(found))[:300] or type(found).__name__}"
