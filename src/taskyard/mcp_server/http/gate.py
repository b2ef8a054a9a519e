"""
What a request must show before the protocol sees any of it.

    1. Host and Origin     a page in a browser that points its own name at this machine is turned away
    2. the token           without it nothing is told but that a server lives here (`/healthz`)

No answer allows another origin to read it: there is no CORS here.
"""

from __future__ import annotations

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskyard.mcp_server.http.callers import SESSION, HttpCallers, Visit, session_key
from taskyard.serving.address import Address
from taskyard.serving.bearer import brings, challenge
from taskyard.serving.exchanges import Exchanges
from taskyard.serving.hosts import names_of
from taskyard.serving.token import Token

HEALTH = "/healthz"

_ENDING = {"error": "ending", "message": "The server ends. Nothing more is known of this request."}


class Gate:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, *, token: Token, hosts: TransportSecuritySettings, callers: HttpCallers) -> None:
        self._app = app
        self._token = token
        self._hosts = TransportSecurityMiddleware(hosts)
        self._callers = callers
        self.exchanges = Exchanges(JSONResponse(_ENDING, 503))

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

    def caller(self, headers: Headers) -> str | None:
        """Who asks: whoever has the token, by one name."""
        return "mcp" if brings(headers, self._token) else None

    def _stranger(self, request: Request) -> Response | None:
        """The refusal for whoever does not bring the token."""
        if self.caller(request.headers) is not None:
            return None
        said = "Bring the token: `Authorization: Bearer …`. `taskyard mcp --show-token` shows it to whoever may know."
        return JSONResponse({"error": "unauthorized", "message": said}, 401, headers=challenge(request.headers))

    async def _let_in(self, request: Request, receive: Receive, send: Send) -> None:
        visit = Visit(self._callers)
        request.scope["taskyard.visit"] = visit
        session = request.headers.get(SESSION)
        if session and request.method != "DELETE":
            visit.is_of(session_key(session))
        listens = request.method == "GET" or request.headers.get("mcp-method") == "subscriptions/listen"
        if session and request.method == "DELETE":
            send = self._ending(session, send)
        try:
            await self.exchanges.run(self._app, request.scope, receive, send, listens=listens)
        finally:
            visit.over()

    def _ending(self, session: str, send: Send) -> Send:
        """Tells a client that its session is over once what it held is back."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                await self._callers.end(session_key(session))
            await send(message)

        return sending


def allowed_hosts(address: Address, names: tuple[str, ...]) -> TransportSecuritySettings:
    """Under which names a server may be asked, and from pages of which origin.

    `names`: those it has for other machines. An address that others can reach is one of them.
    """
    known = names_of(address, names)
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{name}:*" for name in known] + list(names),
        allowed_origins=[f"http://{name}:{address.port}" for name in known],
    )
