"""
The one start-up of all our HTTP servers: listens, answers many at once, and ends within a bound.

On SIGTERM or SIGINT it lets in no new connections, gives calls in progress a moment, closes streams, then everything.
A second signal waits for nothing. An event loop that is stuck cannot prevent the end: after LAST seconds, or at
a second signal that it does not take, the process exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import FrameType
from typing import Any, NamedTuple, cast

import anyio
import uvicorn
from starlette.types import ASGIApp

from taskyard.serving.bounds import Bounded, Identify
from taskyard.serving.connections import ADMITTED_SHARE, Connection, Connections
from taskyard.serving.exchanges import Exchanges

#: Seconds that calls in progress have to end, and that closing connections may take after that.
_GRACE, _BOUND = 2, 4

#: Seconds after the first signal at which the process exits in any case.
LAST = 10.0

#: Bytes of a request's header.
_HEADER_BYTES = 32 * 1024

#: Connections accepted in one turn of the event loop, which close others only after it, and those that the kernel keeps
#: waiting: one that it turned away would try again after a second.
_ACCEPTED_AT_ONCE, _QUEUE = 100, 2048

#: Descriptors left for files, pipes and watches when places for connections are counted.
_SPARE_DESCRIPTORS = 150

_FEWEST_PLACES = 20

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: Something that runs as long as a server does.
Beside = Callable[[], Coroutine[Any, Any, None]]


class Limits(NamedTuple):
    """What a server takes at once."""

    places: int  #: connections
    largest_body: int  #: bytes
    share: float = ADMITTED_SHARE  #: the part of all places that one caller may keep


async def serve(
    app: ASGIApp,
    listening: socket.socket,
    *,
    identify: Identify,
    limits: Limits,
    exchanges: Exchanges,
    ready: Callable[[], object],
    beside: Sequence[Beside] = (),
    has_lifespan: bool = False,
) -> None:
    """Answer requests on `listening` until a signal comes.

    `identify` names the caller of a request by its headers. `exchanges`: what `app` is answering. `ready` is called
    once clients can connect. `beside` runs as long as the server does. `has_lifespan`: `app` wants to be told of the
    server's start and end.
    """
    connections = Connections(min(limits.places, _descriptors()), share=limits.share)
    bounded = Bounded(app, connections, identify, largest_body=limits.largest_body)
    server = Server(config(bounded, has_lifespan=has_lifespan), connections, ready)
    await _run(server, listening, exchanges, beside)


async def _run(
    server: Server,
    listening: socket.socket,
    exchanges: Exchanges,
    beside: Sequence[Beside],
) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.drain, exchanges)
        for each in beside:
            tasks.start_soon(each)
        await server.serve(sockets=[listening])
        tasks.cancel_scope.cancel()


def config(app: Bounded, *, has_lifespan: bool) -> uvicorn.Config:
    """How uvicorn serves: plain HTTP, no log of requests, no header that names the server."""
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", Connection),
        ws="none",
        loop="asyncio",
        lifespan="on" if has_lifespan else "off",
        log_config=None,
        log_level="error",  # malformed requests are not worth a line each
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_BOUND,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        backlog=_ACCEPTED_AT_ONCE,
    )


class Server(uvicorn.Server):
    """A server that ends by a signal within a bound."""

    def __init__(self, config: uvicorn.Config, connections: Connections, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._connections = connections
        self._ready = ready
        self.ending = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and call `ready`: from here on a signal is heard."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_QUEUE)
        if self.started:
            self._ready()

    def end(self) -> None:
        """Begin to end; if that has begun, end now."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._connections.end()
        self.ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Listen to signals while it serves; they are not raised again afterwards."""
        with _signals(self.end):
            yield

    async def drain(self, exchanges: Exchanges) -> None:
        """Once it is to end, close what is open as soon as no call is in progress, or after a moment."""
        await self.ending.wait()
        with anyio.move_on_after(_GRACE):
            await exchanges.quiet()
        exchanges.end()


@contextlib.contextmanager
def _signals(end: Callable[[], None]) -> Generator[None]:
    """Have the event loop call `end` at each signal; exit the process if the loop is stuck.

    Python runs the handler in the main thread, also within a callback that does not return. The exit after LAST seconds
    is made by a thread of faulthandler's, which needs no interpreter lock.
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
            os._exit(128 + number)  # the loop has not taken the signal before this one
        waiting = True
        if not is_ending:
            is_ending = True
            faulthandler.dump_traceback_later(LAST, exit=True, file=nowhere)
        loop.call_soon_threadsafe(taken)

    for each in _SIGNALS:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)  # it ends already, within its bound


def _descriptors() -> int:
    """Places for connections that this process has descriptors for."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else max(_FEWEST_PLACES, soft - _SPARE_DESCRIPTORS)
