"""The A2A HTTP server: access checks, agent card, startup and shutdown.

A request passes these checks before the protocol handler sees it:

    1. Host and Origin     reject browser pages whose own host name resolves to this machine (DNS rebinding)
    2. token               identifies the caller; without one only the public card is served, with no body read
    3. size                bounded; the body is read completely first

No response allows another origin to read it (no CORS). The card states the skills by name and description,
the endpoints and that a token is required, and nothing about how skills are implemented. Tasks are jobs and
continue when the server exits.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, PROTOCOL_VERSION_1_0, TransportProtocol
from starlette.applications import Starlette
from starlette.authentication import SimpleUser
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import taskyard
from taskyard import config
from taskyard.core import files
from taskyard.errors import BadValue, TaskyardError
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.remote import a2a
from taskyard.servers.a2a import skills as a2a_skills
from taskyard.servers.a2a.handler import MAX_STREAMS, A2aHandler, AsyncTasks, MessageReceiver
from taskyard.servers.a2a.skills import CallerTokens, Skill, load_card_texts, load_skills
from taskyard.servers.a2a.tasks import CallerTasks
from taskyard.servers.http import server as addresses
from taskyard.servers.http import server as servers
from taskyard.servers.http.access import AllowedHosts, allowed_hosts, challenge, has_token
from taskyard.servers.http.server import Address, Exchanges
from taskyard.yard import hook_files

#: Methods that only stream: at shutdown they are closed without a grace period.
_STREAMING_METHODS = (b'"SendStreamingMessage"', b'"SubscribeToTask"')

_SHUTDOWN_BODY = {
    "error": "ending",
    "message": "The server is shutting down. Tasks keep running; ask again when it is back.",
}


class AccessMiddleware:
    """ASGI middleware that checks host, origin, token and size of a request."""

    def __init__(self, app: ASGIApp, *, callers: CallerTokens, hosts: AllowedHosts, most: int) -> None:
        """Limit the body of a request to `most` bytes."""
        self._app = app
        self._callers = callers
        self._hosts = hosts
        self._most = most
        self.exchanges = Exchanges(JSONResponse(_SHUTDOWN_BODY, 503))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with an error."""
        path = str(scope["path"]).rstrip("/") or "/"
        scope = {**scope, "path": path}  # a redirect to the path without the slash would bypass a proxy
        request = Request(scope, receive)
        refused = self._stranger(request)
        body = b""
        if refused is None and path != AGENT_CARD_WELL_KNOWN_PATH:
            try:
                found = await self._body(request)
            except ClientDisconnect:
                return
            if found is None:
                refused = _error_response(413, "too_large", f"A request has at most {self._most:,} bytes.")
            else:
                body = found
        if refused is not None:
            await refused(scope, receive, send)
            return
        listens = path.endswith((":stream", ":subscribe")) or any(verb in body for verb in _STREAMING_METHODS)
        await self.exchanges.run(self._app, scope, _ReplayedBody(body, receive), send, listens=listens)

    def _stranger(self, request: Request) -> Response | None:
        """Return the error response of an unauthorized request; else store the caller in the scope."""
        headers = request.headers
        if len(headers.getlist("host")) != 1 or not self._hosts.knows(headers["host"]):
            return _error_response(421, "wrong_host", "The Host header names another server. See --allow-host.")
        if not all(self._hosts.allows_origin(origin) for origin in headers.getlist("origin")):
            return _error_response(403, "wrong_origin", "The request comes from another origin.")
        if request.url.path == AGENT_CARD_WELL_KNOWN_PATH:
            return None
        try:
            caller = self._caller(headers)
        except TaskyardError:
            return _error_response(503, "unready", "The tokens of this server cannot be read.")
        if caller is None:
            said = (
                "Send a token: `Authorization: Bearer …`. The server's operator creates one with `taskyard a2a token`."
            )
            return _error_response(401, "unauthorized", said, **challenge(headers))
        request.scope["user"] = SimpleUser(caller)
        return None

    def caller(self, headers: Headers) -> str | None:
        """Return the caller whose token a request has; None also if the tokens cannot be read."""
        try:
            return self._caller(headers)
        except TaskyardError:
            return None

    def _caller(self, headers: Headers) -> str | None:
        return next((name for name, token in self._callers.known().items() if has_token(headers, token)), None)

    async def _body(self, request: Request) -> bytes | None:
        """Return the body of a request; None if it is too large."""
        told = request.headers.get("content-length", "")
        if told.isascii() and told.isdigit() and (len(told) > 15 or int(told) > self._most):
            return None
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self._most:
                return None
        return bytes(body)


class _ReplayedBody:
    """ASGI receive channel that replays a body already read, then passes on further events."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._first: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._receive = receive

    async def __call__(self) -> Message:
        first, self._first = self._first, None
        return first if first is not None else await self._receive()


def _error_response(status: int, code: str, said: str, **headers: str) -> Response:
    return JSONResponse({"error": code, "message": said}, status, headers={"Cache-Control": "no-store", **headers})


#: Paths of the JSON-RPC and REST endpoints.
RPC_PATH, REST_PATH = "/rpc", "/rest"

#: Accepted and returned media types.
MEDIA_TYPES = ("text/plain", "application/json")


def build_card(skills: Iterable[Skill], url: str, *, name: str, description: str) -> AgentCard:
    """Build the agent card of a server at `url`."""
    base = url.rstrip("/")
    ways = [(RPC_PATH, TransportProtocol.JSONRPC.value), (REST_PATH, TransportProtocol.HTTP_JSON.value)]
    told = "A poll with an offset is told only what is new of the transcript."
    bearer = HTTPAuthSecurityScheme(scheme="Bearer", description="`taskyard a2a token` makes one for each caller.")
    return AgentCard(
        name=name,
        description=description,
        version=taskyard.__version__,
        supported_interfaces=[
            AgentInterface(url=base + path, protocol_binding=binding, protocol_version=PROTOCOL_VERSION_1_0)
            for path, binding in ways
        ],
        capabilities=AgentCapabilities(
            streaming=True,
            push_notifications=False,
            extensions=[AgentExtension(uri=a2a.EXTENSION_URI, description=told, required=False)],
        ),
        security_schemes={"token": SecurityScheme(http_auth_security_scheme=bearer)},
        security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
        default_input_modes=MEDIA_TYPES,
        default_output_modes=MEDIA_TYPES,
        skills=[_card_skill(skill) for skill in skills],
    )


def _card_skill(skill: Skill) -> AgentSkill:
    tags = skill.tags or ("agent",)
    return AgentSkill(id=skill.name, name=skill.name, description=skill.description, tags=tags, examples=skill.examples)


#: Port to listen on by default.
DEFAULT_PORT = "8788"

#: Concurrent connections beyond those of streams.
_SPARE_CONNECTIONS = 200

#: Share of all connections that one caller keeps when connections run short.
_CALLER_SHARE = 0.25


class A2aServeOptions(NamedTuple):
    """Options of `serve`."""

    port: str = DEFAULT_PORT  #: where to listen: a port, or an address and a port
    own: Skill | None = None  #: the only skill to offer, instead of those in config.toml
    skills: tuple[str, ...] = ()  #: skills of config.toml to offer; all if empty
    url: str | None = None  #: public URL, if a proxy is in front
    hosts: tuple[str, ...] = ()  #: further accepted host names
    allow_remote: bool = False


class A2aServerInfo(NamedTuple):
    """Facts for the process that started the server."""

    url: str  #: base URL for clients: the card is below it
    token_file: str  #: token file of the default caller
    callers: list[str]
    skills: list[str]
    address: Address


def serve(wish: A2aServeOptions, ready: Callable[[A2aServerInfo], object]) -> None:
    """Serve until a signal arrives; call `ready` as soon as clients can connect.

    Raises:
        CannotListen: The address is in use, or not of this host.
        UsageError: An option is invalid.
    """
    settings = config.load_settings()
    wanted = addresses.parse_address(wish.port, "--port")
    addresses.check_exposure(wanted, allow_remote=wish.allow_remote)
    skills = load_skills(wish.own, wish.skills)
    home = config.home()
    files.make_private_folder(home)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("a2a").setLevel(logging.CRITICAL)  # the SDK logs what callers send; our handler logs failures
    if not a2a_skills.list_callers(home):
        a2a_skills.caller_token(home)
    listening, address = addresses.listen(wanted)
    with listening:
        url, names = _public_url(wish, address)
        jobs = Jobs(home, settings=settings, hook_files=hook_files)
        desk = AsyncTasks(CallerTasks(home))
        inbox = MessageReceiver(jobs, desk.tasks, skills, most=settings.a2a_tasks)
        app = _build_app(A2aHandler(desk, inbox), build_card(skills.values(), url, **_card_texts(load_card_texts())))
        callers, hosts = a2a_skills.CallerTokens(home), allowed_hosts(address, names)
        gate = AccessMiddleware(app, callers=callers, hosts=hosts, most=settings.a2a_body_limit)
        told = A2aServerInfo(
            url,
            f"{a2a_skills.tokens_dir(home)}/{a2a_skills.list_callers(home)[0]}",
            a2a_skills.list_callers(home),
            [*skills],
            address,
        )
        connections = MAX_STREAMS + _SPARE_CONNECTIONS
        limits = servers.Limits(connections, settings.a2a_body_limit, share=_CALLER_SHARE)

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


def _build_app(handler: A2aHandler, card: AgentCard) -> ASGIApp:
    rest = create_rest_routes(handler, path_prefix=REST_PATH)
    ours = [route for route in rest if isinstance(route, Route)]  # the others are for tenants, which do not exist here
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, RPC_PATH), *ours])


def _public_url(wish: A2aServeOptions, address: Address) -> tuple[str, tuple[str, ...]]:
    """Return the public URL and every host name that belongs to it."""
    if wish.url is None:
        shown = "127.0.0.1" if address.is_everywhere else None
        return f"http://{address.shown if shown is None else f'{shown}:{address.port}'}", wish.hosts
    found = urlsplit(wish.url)
    if found.scheme not in ("http", "https") or not found.hostname or found.query or found.fragment or "@" in wish.url:
        raise BadValue("--url", wish.url, "an address such as https://agents.example")
    return wish.url.rstrip("/"), (*wish.hosts, found.netloc)


def _card_texts(told: dict[str, str]) -> dict[str, str]:
    usual = {"name": "Taskyard", "description": "Agents that work as background jobs"}
    return usual | told
