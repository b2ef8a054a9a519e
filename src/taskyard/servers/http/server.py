"""Startup and shutdown of all our HTTP servers: addresses, requests in progress, signals.

An address is `8765`, `127.0.0.1:8765` or `[::1]:8765`; port 0 is any free one. A server listens beyond this
machine only with explicit permission.

On SIGTERM or SIGINT it accepts no new connections, gives calls in progress a grace period, closes streams, then
everything. A second signal skips the waiting. A blocked event loop cannot prevent the exit: after EXIT_DEADLINE
seconds, or at a second signal that the loop does not process, the process exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import faulthandler
import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import FrameType
from typing import Any, NamedTuple, cast

import anyio
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskyard.errors import BadValue, CannotListen, UsageError
from taskyard.servers.http.limits import ADMITTED_SHARE, Connection, Connections, Identify, LimitMiddleware

_ADDRESS_FORM = "a port, or an address and a port such as 127.0.0.1:8765 or [::1]:8765"

#: Connections that may wait to be accepted.
_BACKLOG = 128

_BIND_ERRORS = {
    errno.EADDRINUSE: ("the port is taken", "Choose another, or 0 for any free one."),
    errno.EACCES: ("the port is for the system's own services", "Choose one from 1024, or 0 for any free one."),
    errno.EADDRNOTAVAIL: ("this machine does not have that address", "127.0.0.1 is always there."),
}


class Address(NamedTuple):
    """An address to listen on."""

    host: str  #: an IP address, without brackets
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def is_everywhere(self) -> bool:
        """Whether it is the wildcard address of this machine."""
        return ipaddress.ip_address(self.host).is_unspecified

    @property
    def shown(self) -> str:
        """The address as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, option: str = "--http") -> Address:
    """Parse `text`, the value of `option`.

    Raises:
        BadValue: It is not an address.
    """
    host, colon, port = text.rpartition(":")
    if not colon:
        host = "127.0.0.1"
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise BadValue(option, text, _ADDRESS_FORM)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadValue(option, text, _ADDRESS_FORM)
    if host == "localhost":
        host = "127.0.0.1"
    try:
        ipaddress.ip_address(host)
    except ValueError as error:
        raise BadValue(option, text, _ADDRESS_FORM) from error
    return Address(host, int(port))


def check_exposure(address: Address, *, allow_remote: bool) -> None:
    """Refuse an address that other machines can reach, unless allowed.

    Raises:
        UsageError: It can be reached, and `allow_remote` is not set.
    """
    if not address.is_local and not allow_remote:
        raise UsageError(
            f"{address.shown} can be reached from other machines, and every client with the token can run "
            "commands as you; traffic is not encrypted. Add --allow-remote to allow it."
        )


def listen(address: Address) -> tuple[socket.socket, Address]:
    """Return a listening socket, and its actual address.

    Raises:
        CannotListen: The address is in use, or not of this host.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        made = socket.socket(
            family, socket.SOCK_STREAM, socket.IPPROTO_TCP
        )  # asyncio sets TCP_NODELAY only with this protocol number
    except OSError as error:
        raise CannotListen(address.shown, error.strerror or str(error), "127.0.0.1 is always there.") from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address.host, address.port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        why, advice = _BIND_ERRORS.get(error.errno or 0, (error.strerror or str(error), "Choose another address."))
        raise CannotListen(address.shown, why, advice) from error
    return made, address._replace(port=made.getsockname()[1])


class Exchange:
    """A request and its response; when cancelled early, it still gets a complete response."""

    def __init__(self, send: Send, ending: Response) -> None:
        self._send = send
        self._ending = ending
        self._has_begun = False
        self._scope = anyio.CancelScope()

    def end(self) -> None:
        """Cancel the request."""
        self._scope.cancel()

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive) -> None:
        """Have `app` respond."""
        with self._scope:
            await app(scope, receive, self._sending)
        if not self._scope.cancelled_caught:
            return
        if self._has_begun:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await self._ending(scope, receive, self._send)

    async def _sending(self, message: Message) -> None:
        self._has_begun = True
        await self._send(message)


class Exchanges:
    """All requests in progress: calls, which get a grace period at shutdown, and streams, which do not."""

    def __init__(self, ending: Response) -> None:
        """Use `ending` as the response to requests without one when the server shuts down."""
        self._ending = ending
        self._open: dict[Exchange, bool] = {}  # whether it is a stream
        self._quiet = anyio.Event()
        self._is_over = False

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, listens: bool) -> None:
        """Have `app` respond to a request; after shutdown, respond with `ending`."""
        if self._is_over:
            await self._ending(scope, receive, send)
            return
        exchange = Exchange(send, self._ending)
        self._open[exchange] = listens
        try:
            await exchange.run(app, scope, receive)
        finally:
            del self._open[exchange]
            if not self._calls:
                self._quiet.set()

    @property
    def _calls(self) -> int:
        return sum(not listens for listens in self._open.values())

    async def quiet(self) -> None:
        """Wait until no call is in progress."""
        while self._calls:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    def end(self) -> None:
        """Cancel all requests, and refuse new ones."""
        self._is_over = True
        for exchange in self._open:
            exchange.end()


#: Seconds for calls in progress to end, and for connections to close after that.
_CALL_GRACE, _CLOSE_TIMEOUT = 2, 4

#: Seconds after the first signal at which the process exits in any case.
EXIT_DEADLINE = 10.0

#: Bytes of a request header.
_HEADER_BYTES = 32 * 1024

#: Connections accepted in one turn of the event loop, which evict others only after it, and the kernel's backlog: a
#: client that the kernel rejects would retry only after a second.
_ACCEPTED_AT_ONCE, _QUEUE = 100, 2048

#: File descriptors reserved for files, pipes and watches.
_SPARE_DESCRIPTORS = 150

_MIN_CONNECTIONS = 20

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: A coroutine that runs as long as a server does.
BackgroundTask = Callable[[], Coroutine[Any, Any, None]]


class Limits(NamedTuple):
    """Limits of a server."""

    places: int  #: connections
    largest_body: int  #: bytes
    share: float = ADMITTED_SHARE  #: share of all places that one caller may keep


async def serve(
    app: ASGIApp,
    listening: socket.socket,
    *,
    identify: Identify,
    limits: Limits,
    exchanges: Exchanges,
    ready: Callable[[], object],
    beside: Sequence[BackgroundTask] = (),
    has_lifespan: bool = False,
) -> None:
    """Serve requests on `listening` until a signal arrives.

    Args:
        app: The application.
        listening: A socket of `listen`.
        identify: Returns the caller of a request by its headers.
        limits: Connections and body size.
        exchanges: The requests that `app` has in progress.
        ready: Called once clients can connect.
        beside: Run as long as the server does.
        has_lifespan: `app` handles ASGI lifespan events.
    """
    connections = Connections(min(limits.places, _max_connections()), share=limits.share)
    bounded = LimitMiddleware(app, connections, identify, largest_body=limits.largest_body)
    server = Server(uvicorn_config(bounded, has_lifespan=has_lifespan), connections, ready)
    await _run_server(server, listening, exchanges, beside)


async def _run_server(
    server: Server,
    listening: socket.socket,
    exchanges: Exchanges,
    beside: Sequence[BackgroundTask],
) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.drain, exchanges)
        for each in beside:
            tasks.start_soon(each)
        await server.serve(sockets=[listening])
        tasks.cancel_scope.cancel()


def uvicorn_config(app: LimitMiddleware, *, has_lifespan: bool) -> uvicorn.Config:
    """Configure uvicorn: plain HTTP, no access log, no server header."""
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", Connection),
        ws="none",
        loop="asyncio",
        lifespan="on" if has_lifespan else "off",
        log_config=None,
        log_level="error",  # malformed requests are not logged
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSE_TIMEOUT,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        backlog=_ACCEPTED_AT_ONCE,
    )


class Server(uvicorn.Server):
    """A uvicorn server with a bounded shutdown on signals."""

    def __init__(self, config: uvicorn.Config, connections: Connections, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._connections = connections
        self._ready = ready
        self.ending = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, and call `ready`: from here on signals are handled."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_QUEUE)
        if self.started:
            self._ready()

    def end(self) -> None:
        """Start the shutdown; if it has started, exit now."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._connections.end()
        self.ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handle signals while serving; they are not raised again afterwards."""
        with _signal_handlers(self.end):
            yield

    async def drain(self, exchanges: Exchanges) -> None:
        """After the shutdown signal, end all requests once no call is in progress, or after the grace period."""
        await self.ending.wait()
        with anyio.move_on_after(_CALL_GRACE):
            await exchanges.quiet()
        exchanges.end()


@contextlib.contextmanager
def _signal_handlers(end: Callable[[], None]) -> Generator[None]:
    """Have the event loop call `end` at each signal; exit the process if the loop is blocked.

    Python runs the handler in the main thread, even during a callback that does not return. The exit after
    EXIT_DEADLINE seconds is made by a thread of faulthandler, which does not need the interpreter lock.
    """
    loop = asyncio.get_running_loop()
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)  # for faulthandler's trace
    waiting = False
    is_ending = False

    def taken() -> None:
        nonlocal waiting
        waiting = False
        end()

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal waiting, is_ending
        if waiting:
            os._exit(128 + number)  # the loop has not processed the previous signal
        waiting = True
        if not is_ending:
            is_ending = True
            faulthandler.dump_traceback_later(EXIT_DEADLINE, exit=True, file=nowhere)
        loop.call_soon_threadsafe(taken)

    for each in _SIGNALS:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)  # the shutdown is already in progress, and bounded


def _max_connections() -> int:
    """Return the connections that this process has file descriptors for."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else max(_MIN_CONNECTIONS, soft - _SPARE_DESCRIPTORS)
