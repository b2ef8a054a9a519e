"""
The server: listens, answers many clients at once, and ends within a bound.

The end, on SIGTERM or SIGINT: nobody new is let in, calls on their way have a moment, streams are closed, then
everything. A second signal waits for nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from typing import NamedTuple

import anyio
import uvicorn

from taskyard import config, paths
from taskyard.mcp_server import telemetry
from taskyard.mcp_server.http import address as addresses
from taskyard.mcp_server.http import token as tokens
from taskyard.mcp_server.http.address import Address
from taskyard.mcp_server.http.callers import HttpCallers
from taskyard.mcp_server.http.gate import Gate, allowed_hosts
from taskyard.mcp_server.server import build

PATH = "/mcp"

#: Seconds calls on their way have to end, all of the end may take, and after which the process is ended from inside.
_GRACE, _BOUND, _LAST = 2, 4, 15.0

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: Connections at once, beyond those of as many callers as there may be.
_SPARE_CONNECTIONS = 100


class Wish(NamedTuple):
    """What a server is to be."""

    http: str  #: where to listen
    agent: str | None = None
    list: str | None = None
    tasks_dir: str | None = None
    token_file: str | None = None
    allow_remote: bool = False
    hosts: tuple[str, ...] = ()  #: further names it is asked under


class Ready(NamedTuple):
    """What a client must know."""

    url: str
    token_file: str | None
    list: str
    address: Address


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


def serve(wish: Wish, ready: Callable[[Ready], object]) -> None:
    """Serve until a signal comes; `ready` is told as soon as clients can connect.

    Raises:
        CannotListen: the address is taken, or not ours.
        UsageError: something in the wish cannot be.
    """
    settings = config.load()
    wanted = addresses.parsed(wish.http)
    addresses.check_reach(wanted, allow_remote=wish.allow_remote)
    token = tokens.find(paths.home(), wish.token_file)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    with telemetry.started():
        listening, address = addresses.listen(wanted)
        with listening:
            callers = HttpCallers(agent=wish.agent, list=wish.list, tasks_dir=wish.tasks_dir, settings=settings)
            hosts = allowed_hosts(address, wish.hosts)
            app = build(callers, settings).streamable_http_app(
                streamable_http_path=PATH,
                max_request_body_size=settings.mcp_body_limit,
                session_idle_timeout=settings.mcp_lease,
                max_sessions=settings.mcp_callers,
                transport_security=hosts,
            )
            gate = Gate(app, token=token, hosts=hosts, callers=callers)
            told = Ready(f"http://{address.shown}{PATH}", token.file, callers.list_name, address)
            server = Server(_config(gate, settings), lambda: ready(told))

            async def run() -> None:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(callers.watch)
                    tasks.start_soon(_drain, server, gate)
                    await server.serve(sockets=[listening])
                    tasks.cancel_scope.cancel()
                await callers.close()

            anyio.run(run)


def _config(gate: Gate, settings: config.Settings) -> uvicorn.Config:
    return uvicorn.Config(
        gate,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=4 * settings.mcp_callers + _SPARE_CONNECTIONS,
        timeout_graceful_shutdown=_BOUND,
    )


async def _drain(server: Server, gate: Gate) -> None:
    """Once the server is to end, close what is open as soon as no call is on its way, or after a moment."""
    await server.ending.wait()
    with anyio.move_on_after(_GRACE):
        await gate.quiet()
    gate.end()
