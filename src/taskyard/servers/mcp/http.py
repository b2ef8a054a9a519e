"""The MCP server for many clients at once, over streamable HTTP (on `taskyard.servers.http`).

A caller is an agent instance, for as long as it sends requests:

    with a session (2025-11-25)        the session is the caller: two of one name are `ada` and `ada-2`
    without (2026-07-28)               the name is the caller

A request in progress or an open stream keeps a caller alive. One that ends its session, or sends nothing for the
time of a lease, is gone: its claims are released, its unacknowledged notices requeued, and its jobs end. One read
of the list renews the claims of all callers, and no caller waits for another's call.

Before the protocol sees a request, `AuthMiddleware` checks:

    1. Host and Origin     reject DNS rebinding and requests from other pages
    2. the token           without it only `/healthz` answers

No answer allows another origin to read it: there is no CORS here.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import NamedTuple, TypeVar, cast

import anyio
import anyio.to_thread
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskyard import config
from taskyard.config import Settings
from taskyard.core.system import now_ms
from taskyard.core.values import check_name
from taskyard.errors import Conflict, Damaged, NotFound, TaskyardError, TooManyCallers
from taskyard.jobs.control import request_stop
from taskyard.servers.http import server as addresses
from taskyard.servers.http import server as servers
from taskyard.servers.http.access import Token, challenge, has_token, host_names
from taskyard.servers.http.server import Address, Exchanges
from taskyard.servers.mcp import sdk_server as tokens
from taskyard.servers.mcp import telemetry
from taskyard.servers.mcp.answers import protocol_error
from taskyard.servers.mcp.callers import Caller, clean_name, client_name
from taskyard.servers.mcp.callers import Request as CallersRequest
from taskyard.servers.mcp.server import build
from taskyard.tasks.model import Lease, Task
from taskyard.yard import Yard
from taskyard.yard import open as open_yard

#: A claim is renewed only if less than this part of its lease is left.
_RENEW_BELOW = 0.95


class RemoteClaims:
    """The claims and jobs of remote callers on one list."""

    def __init__(self, yard: Yard) -> None:
        """Set up. `yard`: opened without an agent, used for all callers."""
        self._yard = yard

    def renew(self, names: Collection[str], now: int) -> None:
        """Renew the leases that remote agents of these names have claimed; `now` in epoch ms."""
        for task, lease in self._held(names):
            if lease.expires is not None and lease.expires - now < lease.span * _RENEW_BELOW:
                try:
                    self._yard.tasks.renew(task.id, agent=lease.owner, token=lease.token)
                except (Conflict, NotFound, Damaged):
                    continue  # completed, released or removed meanwhile

    def give_back(self, name: str) -> None:
        """Release the claims of an agent that left, and stop its jobs that end with their parent."""
        for task, lease in self._held((name,)):
            try:
                self._yard.tasks.release(task.id, agent=lease.owner, token=lease.token)
            except (Conflict, NotFound, Damaged):
                continue
        if jobs := self._jobs(name):
            request_stop(self._yard.home, jobs, by=name, grace=None)  # the supervisors terminate them

    def has_any(self, name: str) -> bool:
        """Return whether an agent has a claim, or a job that would end with it."""
        return next(self._held((name,)), None) is not None or bool(self._jobs(name))

    def _held(self, names: Collection[str]) -> Iterator[tuple[Task, Lease]]:
        for task in self._yard.tasks.list(internal=True):
            lease = task.lease
            if lease is not None and lease.owner in names and lease.instance == f"remote:{lease.owner}":
                yield task, lease

    def _jobs(self, name: str) -> list[str]:
        jobs = self._yard.jobs.list()
        return [job.id for job in jobs if job.agent_id == name and job.on_parent_exit == "kill"]


T = TypeVar("T")

#: The header and the query parameter that name the agent, if it is not the client's own name.
HEADER, PARAMETER = "taskyard-agent", "agent"

SESSION = "mcp-session-id"

#: Rounds per lease that renew claims and look for silent callers, and most seconds between two rounds.
_RENEWALS_PER_LEASE, _MAX_RENEW_INTERVAL = 20, 30.0

_log = logging.getLogger("taskyard.mcp")


class CallerSession:
    """A caller, and when it was last active."""

    def __init__(self, key: str, caller: Caller) -> None:
        self.key = key
        self.caller = caller
        self.seen = time.monotonic()
        self.renewed = self.seen


class HttpCallers:
    """All callers over HTTP."""

    def __init__(self, *, agent: str | None, list: str | None, tasks_dir: str | None, settings: Settings) -> None:
        """Open the shared yard. `agent`: the name of every caller; else each gives its own."""
        self._agent = agent
        self._list = list
        self._tasks_dir = tasks_dir
        self._lease = settings.mcp_lease
        self._most = settings.mcp_callers
        self._every = min(self._lease / _RENEWALS_PER_LEASE, _MAX_RENEW_INTERVAL)
        self._yard = open_yard(list=list, tasks_dir=tasks_dir, via="mcp", is_person=True)
        self._claims = RemoteClaims(self._yard)
        self._sessions: dict[str, CallerSession] = {}
        self._left: set[str] = set()  # names of callers that left since the last round
        self._active_requests: dict[str, int] = {}  # number of requests in progress, by caller
        self._door = anyio.Lock()  # only one caller enters or leaves at a time
        self._desk = anyio.CapacityLimiter(1)  # a thread for claims alone: one at a time, and never waiting for a call

    @property
    def list_name(self) -> str:
        """The list that all callers share."""
        return self._yard.tasks.name

    async def find(self, request: CallersRequest) -> Caller:
        """Return the caller of a request; it is created with its first request.

        Raises:
            BadName: Its name is not a valid agent name.
            TooManyCallers: The limit of callers is reached.
            MCPError: The same, for a request that is not a tool call.
        """
        try:
            return await self._found(request)
        except TaskyardError as error:
            if request.method == "tools/call":
                raise
            raise protocol_error(error) from error

    async def _found(self, request: CallersRequest) -> Caller:
        http = cast("HttpRequest", request.request)
        name = self._name(http, client_name(request))
        session = http.headers.get(SESSION) if request.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS else None
        key = session_key(session) if session else f"name:{name}"
        active_request = http.scope["taskyard.visit"]
        assert isinstance(active_request, ActiveRequest)
        active_request.bind_key(key)
        guest = self._sessions.get(key)
        if guest is None:
            async with self._door:
                guest = self._sessions.get(key) or await self._open_session(key, name)
        elif time.monotonic() - guest.renewed > self._every:
            await self._renew([guest])
        return guest.caller

    def _name(self, http: HttpRequest, own: str) -> str:
        """Return the agent name of a request."""
        given = self._agent or http.headers.get(HEADER) or http.query_params.get(PARAMETER)
        return check_name("an agent", given) if given else clean_name(own)

    async def _open_session(self, key: str, name: str) -> CallerSession:
        while len(self._sessions) >= self._most:
            await self._make_room()

        def enter() -> Yard:
            return open_yard(
                list=self._list,
                tasks_dir=self._tasks_dir,
                agent=name,
                via="mcp",
                lease=self._lease,
                sharing=self._yard,
            )

        yard = await anyio.to_thread.run_sync(enter)
        guest = self._sessions[key] = CallerSession(key, Caller(yard, lease=self._lease, asks_roots=True))
        await self._renew([guest])  # renew what it claimed before this server was restarted
        return guest

    async def _make_room(self) -> None:
        """Remove the caller that was silent the longest and has no claims or jobs."""
        for guest in sorted(self._sessions.values(), key=lambda guest: guest.seen):
            if self._active_requests.get(guest.key):
                continue
            if not await self._in_claims_thread(partial(self._claims.has_any, guest.caller.name)):
                await self._let_go(guest)
                return
        raise TooManyCallers(self._most)

    def came(self, key: str) -> None:
        """Count a request of this caller that begins."""
        self._active_requests[key] = self._active_requests.get(key, 0) + 1
        self._touch(key)

    def went(self, key: str) -> None:
        """Count a request of this caller that ended."""
        left = self._active_requests.pop(key, 0) - 1
        if left > 0:
            self._active_requests[key] = left
        self._touch(key)

    def _touch(self, key: str) -> None:
        if (guest := self._sessions.get(key)) is not None:
            guest.seen = time.monotonic()

    async def end(self, key: str) -> None:
        """Remove a caller."""
        async with self._door:
            if (guest := self._sessions.get(key)) is not None:
                await self._let_go(guest)

    async def _let_go(self, guest: CallerSession) -> None:
        """Release its claims; only then is its name free."""
        self._sessions.pop(guest.key, None)
        self._left.add(guest.caller.name)
        with anyio.CancelScope(shield=True):
            await self._give_back(guest.caller.name)
            await guest.caller.leave()

    async def _give_back(self, name: str) -> None:
        try:
            await self._in_claims_thread(partial(self._claims.give_back, name))
        except TaskyardError as error:
            _log.warning("The claims of %s are released when they expire: %s", name, error)

    async def watch(self) -> None:
        """Renew the claims of active callers, and remove silent ones; runs forever."""
        while True:
            await anyio.sleep(self._every)
            left, self._left = self._left, set()
            for name in left.difference(guest.caller.name for guest in self._sessions.values()):
                await self._give_back(name)  # claimed since by a call that was in progress when it left
            for key in self._active_requests:
                self._touch(key)
            await self._renew([guest for guest in self._sessions.values() if guest.seen > guest.renewed])
            for guest in list(self._sessions.values()):
                async with self._door:
                    if self._sessions.get(guest.key) is guest and self._is_silent(guest):
                        await self._let_go(guest)

    def _is_silent(self, guest: CallerSession) -> bool:
        return not self._active_requests.get(guest.key) and time.monotonic() - guest.seen >= self._lease

    async def _renew(self, guests: list[CallerSession]) -> None:
        if not guests:
            return
        names = {guest.caller.name for guest in guests}
        for guest in guests:
            guest.renewed = time.monotonic()
        try:
            await self._in_claims_thread(lambda: self._claims.renew(names, now_ms()))
        except TaskyardError as error:
            _log.warning("Claims could not be renewed: %s", error)

    async def _in_claims_thread(self, act: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(act, limiter=self._desk)

    async def close(self) -> None:
        """Close all callers without releasing their claims: these last until the lease expires."""
        for guest in list(self._sessions.values()):
            await guest.caller.leave()
        self._sessions.clear()
        self._yard.close()


class ActiveRequest:
    """One request, from its arrival to its answer."""

    def __init__(self, callers: HttpCallers) -> None:
        self._callers = callers
        self._key: str | None = None

    def bind_key(self, key: str) -> None:
        """Bind the request to its caller, once known."""
        if self._key is None:
            self._key = key
            self._callers.came(key)

    def over(self) -> None:
        """End the request: it was answered or cancelled."""
        if self._key is not None:
            self._callers.went(self._key)


def session_key(session: str) -> str:
    """Return the caller key of a session."""
    return f"session:{session}"


HEALTH = "/healthz"

_SHUTTING_DOWN = {
    "error": "ending",
    "message": "The server is shutting down. Whether the request was carried out is unknown.",
}


class AuthMiddleware:
    """Checks requests before they reach the application."""

    def __init__(self, app: ASGIApp, *, token: Token, hosts: TransportSecuritySettings, callers: HttpCallers) -> None:
        self._app = app
        self._token = token
        self._hosts = TransportSecurityMiddleware(hosts)
        self._callers = callers
        self.exchanges = Exchanges(JSONResponse(_SHUTTING_DOWN, 503))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, or reject it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refused = await self._hosts.validate_request(request) or self._health(request) or self._stranger(request)
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self._forward(request, receive, send)

    def _health(self, request: Request) -> Response | None:
        if request.url.path != HEALTH:
            return None
        if request.method not in ("GET", "HEAD"):
            return JSONResponse({"error": "method_not_allowed"}, 405, headers={"Allow": "GET, HEAD"})
        return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})

    def caller(self, headers: Headers) -> str | None:
        """Return the identity of a request: one name for all who have the token, else None."""
        return "mcp" if has_token(headers, self._token) else None

    def _stranger(self, request: Request) -> Response | None:
        """Return the rejection of a request without the token."""
        if self.caller(request.headers) is not None:
            return None
        said = "Send the token: `Authorization: Bearer …`. `taskyard mcp --show-token` shows it."
        return JSONResponse({"error": "unauthorized", "message": said}, 401, headers=challenge(request.headers))

    async def _forward(self, request: Request, receive: Receive, send: Send) -> None:
        active_request = ActiveRequest(self._callers)
        request.scope["taskyard.visit"] = active_request
        session = request.headers.get(SESSION)
        if session and request.method != "DELETE":
            active_request.bind_key(session_key(session))
        listens = request.method == "GET" or request.headers.get("mcp-method") == "subscriptions/listen"
        if session and request.method == "DELETE":
            send = self._ending(session, send)
        try:
            await self.exchanges.run(self._app, request.scope, receive, send, listens=listens)
        finally:
            active_request.over()

    def _ending(self, session: str, send: Send) -> Send:
        """Delay the answer to the end of a session until its claims are released."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                await self._callers.end(session_key(session))
            await send(message)

        return sending


def allowed_hosts(address: Address, names: tuple[str, ...]) -> TransportSecuritySettings:
    """Return the allowed host names and origins of a server.

    `names`: those it has for other machines. An address that other machines can reach is one of them.
    """
    known = host_names(address, names)
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{name}:*" for name in known] + list(names),
        allowed_origins=[f"http://{name}:{address.port}" for name in known],
    )


PATH = "/mcp"

#: Connections at once, beyond four for each allowed caller.
_SPARE_CONNECTIONS = 100


class McpServerOptions(NamedTuple):
    """Options of the MCP server over HTTP."""

    http: str  #: the address to listen on
    agent: str | None = None
    list: str | None = None
    tasks_dir: str | None = None
    token_file: str | None = None
    allow_remote: bool = False
    hosts: tuple[str, ...] = ()  #: further host names under which requests are accepted


class McpServerInfo(NamedTuple):
    """What a client needs to connect."""

    url: str
    token_file: str | None
    list: str
    address: Address


def serve(wish: McpServerOptions, ready: Callable[[McpServerInfo], object]) -> None:
    """Serve until a signal arrives; `ready` is called as soon as clients can connect.

    Raises:
        CannotListen: The address is in use, or not of this machine.
        UsageError: An option is invalid.
    """
    settings = config.load_settings()
    wanted = addresses.parse_address(wish.http)
    addresses.check_exposure(wanted, allow_remote=wish.allow_remote)
    token = tokens.find_token(config.home(), wish.token_file)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    with telemetry.export_traces():
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
            gate = AuthMiddleware(app, token=token, hosts=hosts, callers=callers)
            told = McpServerInfo(f"http://{address.shown}{PATH}", token.file, callers.list_name, address)
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
