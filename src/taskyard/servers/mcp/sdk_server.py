"""The SDK's server with Taskyard's additions: own methods, stdio handover, and the HTTP token.

`run_handed_over` continues a connection that `front` began: what was read is replayed, answers that were already sent
are dropped. A line that is not a message of the protocol is answered with an error (`ErrorReplyStream`), with the same
codes as over HTTP; the SDK would drop it, and the client would wait for an answer forever.
"""

from __future__ import annotations

import contextvars
import fcntl
import json
import os
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self, TextIO, TypeVar, cast

import anyio
from mcp.server.context import HandlerResult
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import BaseModel, ValidationError

from taskyard.core import files
from taskyard.core.values import as_object
from taskyard.servers.http.access import Token, check_token, ensure_token
from taskyard.servers.mcp.callers import Request
from taskyard.servers.mcp.front import Handover
from taskyard.servers.mcp.input_lines import Arrivals, InputLines

TOKEN_VARIABLE = "TASKYARD_MCP_TOKEN"  # noqa: S105  # the name of a variable


def find_token(home: str, file: str | None = None, env: MutableMapping[str, str] | None = None) -> Token:
    """Return the token: of `file`, else of the environment, else of `$TASKYARD_HOME`; a missing file is created.

    It is removed from the environment, so that no command run for a client has it.

    Raises:
        BadText: It is too short, or not valid in a header.
        StorageError: Other users can read its file, or it cannot be created.
    """
    given = pop_token(env)
    if file is not None:
        return ensure_token(os.path.realpath(file))
    if given is not None:
        return Token(check_token(given.strip(), TOKEN_VARIABLE), None)
    files.make_private_folder(home)
    return ensure_token(f"{home}/mcp-token")


def pop_token(env: MutableMapping[str, str] | None = None) -> str | None:
    """Remove and return the token of the environment; a server without HTTP may be started with it too."""
    return (os.environ if env is None else env).pop(TOKEN_VARIABLE, None)


class Closable(Protocol):
    """Anything that can be closed."""

    async def aclose(self) -> None:
        """Close it."""
        ...


class WrappedStream:
    """Base of the stream wrappers: a context manager that closes the wrapped stream."""

    def __init__(self, behind: Closable) -> None:
        self._behind = behind

    async def aclose(self) -> None:
        """Close the stream."""
        await self._behind.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@contextmanager
def claim_stdin(first: bytes) -> Generator[InputLines]:
    """Reserve standard input for the protocol, preceded by `first`: for all other readers it is empty from here on."""
    own = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield InputLines(first, own)
    finally:
        os.dup2(own, 0)  # `own` stays open: a thread may still read from it


class DedupWriteStream(WrappedStream):
    """The write stream, without answers that were sent before the handover."""

    def __init__(self, write: WriteStream[SessionMessage], handover: Handover, arrivals: Arrivals) -> None:
        super().__init__(write)
        self._write = write
        self._arrivals = arrivals
        self._answered = set(handover.answered)
        self._acknowledged = set(handover.acknowledged)

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message, unless it repeats an answer or acknowledgement that was already sent."""
        message = item.message
        if self._acknowledged and isinstance(message, JSONRPCNotification) and message.method == _ACKNOWLEDGED:
            meta = as_object((message.params or {}).get("_meta")) or {}
            listening = meta.get("io.modelcontextprotocol/subscriptionId")
            if isinstance(listening, (str, int)) and listening in self._acknowledged:
                self._acknowledged.discard(listening)
                return
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            if message.id in self._answered:
                self._answered.discard(message.id)
                return
            self._arrivals.answering()
        await self._write.send(item)


class ErrorReplyStream(WrappedStream):
    """The read stream, without unreadable lines: these are answered here."""

    def __init__(
        self, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage], arrivals: Arrivals
    ) -> None:
        """Wrap the streams. `read`: messages, one per line. `write`: where answers go."""
        super().__init__(read)
        self._arrivals = arrivals
        self._read = read
        self._write = write

    @property
    def last_context(self) -> contextvars.Context | None:
        """The context in which the last message was sent: the SDK continues in it."""
        return getattr(self._read, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        while isinstance(found := await self._read.receive(), Exception):
            self._arrivals.received(None)
            if (answer := parse_error_reply(found)) is not None:
                await self._write.send(SessionMessage(answer))
        self._arrivals.received(found.message.id if isinstance(found.message, JSONRPCRequest) else None)
        return found

    def __aiter__(self) -> ErrorReplyStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def parse_error_reply(error: Exception) -> JSONRPCError | None:
    """Return the error for a line that cannot be read; None for an empty one."""
    first = error.errors(include_url=False)[0] if isinstance(error, ValidationError) else None
    given: object = first["input"] if first is not None else None
    if isinstance(given, str) and not given.strip():
        return None
    if first is None or first["type"] == "json_invalid":
        why = "This is no JSON in UTF-8 (a surrogate alone, such as \\ud800, is no character). Nothing was done."
        fault = ErrorData(code=PARSE_ERROR, message=why)
    else:
        why = "This is JSON, but no message of JSON-RPC 2.0: jsonrpc, id, method, params. Nothing was done."
        fault = ErrorData(code=INVALID_REQUEST, message=why)
    return JSONRPCError(jsonrpc="2.0", id=_request_id(given), error=fault)


def _request_id(given: object) -> str | int | None:
    """Return the id of the request it was meant to be, if recognisable. The id of a response does not count."""
    if isinstance(given, str):
        try:
            given = json.loads(given)  # accepts more than the protocol does
        except (ValueError, RecursionError):
            return None
    found = as_object(given) or {}
    wanted = found.get("id") if "method" in found else None
    if isinstance(wanted, str):
        return wanted if wanted.isprintable() else None
    return wanted if isinstance(wanted, int) and not isinstance(wanted, bool) else None


P = TypeVar("P", bound=BaseModel)


class YardServer(MCPServer[dict[str, object]]):
    """The MCP server of a yard."""

    def serve(self, method: str, takes: type[P], act: Callable[[Request, P], Awaitable[HandlerResult]]) -> None:
        """Handle `method` with `act` instead of the SDK's handler."""
        self._lowlevel_server.add_request_handler(method, takes, act)

    async def run_stdio_async(self) -> None:
        """Serve over stdin and stdout; unreadable lines are answered too."""
        await self.run_handed_over(Handover(b"", frozenset()))

    async def run_handed_over(
        self, handover: Handover, *, tell_arrivals: Callable[[Arrivals], None] = lambda _: None
    ) -> None:
        """Serve over stdin and stdout, continuing where `front` stopped.

        `tell_arrivals` gets the object that detects requests sent after the last answer.
        """
        with claim_stdin(handover.first) as stdin:
            arrivals = Arrivals(stdin)
            tell_arrivals(arrivals)
            lines = anyio.wrap_file(cast("TextIO", stdin))  # the SDK reads lines from it, and nothing else
            async with stdio_server(lines) as (read, write):
                options = self._lowlevel_server.create_initialization_options()
                unsaid = DedupWriteStream(write, handover, arrivals)
                await self._lowlevel_server.run(ErrorReplyStream(read, unsaid, arrivals), unsaid, options)
