"""
Limits on connections that uvicorn's options lack: deadlines for header, write and close, and bounded places.

    header      a whole request header within HEADER_SECONDS, from connect or from the end of the previous response
    write       a client that leaves a full write buffer untouched for WRITE_SECONDS is cut
    close       a connection that is to close is gone within CLOSE_SECONDS, whether or not the client reads
    read        READ_BYTES per turn of the event loop, so pipelined requests cannot pile up in memory
    places      when all are taken, the oldest connection without a token is closed, of the address that has most

A connection that shows a token (`admit`) keeps its place. Admitted connections hold at most three quarters of all
places, and one caller at most its share; beyond that a connection is served as before but may be closed for another.

`Connection` stands between the event loop and uvicorn's own protocol and speaks only asyncio's public protocol
interface in both directions. The limits on bodies are in `bounds`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from typing import TYPE_CHECKING, Any, Protocol, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uvicorn import Config
    from uvicorn.server import ServerState

HEADER_SECONDS = 10.0
WRITE_SECONDS = 20.0
CLOSE_SECONDS = 5.0

#: Bytes read per connection and turn. asyncio's own 256 kB times 600 connections would be 150 MB.
READ_BYTES = 16 * 1024

#: Bytes that wait to be sent before a response pauses.
WRITE_BYTES = 64 * 1024

#: The part of all places that admitted connections may hold.
ADMITTED_SHARE = 0.75

#: Bits of an IPv6 address that name a network: one customer has all addresses of at least one.
_IPV6_NETWORK = 64

Peer = tuple[str, int]

_log = logging.getLogger("taskyard.serving")

#: What every connection reads into; its content is handed on before the next one reads.
_buffer = bytearray(READ_BYTES)


class Connections:
    """The connections of one server, `places` at most."""

    def __init__(self, places: int, *, share: float = ADMITTED_SHARE) -> None:
        """`share`: the part of all places that one caller may keep."""
        self.places = places
        self.is_ending = False
        self._most_admitted = max(1, int(places * ADMITTED_SHARE))
        self._most_per_caller = max(1, int(places * min(share, ADMITTED_SHARE)))
        self._by_peer: dict[Peer, Connection] = {}
        self._strangers: dict[str, dict[Connection, None]] = {}  # by network, oldest first
        self._stranger_count = 0
        self._admitted: dict[str, set[Connection]] = {}
        self._admitted_count = 0

    def __len__(self) -> int:
        return self._stranger_count + self._admitted_count

    def find(self, client: Sequence[Any] | None) -> Connection | None:
        """The connection of `client`, as a request's scope names it."""
        return self._by_peer.get((str(client[0]), int(client[1]))) if client else None

    def add(self, connection: Connection) -> None:
        """Take in a new connection; with no place left, abort another."""
        if len(self) >= self.places:
            self._evict()
        self._by_peer[connection.peer] = connection
        self._strangers.setdefault(connection.network, {})[connection] = None
        self._stranger_count += 1

    def admit(self, connection: Connection, caller: str) -> None:
        """Keep the place of a connection on which `caller` has authenticated, within its share."""
        own = self._admitted.get(caller, ())
        has_room = self._admitted_count < self._most_admitted and len(own) < self._most_per_caller
        if connection.caller == caller or not has_room or connection not in self._strangers.get(connection.network, ()):
            return
        self._leave(connection)
        connection.caller = caller
        self._admitted.setdefault(caller, set()).add(connection)
        self._admitted_count += 1

    def remove(self, connection: Connection) -> None:
        """Forget a closed connection."""
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]
        self._leave(connection)

    def end(self) -> None:
        """Let closing connections go at once from now on."""
        self.is_ending = True

    def _leave(self, connection: Connection) -> None:
        own = self._strangers.get(connection.network, {})
        if connection in own:
            del own[connection]
            self._stranger_count -= 1
            if not own:
                del self._strangers[connection.network]
        kept = self._admitted.get(connection.caller or "", set())
        if connection in kept:
            kept.remove(connection)
            self._admitted_count -= 1
            if not kept:
                del self._admitted[connection.caller or ""]

    def _evict(self) -> None:
        if not self._strangers:
            return  # not with ADMITTED_SHARE below one
        most = max(self._strangers.values(), key=len)
        oldest = next(iter(most))
        _log.debug("No place left: %s:%d is closed for a new connection.", *oldest.peer)
        self._leave(oldest)
        oldest.abort()


class HasConnections(Protocol):
    """The application that a `uvicorn.Config` of ours has."""

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
        self._has_news = False  # bytes came since the last header
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, and wait for a header."""
        self._transport = cast("asyncio.Transport", transport)
        found = transport.get_extra_info("peername")
        if not found:  # it is gone already
            self._transport.abort()
            return
        self.peer = (str(found[0]), int(found[1]))
        self.network = _network(self.peer[0])
        self._transport.set_write_buffer_limits(high=WRITE_BYTES)
        self._connections.add(self)
        self._start("header", HEADER_SECONDS)
        self._http.connection_made(_Outlet(self._transport, self.close))

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._is_closing = True
        for name in list(self._timers):
            self._stop(name)
        if self.peer[1]:
            self._connections.remove(self)
            self._http.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Where to read into."""
        return _buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Hand on what came; after the last response it is dropped."""
        self._has_news = True
        if not self._is_closing:
            self._http.data_received(bytes(memoryview(_buffer)[:nbytes]))

    def eof_received(self) -> None:
        """Let the transport close, within CLOSE_SECONDS."""
        self._http.eof_received()
        self._start("close", CLOSE_SECONDS)

    def pause_writing(self) -> None:
        """The client must make room within WRITE_SECONDS."""
        self._start("write", WRITE_SECONDS)
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """It has."""
        self._stop("write")
        self._http.resume_writing()

    def begin(self) -> bool:
        """A whole header has come; False: together with the one before it, without waiting for that one's response."""
        self._stop("header")
        came_alone, self._has_news = self._has_news, False
        return came_alone

    def end(self) -> None:
        """A response was sent: wait for the next header."""
        if not self._is_closing:
            self._start("header", HEADER_SECONDS)

    def admit(self, caller: str) -> None:
        """`caller` has authenticated."""
        self._connections.admit(self, caller)

    def close(self) -> None:
        """Close it once what was written is sent; first take in an unread body, whose sender would else see a reset."""
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


class _Outlet(asyncio.Transport):
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
