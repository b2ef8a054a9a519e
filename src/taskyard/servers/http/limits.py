"""Limits that uvicorn's options lack: timeouts and number of connections, sizes of bodies.

`Connection` stands between the event loop and uvicorn's own protocol and uses only asyncio's public protocol
interface in both directions. Limits on connections:

    header      a whole request header within HEADER_SECONDS, from connect or from the end of the previous response
    write       a client that leaves a full write buffer untouched for WRITE_SECONDS is disconnected
    close       a closing connection is gone within CLOSE_SECONDS, whether or not the client reads
    read        READ_BYTES per turn of the event loop, so pipelined requests cannot pile up in memory
    places      connection slots: when all are in use, the oldest connection without a token is closed, of the address
                that has most

A connection that authenticates (`admit`) keeps its place. Admitted connections use at most three quarters of all
places, and one caller at most its share; beyond that a connection is served as before but may be evicted.

`LimitMiddleware` wraps any ASGI application. Limits on requests and responses:

    body        within BODY_SECONDS plus the time its bytes take at MIN_BODY_RATE bytes per second
    bodies      beyond the first FREE_BYTES of each, all bodies in memory share one budget; a caller has half of it
    response    sent in chunks, so that a client that does not read occupies one chunk and not the whole
    early end   a response that begins before its request has ended closes the connection
    anonymous   requests without a token take turns, so that any number of them leaves time for those with one;
                a pipelined one is answered, and the connection closed

A body that exceeds a limit is refused with 408 or 503; the application sees a client that disconnected.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from uvicorn import Config
    from uvicorn.server import ServerState


HEADER_SECONDS = 10.0
WRITE_SECONDS = 20.0
CLOSE_SECONDS = 5.0

#: Bytes read per connection and event loop turn. asyncio's own 256 kB times 600 connections would be 150 MB.
READ_BYTES = 16 * 1024

#: Bytes waiting to be sent at which a response pauses.
WRITE_BYTES = 64 * 1024

#: Share of all places that admitted connections may use.
ADMITTED_SHARE = 0.75

#: Prefix length of an IPv6 network: one customer has all addresses of at least one.
_IPV6_NETWORK = 64

Peer = tuple[str, int]

_log = logging.getLogger("taskyard.servers.http")

#: Shared read buffer of all connections; its content is passed on before the next one reads.
_buffer = bytearray(READ_BYTES)


class Connections:
    """The connections of one server, `places` at most."""

    def __init__(self, places: int, *, share: float = ADMITTED_SHARE) -> None:
        """Allow one caller the `share` of all places."""
        self.places = places
        self.is_ending = False
        self._most_admitted = max(1, int(places * ADMITTED_SHARE))
        self._most_per_caller = max(1, int(places * min(share, ADMITTED_SHARE)))
        self._by_peer: dict[Peer, Connection] = {}
        self._anonymous: dict[str, dict[Connection, None]] = {}  # by network, oldest first
        self._anonymous_count = 0
        self._admitted: dict[str, set[Connection]] = {}
        self._admitted_count = 0

    def __len__(self) -> int:
        return self._anonymous_count + self._admitted_count

    def find(self, client: Sequence[Any] | None) -> Connection | None:
        """Return the connection of `client`, as in a request's scope."""
        return self._by_peer.get((str(client[0]), int(client[1]))) if client else None

    def add(self, connection: Connection) -> None:
        """Add a new connection; with no place left, evict another."""
        if len(self) >= self.places:
            self._evict()
        self._by_peer[connection.peer] = connection
        self._anonymous.setdefault(connection.network, {})[connection] = None
        self._anonymous_count += 1

    def admit(self, connection: Connection, caller: str) -> None:
        """Protect the place of a connection on which `caller` has authenticated, within its share."""
        own = self._admitted.get(caller, ())
        has_room = self._admitted_count < self._most_admitted and len(own) < self._most_per_caller
        if connection.caller == caller or not has_room or connection not in self._anonymous.get(connection.network, ()):
            return
        self._leave(connection)
        connection.caller = caller
        self._admitted.setdefault(caller, set()).add(connection)
        self._admitted_count += 1

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection."""
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]
        self._leave(connection)

    def end(self) -> None:
        """Close connections without draining unread bodies from now on."""
        self.is_ending = True

    def _leave(self, connection: Connection) -> None:
        own = self._anonymous.get(connection.network, {})
        if connection in own:
            del own[connection]
            self._anonymous_count -= 1
            if not own:
                del self._anonymous[connection.network]
        kept = self._admitted.get(connection.caller or "", set())
        if connection in kept:
            kept.remove(connection)
            self._admitted_count -= 1
            if not kept:
                del self._admitted[connection.caller or ""]

    def _evict(self) -> None:
        if not self._anonymous:
            return  # impossible while ADMITTED_SHARE is below one
        most = max(self._anonymous.values(), key=len)
        oldest = next(iter(most))
        _log.debug("No place left: %s:%d is closed for a new connection.", *oldest.peer)
        self._leave(oldest)
        oldest.abort()


class HasConnections(Protocol):
    """The application in our `uvicorn.Config`."""

    connections: Connections


class Connection(asyncio.BufferedProtocol):
    """One connection, between the event loop and uvicorn's protocol."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.peer: Peer = ("", 0)
        self.network = ""
        self.caller: str | None = None
        self.has_unread_body = False  #: the response begins before the request has ended
        self._connections = cast("HasConnections", config.app).connections
        self._http = H11Protocol(config=config, server_state=server_state, app_state=app_state, _loop=_loop)
        self._loop = _loop or asyncio.get_running_loop()
        self._is_closing = False
        self._has_news = False  # bytes arrived since the last header
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, and start the header timeout."""
        self._transport = cast("asyncio.Transport", transport)
        found = transport.get_extra_info("peername")
        if not found:  # the client has disconnected already
            self._transport.abort()
            return
        self.peer = (str(found[0]), int(found[1]))
        self.network = _network(self.peer[0])
        self._transport.set_write_buffer_limits(high=WRITE_BYTES)
        self._connections.add(self)
        self._start("header", HEADER_SECONDS)
        self._http.connection_made(_TransportProxy(self._transport, self.close))

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the place."""
        self._is_closing = True
        for name in list(self._timers):
            self._stop(name)
        if self.peer[1]:
            self._connections.remove(self)
            self._http.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return the shared read buffer."""
        return _buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on the received bytes; after the last response they are dropped."""
        self._has_news = True
        if not self._is_closing:
            self._http.data_received(bytes(memoryview(_buffer)[:nbytes]))

    def eof_received(self) -> None:
        """Let the transport close, within CLOSE_SECONDS."""
        self._http.eof_received()
        self._start("close", CLOSE_SECONDS)

    def pause_writing(self) -> None:
        """Start the write timeout: the client must read within WRITE_SECONDS."""
        self._start("write", WRITE_SECONDS)
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Stop the write timeout."""
        self._stop("write")
        self._http.resume_writing()

    def begin(self) -> bool:
        """Record a complete header; return False if it was pipelined, without waiting for the previous response."""
        self._stop("header")
        came_alone, self._has_news = self._has_news, False
        return came_alone

    def end(self) -> None:
        """Record a sent response, and wait for the next header."""
        if not self._is_closing:
            self._start("header", HEADER_SECONDS)

    def admit(self, caller: str) -> None:
        """Record that `caller` has authenticated."""
        self._connections.admit(self, caller)

    def close(self) -> None:
        """Close it once all output is sent; first read an unread body, because its sender would get a reset."""
        if self._is_closing:
            return
        self._is_closing = True
        self._stop("header")
        self._start("close", CLOSE_SECONDS)
        if self.has_unread_body and not self._connections.is_ending:
            self._transport.write_eof()
            self._transport.resume_reading()
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close it now."""
        self._transport.abort()

    def _start(self, name: str, seconds: float) -> None:
        self._stop(name)
        self._timers[name] = self._loop.call_later(seconds, self.abort)

    def _stop(self, name: str) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()


class _TransportProxy(asyncio.Transport):
    """A connection's transport as uvicorn sees it: `close` is ours."""

    def __init__(self, transport: asyncio.Transport, close: Any) -> None:
        super().__init__()
        self._transport = transport
        self._close = close
        self._is_closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._is_closing or self._transport.is_closing()

    def close(self) -> None:
        self._is_closing = True
        self._close()

    def abort(self) -> None:
        self._is_closing = True
        self._transport.abort()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_closing:
            self._transport.write(data)

    def pause_reading(self) -> None:
        if not self._is_closing:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._is_closing:
            self._transport.resume_reading()


def _network(host: str) -> str:
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.version == 4:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))


BODY_SECONDS = 20.0

#: Minimum bytes per second of a body; a slower one times out.
MIN_BODY_RATE = 32 * 1024

#: Bytes of a body that is always accepted: usual calls have no more, and the places bound their number.
FREE_BYTES = 64 * 1024

#: Bytes of all larger bodies together.
BODY_BUDGET = 32_000_000

CHUNK_BYTES = 64 * 1024

#: Seconds between two requests without a token while more of them wait.
ANONYMOUS_PAUSE = 0.002

#: Returns the caller by the headers of a request; None without a valid token.
Identify = Callable[[Headers], str | None]

_CLOSE_HEADER = (b"connection", b"close")

_ERROR_BODIES: Final = {
    408: b'{"error":"timeout","message":"The body did not arrive in time."}',
    503: b'{"error":"busy","message":"Too many large requests at once. Try again."}',
}


class BodyBudget:
    """Counts the bytes of request bodies in memory, by caller."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._total = 0
        self._by_caller: dict[str, int] = {}

    def take(self, caller: str, size: int) -> bool:
        """Reserve `size` bytes; False if the budget of this caller or of all is exhausted."""
        own = self._by_caller.get(caller, 0) + size
        if self._total + size > self._budget or own > self._budget // 2:
            return False
        self._total += size
        self._by_caller[caller] = own
        return True

    def give_back(self, caller: str, size: int) -> None:
        """Release `size` bytes."""
        self._total -= size
        self._by_caller[caller] = self._by_caller.get(caller, 0) - size
        if not self._by_caller[caller]:
            del self._by_caller[caller]


class LimitMiddleware:
    """An ASGI application whose requests and responses are bounded."""

    def __init__(self, app: ASGIApp, connections: Connections, identify: Identify, *, largest_body: int) -> None:
        """Wrap `app`; a caller's budget always fits its `largest_body`, in bytes."""
        self._app = app
        self._identify = identify
        self._turn = anyio.Lock()
        self.connections = connections
        self._body_budget = BodyBudget(max(BODY_BUDGET, 2 * largest_body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request within the limits."""
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
        exchange = _LimitedExchange(connection, self._body_budget, caller or "", scope, receive, send, closes=closes)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        finally:
            exchange.close()

    async def _take_turn(self) -> None:
        async with self._turn:
            if self._turn.statistics().tasks_waiting:
                await anyio.sleep(ANONYMOUS_PAUSE)


class _LimitedExchange:
    """One request and its response."""

    def __init__(
        self,
        connection: Connection,
        bodies: BodyBudget,
        caller: str,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        closes: bool,
    ) -> None:
        """Close the connection after the response if `closes`."""
        self._connection = connection
        self._body_budget = bodies
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
        """Return the next part of the body, or the disconnect of the client."""
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
        """Send a part of the response, in chunks."""
        if self._is_refused:
            return
        if message["type"] == "http.response.start":
            self._has_begun = True
            self._connection.has_unread_body = self._has_more or self._closes
            if self._connection.has_unread_body:
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE_HEADER]}
        body = message.get("body", b"")
        for start in range(0, len(body) - CHUNK_BYTES, CHUNK_BYTES):
            await self._send({**message, "body": body[start : start + CHUNK_BYTES], "more_body": True})
        if len(body) > CHUNK_BYTES:
            message = {**message, "body": body[(len(body) - 1) // CHUNK_BYTES * CHUNK_BYTES :]}
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._connection.end()

    def close(self) -> None:
        """Release the budget of the body."""
        if self._charged:
            self._body_budget.give_back(self._caller, self._charged)

    def _has_room(self, size: int) -> bool:
        charge = max(0, self._size + size - FREE_BYTES) - max(0, self._size - FREE_BYTES)
        self._size += size
        self._deadline += size / MIN_BODY_RATE
        if charge and not self._body_budget.take(self._caller, charge):
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
        said = _ERROR_BODIES[status]
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(said)).encode()),
            (b"retry-after", b"5"),
            _CLOSE_HEADER,
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": said})
