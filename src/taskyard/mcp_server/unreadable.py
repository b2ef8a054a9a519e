"""
Lines over stdio that are no message of the protocol: answered, so that nobody waits for an answer in vain.

The SDK hands such a line on as an exception, and its server drops it; over HTTP it is answered with the same codes.
"""

from __future__ import annotations

import contextvars
import json

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream  # they have no public name
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from taskyard.mcp_server.wrapped_stream import WrappedStream
from taskyard.shapes import as_object


class Answering(WrappedStream):
    """What comes in, without what cannot be read: that is answered here."""

    def __init__(self, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]) -> None:
        """`read`: what comes in. `write`: where answers go."""
        super().__init__(read)
        self._read = read
        self._write = write

    @property
    def last_context(self) -> contextvars.Context | None:
        """In which context the last message was sent: the SDK goes on in it."""
        return getattr(self._read, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        while isinstance(found := await self._read.receive(), Exception):
            if (answer := answer_to(found)) is not None:
                await self._write.send(SessionMessage(answer))
        return found

    def __aiter__(self) -> Answering:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def answer_to(error: Exception) -> JSONRPCError | None:
    """What is said about a line that cannot be read; nothing about an empty one."""
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
    """The id of the request that it was meant to be, if it can be made out. An answer's id is none of ours."""
    if isinstance(given, str):
        try:
            given = json.loads(given)  # reads more than the protocol does
        except (ValueError, RecursionError):
            return None
    found = as_object(given) or {}
    wanted = found.get("id") if "method" in found else None
    if isinstance(wanted, str):
        return wanted if wanted.isprintable() else None
    return wanted if isinstance(wanted, int) and not isinstance(wanted, bool) else None
