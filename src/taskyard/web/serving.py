"""The page's server, from its start to its end."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from typing import NamedTuple

import anyio

from taskyard import paths
from taskyard.app import Yard
from taskyard.app import open as open_yard
from taskyard.disk import files
from taskyard.errors import UsageError
from taskyard.serving import address as addresses
from taskyard.serving import server as servers
from taskyard.serving import token as tokens
from taskyard.serving.hosts import hosts_of
from taskyard.web import assets
from taskyard.web.app import LARGEST_BODY, App
from taskyard.web.site import MOST_STREAMS, Options, Site

#: Where it is, unless told otherwise: an address to remember.
PORT = "8787"

#: Connections at once, beyond those of streams.
_SPARE_CONNECTIONS = 200


class Wish(NamedTuple):
    """What a server is to be."""

    port: str = PORT  #: where to listen: a port, 127.0.0.1:PORT or [::1]:PORT
    agent: str | None = None
    list: str | None = None
    tasks_dir: str | None = None
    hosts: tuple[str, ...] = ()  #: further names it is asked under
    new_token: bool = False
    options: Options = Options()


class Ready(NamedTuple):
    """What whoever started it must know."""

    url: str  #: with the token behind the #, which no browser sends or logs
    token_file: str
    list: str
    address: addresses.Address
    allow_actions: bool


def serve(wish: Wish, ready: Callable[[Ready], object]) -> None:
    """Serve until a signal comes; `ready` is told as soon as a browser can connect.

    Raises:
        CannotListen: the address is taken, or not ours.
        UsageError: something in the wish cannot be.
    """
    wanted = addresses.parsed(wish.port, "--port")
    if not wanted.is_local:
        raise UsageError(
            f"{wanted.shown} can be reached from other machines, and nothing is encrypted here. Listen on 127.0.0.1 or "
            "[::1], and let a proxy with TLS pass requests on; --allow-host says under which name it is asked for."
        )
    home = paths.home()
    files.make_private_folder(home)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    listening, address = addresses.listen(wanted)
    with listening:
        hosts = hosts_of(address, wish.hosts)
        token = tokens.kept_in(f"{home}/web-token", anew=wish.new_token)
        page = assets.load(assets.folder())
        with _opened(wish) as yard:
            url = f"http://{address.shown}/#token={token.text}"
            told = Ready(url, token.file or "", yard.tasks.name, address, wish.options.allow_actions)

            async def run() -> None:
                site = Site(yard, page, wish.options)
                app = App(site, token=token, hosts=hosts)
                await _served(site, app, listening, lambda: ready(told))

            anyio.run(run)


async def _served(site: Site, app: App, listening: socket.socket, ready: Callable[[], object]) -> None:
    limits = servers.Limits(MOST_STREAMS + _SPARE_CONNECTIONS, LARGEST_BODY)
    try:
        await servers.serve(
            app,
            listening,
            identify=app.caller,
            limits=limits,
            exchanges=app.exchanges,
            ready=ready,
            beside=[site.lists.tidy],
        )
    finally:
        site.close()


def _opened(wish: Wish) -> Yard:
    return open_yard(
        list=wish.list, tasks_dir=wish.tasks_dir, agent=wish.agent, via="web", is_person=True, report=_log_said
    )


def _log_said(text: str) -> None:
    logging.getLogger("taskyard.web").warning("%s", text.rstrip())
