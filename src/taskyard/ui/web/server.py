"""Run the web server, from binding the address to shutdown.

`redirect_file` opens the page in a browser without exposing the token: other users can read the browser's command
line, so it has only the path of a private file that redirects to the address with the token.
"""

from __future__ import annotations

import html
import logging
import os
import socket
import sys
import urllib.request
from collections.abc import Callable
from typing import NamedTuple

import anyio

from taskyard import config
from taskyard.core import files
from taskyard.errors import UsageError
from taskyard.servers.http import access as tokens
from taskyard.servers.http import server as addresses
from taskyard.servers.http import server as servers
from taskyard.servers.http.access import allowed_hosts
from taskyard.ui.web import assets
from taskyard.ui.web.app import LARGEST_BODY, App
from taskyard.ui.web.site import MOST_STREAMS, Site, SiteOptions
from taskyard.yard import Yard
from taskyard.yard import open as open_yard

#: The default port, fixed so that it can be remembered.
PORT = "8787"

#: Connections at once, beyond those of streams.
_SPARE_CONNECTIONS = 200


class WebServerOptions(NamedTuple):
    """Options of the web server."""

    port: str = PORT  #: where to listen: a port, 127.0.0.1:PORT or [::1]:PORT
    agent: str | None = None
    list: str | None = None
    tasks_dir: str | None = None
    hosts: tuple[str, ...] = ()  #: further host names under which requests are accepted
    new_token: bool = False
    options: SiteOptions = SiteOptions()


class WebServerInfo(NamedTuple):
    """What the caller needs once the server listens."""

    url: str  #: with the token after the #, which browsers neither send nor log
    token_file: str
    list: str
    address: addresses.Address
    allow_actions: bool


def serve(wish: WebServerOptions, ready: Callable[[WebServerInfo], object]) -> None:
    """Serve until a signal arrives; `ready` is called as soon as a browser can connect.

    Raises:
        CannotListen: The address is in use, or not of this machine.
        UsageError: An option is invalid.
    """
    wanted = addresses.parse_address(wish.port, "--port")
    if not wanted.is_local:
        raise UsageError(
            f"{wanted.shown} can be reached from other machines, and nothing is encrypted here. Listen on 127.0.0.1 or "
            "[::1], and let a proxy with TLS pass requests on; --allow-host names the hosts it serves."
        )
    home = config.home()
    files.make_private_folder(home)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    listening, address = addresses.listen(wanted)
    with listening:
        hosts = allowed_hosts(address, wish.hosts)
        token = tokens.ensure_token(f"{home}/web-token", rotate=wish.new_token)
        page = assets.load_assets(assets.static_folder())
        with _open_list(wish) as yard:
            url = f"http://{address.shown}/#token={token.text}"
            told = WebServerInfo(url, token.file or "", yard.tasks.name, address, wish.options.allow_actions)

            async def run() -> None:
                site = Site(yard, page, wish.options)
                app = App(site, token=token, hosts=hosts)
                await _serve_site(site, app, listening, lambda: ready(told))

            anyio.run(run)


async def _serve_site(site: Site, app: App, listening: socket.socket, ready: Callable[[], object]) -> None:
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


def _open_list(wish: WebServerOptions) -> Yard:
    return open_yard(
        list=wish.list, tasks_dir=wish.tasks_dir, agent=wish.agent, via="web", is_person=True, report=_log_report
    )


def _log_report(text: str) -> None:
    logging.getLogger("taskyard.ui.web").warning("%s", text.rstrip())


_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>Taskyard</title>
<a href="{url}">Open the page</a>
"""


def redirect_file(home: str, url: str) -> str:
    """Write the redirect file of this process, readable by its owner only; return its URL.

    Raises:
        StorageError: It cannot be written.
    """
    path = _redirect_path(home)
    files.replace(path, _PAGE.format(url=html.escape(url)).encode())
    return f"file://{urllib.request.pathname2url(path)}"


def remove_redirect_file(home: str) -> None:
    """Remove the redirect file after the server ended."""
    files.remove(_redirect_path(home))


def _redirect_path(home: str) -> str:
    return os.path.join(os.path.abspath(home), f"web-open-{os.getpid()}.html")
