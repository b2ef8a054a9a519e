"""Limits on connections: deadlines, places, pipelining, bodies in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from starlette.datastructures import Headers
from uvicorn.server import ServerState

from taskyard.servers.http import limits
from taskyard.servers.http.limits import Connection, Connections, LimitMiddleware
from taskyard.servers.http.server import uvicorn_config

Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Server(NamedTuple):
    """One that listens."""

    port: int
    state: ServerState
    table: Connections
    opened: list[Opened]

    async def connect(self, said: bytes = b"") -> Opened:
        opened = await asyncio.open_connection("127.0.0.1", self.port)
        self.opened.append(opened)
        opened[1].write(said)
        return opened


def asks(path: str = "/", *, caller: str = "", body: int = 0, method: str = "GET") -> bytes:
    more = (f"Authorization: {caller}\r\n" if caller else "") + (f"Content-Length: {body}\r\n" if body else "")
    return f"{'POST' if body else method} {path} HTTP/1.1\r\nHost: here\r\n{more}\r\n".encode()


async def answers(scope: Any, receive: Any, send: Any) -> None:
    """Takes a body, unless for `/no-body`, and answers; `/stream` does not end, `/large` is more than sockets hold."""
    if scope["path"] != "/no-body":
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.disconnect":
            return
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


def _caller(headers: Headers) -> str | None:
    return headers.get("authorization")


def with_server(body: Callable[[Server], Awaitable[None]], *, places: int = 10, share: float = 0.75) -> None:
    async def run() -> None:
        table = Connections(places, share=share)
        served = uvicorn_config(LimitMiddleware(answers, table, _caller, largest_body=1), has_lifespan=False)
        served.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(config=served, server_state=state, app_state={}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(30), server:
            here = Server(port, state, table, [])
            await body(here)
            for _, writer in here.opened:
                writer.transport.abort()
                with suppress(ConnectionError):
                    await writer.wait_closed()
            await asyncio.gather(*state.tasks)
            await becomes(lambda: not len(table) and not state.connections)

    asyncio.run(run())


async def status(opened: Opened) -> bytes:
    return (await opened[0].readline()).split(b" ")[1]


async def is_cut(opened: Opened) -> bool:
    try:
        return await opened[0].read() == b""
    except ConnectionResetError:
        return True


async def becomes(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110  # nothing signals it
        await asyncio.sleep(0.01)


def test_the_oldest_connection_without_a_token_makes_way_for_a_new_one() -> None:
    async def body(server: Server) -> None:
        stream = await server.connect(asks("/stream", caller="ada"))
        assert await status(stream) == b"200"
        silent = [await server.connect() for _ in range(20)]
        silent[-1][1].write(asks()[:20])
        for _ in range(10):
            assert await status(await server.connect(asks(caller="ada"))) == b"200"
        assert all([await is_cut(each) for each in silent[:10]])
        assert not stream[0].at_eof()
        assert len(server.table) <= 10

    with_server(body)


def test_a_stranger_in_the_middle_of_an_answer_makes_way_too() -> None:
    async def body(server: Server) -> None:
        unread = [await server.connect(asks("/large")) for _ in range(10)]
        await becomes(lambda: len(server.state.tasks) == 10)
        for _ in range(10):
            assert await status(await server.connect(asks(caller="ada"))) == b"200"
        assert len(unread) == 10

    with_server(body)


def test_one_caller_keeps_its_share_of_places_and_no_more() -> None:
    async def body(server: Server) -> None:
        greedy = [await server.connect(asks("/stream", caller="bob")) for _ in range(10)]
        for each in greedy:
            assert await status(each) == b"200"
        other = await server.connect(asks("/stream", caller="ada"))
        assert await status(other) == b"200"
        for _ in range(20):
            assert await status(await server.connect(asks(caller="eve"))) == b"200"
        reads = [asyncio.ensure_future(is_cut(each)) for each in greedy]
        await becomes(lambda: sum(each.done() for each in reads) == 7)
        assert not other[0].at_eof()
        for read in reads:
            read.cancel()

    with_server(body, share=0.3)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(asks()[:-2], id="half a header"),
        pytest.param(asks(caller="ada")[:-2], id="half a header with a token"),
    ],
)
def test_a_header_that_does_not_end_is_cut_and_a_stream_is_not(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.3)

    async def body(server: Server) -> None:
        stream, silent = await server.connect(asks("/stream", caller="ada")), await server.connect(said)
        assert await is_cut(silent)
        assert await status(stream) == b"200"
        assert not stream[0].at_eof()

    with_server(body)


def test_half_a_header_after_a_whole_request_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.3)

    async def body(server: Server) -> None:
        opened = await server.connect(asks())
        assert await status(opened) == b"200"
        opened[1].write(asks()[:20])
        with suppress(ConnectionResetError):
            await opened[0].read()

    with_server(body)


def test_a_body_that_does_not_end_is_answered_with_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)

    async def body(server: Server) -> None:
        opened = await server.connect(asks(caller="ada", body=9) + b"half")
        assert await status(opened) == b"408"
        assert b"did not arrive" in await opened[0].read()

    with_server(body)


def test_an_answer_that_is_not_taken_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WRITE_SECONDS", 0.3)

    async def body(server: Server) -> None:
        silent = await server.connect(asks("/large", caller="ada"))
        silent[0]._transport.pause_reading()  # type: ignore[attr-defined]
        await becomes(lambda: len(server.table) == 1)
        await becomes(lambda: not len(server.table))

    with_server(body)


def test_an_answer_before_the_body_ends_reaches_who_goes_on_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(server: Server) -> None:
        opened = await server.connect(asks("/no-body", body=4_000_000) + b"x" * 3_999_999)
        assert await status(opened) == b"200"
        rest = await opened[0].read()
        assert b"connection: close" in rest.lower()
        opened[1].close()

    with_server(body)


def test_a_connection_that_is_to_close_is_gone_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLOSE_SECONDS", 0.3)

    async def body(server: Server) -> None:
        await server.connect(asks("/no-body", body=9))
        await becomes(lambda: len(server.table) == 1)
        await becomes(lambda: not len(server.table))

    with_server(body)


def test_pipelined_requests_of_a_stranger_are_answered_twice_and_those_of_a_caller_all() -> None:
    async def body(server: Server) -> None:
        stranger = await server.connect(asks() * 50)
        assert (await stranger[0].read()).count(b"HTTP/1.1 200") == 2
        last = asks(caller="ada").replace(b"Host", b"Connection: close\r\nHost")
        caller = await server.connect(asks(caller="ada") * 49 + last)
        assert (await caller[0].read()).count(b"HTTP/1.1 200") == 50

    with_server(body)


def test_large_bodies_share_a_budget_of_which_a_caller_has_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_BUDGET", 1_000_000)
    half, large = b"x" * 399_999, 400_000

    async def body(server: Server) -> None:
        first = await server.connect(asks(caller="bob", body=large) + half)
        second = await server.connect(asks(caller="bob", body=large) + half)
        refused, _ = await asyncio.wait(
            [asyncio.ensure_future(status(first)), asyncio.ensure_future(status(second))],
            return_when=asyncio.FIRST_COMPLETED,
        )
        assert [each.result() for each in refused] == [b"503"]
        small = await server.connect(asks(caller="bob", body=5) + b"small")
        assert await status(small) == b"200"
        other = await server.connect(asks(caller="ada", body=large) + half + b"x")
        assert await status(other) == b"200"
        for opened in (first, second):
            opened[1].transport.abort()
        await becomes(lambda: len(server.table) == 2)
        again = await server.connect(asks(caller="bob", body=large) + half + b"x")
        assert await status(again) == b"200"

    with_server(body)
