"""
An MCP server of our own: started, spoken to through its stdin and stdout, ended with its whole group.

Unlike the client's own transport it bounds how long a message may be, knows at once when the server is gone, and with
which exit code. What the server writes to stderr goes where ours goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from taskyard import children

#: Bytes of one message: no resource is read here, so that a longer one is no news.
LONGEST = 4_000_000


@asynccontextmanager
async def server(argv: Sequence[str], gone: Callable[[str], None]) -> AsyncGenerator[TransportStreams]:
    """A server, for the length of a `with` block; `gone` is told why it fell silent before that.

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=LONGEST,
    )
    said, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, process, said, gone)
            group.start_soon(_write, process, to_send)
            yield heard, outgoing
            group.cancel_scope.cancel()
    finally:
        for stream in (said, heard, outgoing, to_send):
            stream.close()
        with anyio.CancelScope(shield=True):  # every wait in it is bounded
            await children.end(process)


async def _read(
    process: asyncio.subprocess.Process,
    said: MemoryObjectSendStream[SessionMessage | Exception],
    gone: Callable[[str], None],
) -> None:
    assert process.stdout is not None
    async with said:
        try:
            while line := await process.stdout.readline():
                await said.send(_message(line))
        except ValueError:
            gone(f"its server sent a message of more than {LONGEST:,} bytes")
            return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody listens any more
        with anyio.move_on_after(children.GRACE):  # it closed its output, which is how most of them end
            await process.wait()
        gone(f"its server ended ({children.how_it_ended(process.returncode)})")


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(process: asyncio.subprocess.Process, to_send: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    async with to_send:
        async for message in to_send:
            process.stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            try:
                await process.stdin.drain()
            except ConnectionError:
                return  # the reader hears of its end
