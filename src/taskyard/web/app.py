"""
The server's application: a request is checked, its route found, what it brings checked, then answered.

    1. Host and Origin     a page in a browser that points its own name at this machine is turned away
    2. the route           what is not in the table is not there
    3. the token           without it nothing is told but the page itself, which knows nothing
    4. what it brings      by the kinds of its values, bounded
    5. may it              what changes something is refused unless the server was told to let it

No answer allows another origin to read it, none sets a cookie, and none can be shown in a frame.
"""

from __future__ import annotations

import json
import logging
import time

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from taskyard.errors import BadValue, TaskyardError, UsageError
from taskyard.serving.bearer import brings, challenge
from taskyard.serving.exchanges import Exchanges
from taskyard.serving.hosts import Hosts
from taskyard.serving.token import Token
from taskyard.shapes import as_object
from taskyard.web.answers import ENDING, FAILED, NO_PAGE, READ_ONLY, TOO_LARGE, Refusal, refused
from taskyard.web.routes import Route, Table
from taskyard.web.site import Site
from taskyard.web.values import Given, given

#: Bytes of a body: the longest text that can be sent, escaped, and the rest of a request.
LARGEST_BODY = 8_000_000

#: Characters of an address.
LONGEST_ADDRESS = 8_000

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

#: On every answer.
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}

_SENT = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_NO_STORE = (b"cache-control", b"no-store")

_STRANGER = (
    "Bring the token: `Authorization: Bearer …`. It stands in the address that `taskyard web` printed, and in the file "
    "web-token of TASKYARD_HOME."
)

_log = logging.getLogger("taskyard.web")


class App:
    """Everything that is answered here."""

    def __init__(self, site: Site, *, token: Token, hosts: Hosts) -> None:
        self._site = site
        self._token = token
        self._hosts = hosts
        self._table = Table()
        self.exchanges = Exchanges(ENDING.answer())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began = time.monotonic()
        request = Request(scope, receive)
        route, inside, methods = self._table.find(request.method, scope["path"])
        sending = _Sending(send, is_private=route is None or not route.is_open)

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = self._refusal(request, route, methods) or await self._response(request, route, inside)
            await response(scope, receive, send)

        listens = route is not None and route.is_stream
        try:
            await self.exchanges.run(answer, scope, receive, sending, listens=listens)
        except ClientDisconnect:
            pass  # nobody is there to be told
        finally:
            name = route.path if route is not None else "none"
            self._site.metrics.note(name, sending.status, None if listens else time.monotonic() - began)

    def caller(self, headers: Headers) -> str | None:
        """Who asks: whoever has the token, by one name."""
        return "web" if brings(headers, self._token) else None

    def _refusal(self, request: Request, route: Route | None, methods: tuple[str, ...]) -> Response | None:
        """Why a request is not looked at any closer, if so."""
        headers = request.headers
        if len(headers.getlist("host")) != 1 or not self._hosts.knows(headers["host"]):
            return Refusal(421, "wrong_host", "This server is not called so. See --allow-host.").answer()
        if not all(self._hosts.welcomes(origin) for origin in headers.getlist("origin")):
            return Refusal(403, "wrong_origin", "This is no page of this server's.").answer()
        if len(request.scope["path"]) + len(request.scope["query_string"]) > LONGEST_ADDRESS:
            return Refusal(414, "too_large", "The address is longer than any of ours.").answer()
        is_open = route is not None and route.is_open
        if not is_open and self.caller(headers) is None:
            return Refusal(401, "unauthorized", _STRANGER).answer(**challenge(headers))
        if methods:
            said = f"This address takes {' or '.join(methods)}."
            return Refusal(405, "method_not_allowed", said).answer(Allow=", ".join(methods))
        return NO_PAGE.answer() if route is None else None

    async def _response(self, request: Request, route: Route | None, inside: dict[str, str]) -> Response:
        assert route is not None
        if route.is_action and not self._site.options.allow_actions:
            return READ_ONLY.answer()
        request.scope["path_params"] = inside
        try:
            brought = Given(route.fixed)
            brought.update(given(route.inside, ((v.name, inside[v.name]) for v in route.inside), where="address"))
            brought.update(given(route.query, request.query_params.multi_items(), where="address"))
            if route.is_action:
                body = await _body(request)
                if body is None:
                    return TOO_LARGE.answer()
                brought.update(given(route.body, body.items(), where="body"))
            return await route.handler(self._site, brought, request)
        except TaskyardError as error:
            return refused(error)
        except ClientDisconnect:
            raise
        except Exception:
            _log.exception("%s %s could not be answered.", request.method, route.path)
            return FAILED.answer()


async def _body(request: Request) -> dict[str, object] | None:
    """What the body says; None: it is too large.

    Raises:
        UsageError: it is no JSON object.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise UsageError("The body must be JSON, and say so: `Content-Type: application/json`.")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            return None
        parts.append(part)
    try:
        found = as_object(json.loads(b"".join(parts)))
    except (ValueError, RecursionError):
        found = None
    if found is None:
        raise BadValue("The body", "", "a JSON object", found="cannot be read")
    return found


class _Sending:
    """Puts on every answer what every answer has, and remembers its status."""

    def __init__(self, send: Send, *, is_private: bool) -> None:
        self._send = send
        self._is_private = is_private
        self.status = 499  #: nobody was left to answer

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [*message.get("headers", ()), *_SENT]
            if self._is_private:
                own.append(_NO_STORE)
            message = {**message, "headers": own}
        await self._send(message)
