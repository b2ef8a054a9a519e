"""Connections: who holds one and asks for nothing keeps nobody out, and not for long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from uvicorn.server import ServerState

from taskyard.serving import connections
from taskyard.serving.server import config

Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Server(NamedTuple):
    """One that listens."""

    port: int
    state: ServerState
    opened: list[Opened]

    async def connect(self) -> Opened:
        self.opened.append(await asyncio.open_connection("127.0.0.1", self.port))
        return self.opened[-1]


ASKS = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def answers(scope: Any, receive: Any, send: Any) -> None:
    """Takes a body, answers; `/stream` does not come to an end, and `/large` is more than fits on the way."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/large":
        await send({"type": "http.response.body", "body": b"x" * 50_000_000})
        return
    await send({"type": "http.response.body", "body": b"here", "more_body": True})
    if scope["path"] == "/stream":
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    await send({"type": "http.response.body", "body": b""})


def with_server(body: Callable[[Server], Awaitable[None]], *, room: int = 10) -> None:
    async def run() -> None:
        served = config(answers, connections=room)
        served.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: connections.Connection(config=served, server_state=state, app_state={}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(30), server:
            here = Server(port, state, [])
            await body(here)
            for _, writer in here.opened:
                writer.transport.abort()
                with suppress(ConnectionError):
                    await writer.wait_closed()
            await asyncio.gather(*state.tasks)

    asyncio.run(run())


async def status(opened: Opened) -> bytes:
    opened[1].write(ASKS)
    return (await opened[0].readline()).split(b" ")[1]


async def is_cut(opened: Opened) -> bool:
    try:
        return await opened[0].read() == b""
    except ConnectionResetError:
        return True


async def becomes(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0.01)


def test_who_only_connects_makes_room_for_those_who_ask() -> None:
    async def body(server: Server) -> None:
        stream = await server.connect()
        stream[1].write(ASKS.replace(b"/ ", b"/stream ", 1))
        assert b"200" in await stream[0].readline()
        silent = [await server.connect() for _ in range(20)]
        silent[-1][1].write(ASKS[:20])
        for _ in range(10):
            assert await status(await server.connect()) == b"200"
        assert all([await is_cut(each) for each in silent[:10]])
        assert not stream[0].at_eof()

    with_server(body)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(ASKS[:-2], id="half a request"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf", id="half a body"),
    ],
)
def test_who_does_not_go_on_is_cut_off_and_who_listens_is_not(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.2)

    async def body(server: Server) -> None:
        stream, silent = await server.connect(), await server.connect()
        stream[1].write(ASKS.replace(b"/ ", b"/stream ", 1))
        silent[1].write(said)
        assert await is_cut(silent)
        assert not stream[0].at_eof()

    with_server(body)


def test_who_does_not_take_an_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.2)

    async def body(server: Server) -> None:
        silent = await server.connect()
        silent[1].write(ASKS.replace(b"/ ", b"/large ", 1).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        silent[0]._transport.pause_reading()  # type: ignore[attr-defined]
        await becomes(lambda: server.state.total_requests == 1)
        await becomes(lambda: not server.state.connections)

    with_server(body)
