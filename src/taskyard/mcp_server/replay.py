"""The connection that `front` began, as the SDK continues it: replays what was read, drops what was answered."""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Generator
from contextlib import contextmanager

from mcp.shared._stream_protocols import WriteStream  # it has no public name
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from taskyard.mcp_server.front import Handover
from taskyard.mcp_server.wrapped_stream import WrappedStream
from taskyard.shapes import as_object

_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Replayed(io.RawIOBase):
    """A pipe of which the beginning has been read already."""

    def __init__(self, first: bytes, descriptor: int) -> None:
        self._first = memoryview(first)
        self._descriptor = descriptor

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        """The next bytes; 0 at the end."""
        if self._first:
            count = min(len(buffer), len(self._first))
            buffer[:count] = self._first[:count]
            self._first = self._first[count:]
            return count
        return os.readv(self._descriptor, [buffer])


@contextmanager
def claimed_stdin(first: bytes) -> Generator[io.TextIOWrapper]:
    """Standard input as the protocol's alone, `first` before it: for all others it is empty from here on."""
    own = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield io.TextIOWrapper(io.BufferedReader(Replayed(first, own)), encoding="utf-8", errors="replace")
    finally:
        os.dup2(own, 0)  # `own` stays open: a thread may still read from it


class Unsaid(WrappedStream):
    """Where answers go, but for those that were sent before."""

    def __init__(self, write: WriteStream[SessionMessage], handover: Handover) -> None:
        super().__init__(write)
        self._write = write
        self._answered = set(handover.answered)
        self._acknowledged = set(handover.acknowledged)

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message, unless it answers what is answered, or acknowledges what is acknowledged."""
        message = item.message
        if self._acknowledged and isinstance(message, JSONRPCNotification) and message.method == _ACKNOWLEDGED:
            meta = as_object((message.params or {}).get("_meta")) or {}
            listening = meta.get("io.modelcontextprotocol/subscriptionId")
            if isinstance(listening, (str, int)) and listening in self._acknowledged:
                self._acknowledged.discard(listening)
                return
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id in self._answered:
            self._answered.discard(message.id)
            return
        await self._write.send(item)
