"""
A server: listens, answers many at once, and ends within a bound.

The end, on SIGTERM or SIGINT: nobody new is let in, calls on their way have a moment, streams are closed, then
everything. A second signal waits for nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator

import anyio
import uvicorn
from starlette.types import ASGIApp

from taskyard.serving.connections import Connection
from taskyard.serving.exchanges import Exchanges

#: Seconds calls on their way have to end, all of the end may take, and after which the process is ended from inside.
_GRACE, _BOUND, _LAST = 2, 4, 15.0

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """A server whose end by a signal is an end like any other."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready
        self.ending = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and say so: from here on a signal is heard."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    def end(self) -> None:
        """Begin to end; if that has begun, end now."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self.ending.set()
        last = threading.Timer(_LAST, os._exit, (1,))  # a hook or check in a thread must not keep it
        last.daemon = True
        last.start()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Listen to signals while it serves; they are not raised again afterwards."""
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            loop.add_signal_handler(each, self.end)
        try:
            yield
        finally:
            for each in _SIGNALS:
                loop.remove_signal_handler(each)
                signal.signal(each, signal.SIG_IGN)  # it ends already, within its bound

    async def drain(self, exchanges: Exchanges) -> None:
        """Once it is to end, close what is open as soon as no call is on its way, or after a moment."""
        await self.ending.wait()
        with anyio.move_on_after(_GRACE):
            await exchanges.quiet()
        exchanges.end()


def config(app: ASGIApp, *, connections: int, has_lifespan: bool = True) -> uvicorn.Config:
    """How all our servers serve: plain HTTP, `connections` at once, no word of who they are, no log of requests.

    `has_lifespan`: the application wants to be told of the server's start and end.
    """
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="on" if has_lifespan else "off",
        log_config=None,
        log_level="error",  # what strangers send that is no request is not worth a line each
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=connections,
        timeout_graceful_shutdown=_BOUND,
    )
