"""
Limits on requests and responses, around any ASGI application.

    body        within BODY_SECONDS plus the time its bytes take at SLOWEST bytes a second
    bodies      beyond the first FREE_BYTES of each, all bodies in memory share one budget, and a caller has half of it
    response    handed on in pieces, so that a client that does not read holds one piece and not the whole
    refusal     a response that begins before its request has ended closes the connection
    strangers   requests without a token take turns, so that any number of them leaves time for those with one;
                a pipelined one is answered, and the connection closed

A body that breaks a limit is refused with 408 or 503; the application sees a client that disconnected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskyard.serving.connections import Connection, Connections

BODY_SECONDS = 20.0

#: Bytes a second of a body that is still being sent and not cut off.
SLOWEST = 32 * 1024

#: A body up to this size is always taken: it is what calls have, and all places together hold a bounded number of them.
FREE_BYTES = 64 * 1024

#: Bytes of all larger bodies at once.
BUDGET = 32_000_000

PIECE = 64 * 1024

#: Seconds between two requests without a token while more of them wait.
STRANGER_PAUSE = 0.002

#: Who asks, by the headers of a request; None: they show no valid token.
Identify = Callable[[Headers], str | None]

_CLOSE = (b"connection", b"close")

_SAID: Final = {
    408: b'{"error":"timeout","message":"The body did not arrive in time."}',
    503: b'{"error":"busy","message":"Too many large requests at once. Try again."}',
}


class Bodies:
    """Bytes of request bodies in memory, by caller."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._total = 0
        self._by_caller: dict[str, int] = {}

    def take(self, caller: str, size: int) -> bool:
        """Count `size` bytes more; False: there is no room for them, for this caller or at all."""
        own = self._by_caller.get(caller, 0) + size
        if self._total + size > self._budget or own > self._budget // 2:
            return False
        self._total += size
        self._by_caller[caller] = own
        return True

    def give_back(self, caller: str, size: int) -> None:
        """Count `size` bytes less."""
        self._total -= size
        self._by_caller[caller] = self._by_caller.get(caller, 0) - size
        if not self._by_caller[caller]:
            del self._by_caller[caller]


class Bounded:
    """An application whose requests and responses are bounded."""

    def __init__(self, app: ASGIApp, connections: Connections, identify: Identify, *, largest_body: int) -> None:
        """`largest_body`: bytes of the largest body the application takes, which must fit for a caller."""
        self._app = app
        self._identify = identify
        self._turn = anyio.Lock()
        self.connections = connections
        self._bodies = Bodies(max(BUDGET, 2 * largest_body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer."""
        connection = self.connections.find(scope.get("client")) if scope["type"] == "http" else None
        if connection is None:
            await self._app(scope, receive, send)
            return
        came_alone = connection.begin()
        caller = self._identify(Headers(scope=scope))
        if caller is not None:
            connection.admit(caller)
        else:
            await self._take_turn()
        closes = caller is None and not came_alone
        exchange = _Exchange(connection, self._bodies, caller or "", scope, receive, send, closes=closes)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        finally:
            exchange.close()

    async def _take_turn(self) -> None:
        async with self._turn:
            if self._turn.statistics().tasks_waiting:
                await anyio.sleep(STRANGER_PAUSE)


class _Exchange:
    """One request and its response."""

    def __init__(
        self,
        connection: Connection,
        bodies: Bodies,
        caller: str,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        closes: bool,
    ) -> None:
        """`closes`: the connection, after the response."""
        self._connection = connection
        self._bodies = bodies
        self._caller = caller
        self._closes = closes
        self._receive = receive
        self._send = send
        self._deadline = anyio.current_time() + BODY_SECONDS
        self._has_more = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        self._size = 0
        self._charged = 0
        self._has_begun = False
        self._is_refused = False

    async def receive(self) -> Message:
        """The next part of the body, or that the client is gone."""
        if self._is_refused:
            return {"type": "http.disconnect"}
        if not self._has_more:
            return await self._receive()
        message: Message | None = None
        with anyio.move_on_at(self._deadline):
            message = await self._receive()
        if message is None:
            return await self._refuse(408)
        self._has_more = bool(message.get("more_body"))
        return message if self._has_room(len(message.get("body", b""))) else await self._refuse(503)

    async def send(self, message: Message) -> None:
        """Hand on a part of the response."""
        if self._is_refused:
            return
        if message["type"] == "http.response.start":
            self._has_begun = True
            self._connection.has_unread_body = self._has_more or self._closes
            if self._connection.has_unread_body:
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE]}
        body = message.get("body", b"")
        for start in range(0, len(body) - PIECE, PIECE):
            await self._send({**message, "body": body[start : start + PIECE], "more_body": True})
        if len(body) > PIECE:
            message = {**message, "body": body[(len(body) - 1) // PIECE * PIECE :]}
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._connection.end()

    def close(self) -> None:
        """Give back what the body took."""
        if self._charged:
            self._bodies.give_back(self._caller, self._charged)

    def _has_room(self, size: int) -> bool:
        charge = max(0, self._size + size - FREE_BYTES) - max(0, self._size - FREE_BYTES)
        self._size += size
        self._deadline += size / SLOWEST
        if charge and not self._bodies.take(self._caller, charge):
            return False
        if charge:
            self._charged += charge
        return True

    async def _refuse(self, status: int) -> Message:
        if not self._is_refused:
            self._is_refused = True
            if self._has_begun:
                self._connection.abort()
            else:
                await self._answer(status)
        return {"type": "http.disconnect"}

    async def _answer(self, status: int) -> None:
        self._connection.has_unread_body = True
        said = _SAID[status]
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(said)).encode()),
            (b"retry-after", b"5"),
            _CLOSE,
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": said})
