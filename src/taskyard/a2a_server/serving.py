"""The A2A server, from its start to its end. Its tasks are jobs, and go on without it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.types.a2a_pb2 import AgentCard
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from taskyard import config, paths
from taskyard.a2a_server import tokens
from taskyard.a2a_server.card import REST, RPC, card_of
from taskyard.a2a_server.gate import Gate
from taskyard.a2a_server.handler import MOST_STREAMS, Handler
from taskyard.a2a_server.inbox import Inbox
from taskyard.a2a_server.skills import Skill, about, offered
from taskyard.a2a_server.streams import Desk
from taskyard.a2a_server.tasks import Tasks
from taskyard.disk import files
from taskyard.errors import BadValue
from taskyard.runtime.jobs import Jobs
from taskyard.serving import address as addresses
from taskyard.serving import server as servers
from taskyard.serving.address import Address
from taskyard.serving.hosts import hosts_of
from taskyard.surroundings import hook_files

#: Where it is, unless told otherwise.
PORT = "8788"

#: Connections at once, beyond those of streams.
_SPARE_CONNECTIONS = 200

#: The part of all connections that one caller keeps when places run short.
_SHARE = 0.25


class Wish(NamedTuple):
    """What a server is to be."""

    port: str = PORT  #: where to listen: a port, or an address and a port
    own: Skill | None = None  #: the one skill to offer, instead of those in config.toml
    skills: tuple[str, ...] = ()  #: those of config.toml to offer; all if none is named
    url: str | None = None  #: under which others reach it, where that is a proxy's
    hosts: tuple[str, ...] = ()  #: further names it is asked under
    allow_remote: bool = False


class Ready(NamedTuple):
    """What whoever started it must know."""

    url: str  #: for clients: the card is below it
    token_file: str  #: of the usual caller
    callers: list[str]
    skills: list[str]
    address: Address


def serve(wish: Wish, ready: Callable[[Ready], object]) -> None:
    """Serve until a signal comes; `ready` is told as soon as clients can connect.

    Raises:
        CannotListen: the address is taken, or not ours.
        UsageError: something in the wish cannot be.
    """
    settings = config.load()
    wanted = addresses.parsed(wish.port, "--port")
    addresses.check_reach(wanted, allow_remote=wish.allow_remote)
    skills = offered(wish.own, wish.skills)
    home = paths.home()
    files.make_private_folder(home)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("a2a").setLevel(logging.CRITICAL)  # it logs what callers send; our handler logs what fails
    if not tokens.callers(home):
        tokens.token_of(home)
    listening, address = addresses.listen(wanted)
    with listening:
        url, names = _outside(wish, address)
        jobs = Jobs(home, settings=settings, hook_files=hook_files)
        desk = Desk(Tasks(home))
        inbox = Inbox(jobs, desk.tasks, skills, most=settings.a2a_tasks)
        app = _routes(Handler(desk, inbox), card_of(skills.values(), url, **_words(about())))
        callers, hosts = tokens.Callers(home), hosts_of(address, names)
        gate = Gate(app, callers=callers, hosts=hosts, most=settings.a2a_body_limit)
        told = Ready(url, f"{tokens.folder(home)}/{tokens.callers(home)[0]}", tokens.callers(home), [*skills], address)
        connections = MOST_STREAMS + _SPARE_CONNECTIONS
        limits = servers.Limits(connections, settings.a2a_body_limit, share=_SHARE)

        async def run() -> None:
            await servers.serve(
                gate,
                listening,
                identify=gate.caller,
                limits=limits,
                exchanges=gate.exchanges,
                ready=lambda: ready(told),
            )

        try:
            anyio.run(run)
        finally:
            jobs.close()


def _routes(handler: Handler, card: AgentCard) -> ASGIApp:
    rest = create_rest_routes(handler, path_prefix=REST)
    ours = [route for route in rest if isinstance(route, Route)]  # the others are for tenants, of which there are none
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, RPC), *ours])


def _outside(wish: Wish, address: Address) -> tuple[str, tuple[str, ...]]:
    """Under which address others ask, and every name that goes with it."""
    if wish.url is None:
        shown = "127.0.0.1" if address.is_everywhere else None
        return f"http://{address.shown if shown is None else f'{shown}:{address.port}'}", wish.hosts
    found = urlsplit(wish.url)
    if found.scheme not in ("http", "https") or not found.hostname or found.query or found.fragment or "@" in wish.url:
        raise BadValue("--url", wish.url, "an address such as https://agents.example")
    return wish.url.rstrip("/"), (*wish.hosts, found.netloc)


def _words(told: dict[str, str]) -> dict[str, str]:
    usual = {"name": "Taskyard", "description": "Agents that work as background jobs"}
    return usual | told
