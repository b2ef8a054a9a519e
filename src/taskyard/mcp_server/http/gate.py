"""
What a request must show before the protocol sees any of it.

    1. Host and Origin     a page in a browser that points its own name at this machine is turned away
    2. the token           without it nothing is told but that a server lives here (`/healthz`)

No answer allows another origin to read it: there is no CORS here.
"""

from __future__ import annotations

import anyio
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskyard.mcp_server.http.address import Address
from taskyard.mcp_server.http.callers import SESSION, HttpCallers, Visit, session_key
from taskyard.mcp_server.http.token import Token

HEALTH = "/healthz"

_LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Gate:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, *, token: Token, hosts: TransportSecuritySettings, callers: HttpCallers) -> None:
        self._app = app
        self._token = token
        self._hosts = TransportSecurityMiddleware(hosts)
        self._callers = callers
        self._open: dict[Exchange, bool] = {}  # what is being answered, and whether it only listens
        self._quiet = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refused = await self._hosts.validate_request(request) or self._health(request) or self._stranger(request)
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self._let_in(request, receive, send)

    def _health(self, request: Request) -> Response | None:
        if request.url.path != HEALTH:
            return None
        if request.method not in ("GET", "HEAD"):
            return JSONResponse({"error": "method_not_allowed"}, 405, headers={"Allow": "GET, HEAD"})
        return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})

    def _stranger(self, request: Request) -> Response | None:
        """The refusal for whoever does not bring the token."""
        given = request.headers.getlist("authorization")
        scheme, _, secret = (given[0] if len(given) == 1 else "").partition(" ")
        if scheme.lower() == "bearer" and self._token.fits(secret.strip()):
            return None
        problem = ', error="invalid_token"' if given else ""
        said = "Bring the token: `Authorization: Bearer …`. `taskyard mcp --show-token` shows it to whoever may know."
        challenge = {"WWW-Authenticate": f'Bearer realm="taskyard"{problem}'}
        return JSONResponse({"error": "unauthorized", "message": said}, 401, headers=challenge)

    async def _let_in(self, request: Request, receive: Receive, send: Send) -> None:
        visit = Visit(self._callers)
        request.scope["taskyard.visit"] = visit
        session = request.headers.get(SESSION)
        if session and request.method != "DELETE":
            visit.is_of(session_key(session))
        listens = request.method == "GET" or request.headers.get("mcp-method") == "subscriptions/listen"
        if session and request.method == "DELETE":
            send = self._ending(session, send)
        exchange = Exchange(send)
        self._open[exchange] = listens
        try:
            await exchange.run(self._app, request.scope, receive)
        finally:
            del self._open[exchange]
            visit.over()
            if not self._calls:
                self._quiet.set()

    @property
    def _calls(self) -> int:
        """Requests that are being answered, but for streams that only listen."""
        return sum(not listens for listens in self._open.values())

    async def quiet(self) -> None:
        """Return when no call is being answered."""
        while self._calls:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    def end(self) -> None:
        """Answer nothing any more."""
        for exchange in self._open:
            exchange.end()

    def _ending(self, session: str, send: Send) -> Send:
        """Tells a client that its session is over once what it held is back."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                await self._callers.end(session_key(session))
            await send(message)

        return sending


class Exchange:
    """A request and its answer, which may be ended early and then still is an answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False
        self._scope = anyio.CancelScope()

    def end(self) -> None:
        """Give it up."""
        self._scope.cancel()

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive) -> None:
        """Have `app` answer."""
        with self._scope:
            await app(scope, receive, self._sending)
        if not self._scope.cancelled_caught:
            return
        if self._has_begun:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            said = {"error": "ending", "message": "The server ends. Nothing more is known of this request."}
            await JSONResponse(said, 503)(scope, receive, self._send)

    async def _sending(self, message: Message) -> None:
        self._has_begun = True
        await self._send(message)


def allowed_hosts(address: Address, names: tuple[str, ...]) -> TransportSecuritySettings:
    """Under which names a server may be asked, and from pages of which origin.

    `names`: those it has for other machines. An address that others can reach is one of them.
    """
    known = [*_LOCAL, *names]
    if not address.is_local and not address.is_everywhere:
        known.append(f"[{address.host}]" if ":" in address.host else address.host)
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{name}:*" for name in known] + list(names),
        allowed_origins=[f"http://{name}:{address.port}" for name in known],
    )
