"""The MCP server over HTTP, from its start to its end."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import NamedTuple

import anyio

from taskyard import config, paths
from taskyard.mcp_server import telemetry
from taskyard.mcp_server.http import token as tokens
from taskyard.mcp_server.http.callers import HttpCallers
from taskyard.mcp_server.http.gate import Gate, allowed_hosts
from taskyard.mcp_server.server import build
from taskyard.serving import address as addresses
from taskyard.serving import server as servers
from taskyard.serving.address import Address

PATH = "/mcp"

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
            connections = 4 * settings.mcp_callers + _SPARE_CONNECTIONS

            async def run() -> None:
                await servers.serve(
                    gate,
                    listening,
                    identify=gate.caller,
                    limits=servers.Limits(connections, settings.mcp_body_limit),
                    exchanges=gate.exchanges,
                    ready=lambda: ready(told),
                    beside=[callers.watch],
                    has_lifespan=True,
                )
                await callers.close()

            anyio.run(run)
