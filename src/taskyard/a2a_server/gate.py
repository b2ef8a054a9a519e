"""
What a request must show before the protocol sees any of it.

    1. Host and Origin     a page in a browser that points its own name at this machine is turned away
    2. the token           names the caller; without one there is only the card, which is public and takes no body
    3. its size            bounded, and read before anything is done with it

No answer allows another origin to read it: there is no CORS here.
"""

from __future__ import annotations

from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from starlette.authentication import SimpleUser
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskyard.a2a_server.tokens import Callers
from taskyard.errors import TaskyardError
from taskyard.serving.bearer import brings, challenge
from taskyard.serving.exchanges import Exchanges
from taskyard.serving.hosts import Hosts

#: Verbs that only listen: they get no moment at the end of the server.
_LISTENING = (b'"SendStreamingMessage"', b'"SubscribeToTask"')

_ENDING = {"error": "ending", "message": "The server ends. Tasks go on; ask again when it is back."}


class Gate:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, *, callers: Callers, hosts: Hosts, most: int) -> None:
        """`most`: bytes of one request."""
        self._app = app
        self._callers = callers
        self._hosts = hosts
        self._most = most
        self.exchanges = Exchanges(JSONResponse(_ENDING, 503))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        path = str(scope["path"]).rstrip("/") or "/"
        scope = {**scope, "path": path}  # a redirect to it would lead past a proxy
        request = Request(scope, receive)
        refused = self._stranger(request)
        body = b""
        if refused is None and path != AGENT_CARD_WELL_KNOWN_PATH:
            try:
                found = await self._body(request)
            except ClientDisconnect:
                return
            if found is None:
                refused = _refusal(413, "too_large", f"A request has at most {self._most:,} bytes.")
            else:
                body = found
        if refused is not None:
            await refused(scope, receive, send)
            return
        listens = path.endswith((":stream", ":subscribe")) or any(verb in body for verb in _LISTENING)
        await self.exchanges.run(self._app, scope, _Again(body, receive), send, listens=listens)

    def _stranger(self, request: Request) -> Response | None:
        """The refusal for whoever may not ask; whoever may is named in the scope."""
        headers = request.headers
        if len(headers.getlist("host")) != 1 or not self._hosts.knows(headers["host"]):
            return _refusal(421, "wrong_host", "This server is not called so. See --allow-host.")
        if not all(self._hosts.welcomes(origin) for origin in headers.getlist("origin")):
            return _refusal(403, "wrong_origin", "This is no page of this server's.")
        if request.url.path == AGENT_CARD_WELL_KNOWN_PATH:
            return None
        try:
            caller = self._caller(headers)
        except TaskyardError:
            return _refusal(503, "unready", "The tokens of this server cannot be read.")
        if caller is None:
            said = "Bring a token: `Authorization: Bearer …`. Whoever serves gets one from `taskyard a2a token`."
            return _refusal(401, "unauthorized", said, **challenge(headers))
        request.scope["user"] = SimpleUser(caller)
        return None

    def caller(self, headers: Headers) -> str | None:
        """Whose token a request has, if any can be read."""
        try:
            return self._caller(headers)
        except TaskyardError:
            return None

    def _caller(self, headers: Headers) -> str | None:
        return next((name for name, token in self._callers.known().items() if brings(headers, token)), None)

    async def _body(self, request: Request) -> bytes | None:
        """What a request brings; None if that is too much."""
        told = request.headers.get("content-length", "")
        if told.isascii() and told.isdigit() and (len(told) > 15 or int(told) > self._most):
            return None
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self._most:
                return None
        return bytes(body)


class _Again:
    """Hands out a body that was read, and then whatever comes."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._first: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._receive = receive

    async def __call__(self) -> Message:
        first, self._first = self._first, None
        return first if first is not None else await self._receive()


def _refusal(status: int, code: str, said: str, **headers: str) -> Response:
    return JSONResponse({"error": code, "message": said}, status, headers={"Cache-Control": "no-store", **headers})
