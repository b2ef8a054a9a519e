"""The ASGI application: check a request, find its route, parse its parameters, run the handler.

    1. Host and Origin     reject DNS rebinding and requests from other pages
    2. the route           only what is in the table exists
    3. the token           without it only the page itself is served, which has no data
    4. the parameters      checked by kind, bounded
    5. permission          changes are refused unless the server was started with --allow-actions

No answer allows another origin to read it, sets a cookie, or can be shown in a frame.
"""

from __future__ import annotations

import json
import logging
import time

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from taskyard.core.values import as_object
from taskyard.errors import BadValue, TaskyardError, UsageError
from taskyard.servers.http.access import AllowedHosts, Token, challenge, has_token
from taskyard.servers.http.server import Exchanges
from taskyard.ui.web.routes import Route, RouteTable
from taskyard.ui.web.site import Site
from taskyard.ui.web.values import (
    FAILED,
    NOT_FOUND,
    READ_ONLY,
    SHUTTING_DOWN,
    TOO_LARGE,
    Params,
    Refusal,
    error_response,
    parse_params,
)

#: Most bytes of a body: the longest text that can be sent, escaped, and the rest of a request.
LARGEST_BODY = 8_000_000

#: Most characters of an address (path and query).
LONGEST_ADDRESS = 8_000

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

#: Sent with every answer.
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}

_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_NO_STORE = (b"cache-control", b"no-store")

_UNAUTHORIZED_TEXT = (
    "Send the token: `Authorization: Bearer …`. It is in the address that `taskyard web` printed, and in the file "
    "web-token of TASKYARD_HOME."
)

_log = logging.getLogger("taskyard.ui.web")


class App:
    """The ASGI application of one site."""

    def __init__(self, site: Site, *, token: Token, hosts: AllowedHosts) -> None:
        self._site = site
        self._token = token
        self._hosts = hosts
        self._table = RouteTable()
        self.exchanges = Exchanges(SHUTTING_DOWN.answer())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began = time.monotonic()
        request = Request(scope, receive)
        route, inside, methods = self._table.find(request.method, scope["path"])
        sending = _ResponseSender(send, is_private=route is None or not route.is_open)

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = self._refusal(request, route, methods) or await self._response(request, route, inside)
            await response(scope, receive, send)

        listens = route is not None and route.is_stream
        try:
            await self.exchanges.run(answer, scope, receive, sending, listens=listens)
        except ClientDisconnect:
            pass  # the client is gone
        finally:
            name = route.path if route is not None else "none"
            self._site.metrics.note(name, sending.status, None if listens else time.monotonic() - began)

    def caller(self, headers: Headers) -> str | None:
        """Return the caller's identity: one name for all who have the token, else None."""
        return "web" if has_token(headers, self._token) else None

    def _refusal(self, request: Request, route: Route | None, methods: tuple[str, ...]) -> Response | None:
        """Return the response that rejects a request before its parameters are read; None if it is acceptable."""
        headers = request.headers
        if len(headers.getlist("host")) != 1 or not self._hosts.knows(headers["host"]):
            return Refusal(421, "wrong_host", "The Host header names another server. See --allow-host.").answer()
        if not all(self._hosts.allows_origin(origin) for origin in headers.getlist("origin")):
            return Refusal(403, "wrong_origin", "The request comes from another origin.").answer()
        if len(request.scope["path"]) + len(request.scope["query_string"]) > LONGEST_ADDRESS:
            return Refusal(414, "too_large", "The URL is too long.").answer()
        is_open = route is not None and route.is_open
        if not is_open and self.caller(headers) is None:
            return Refusal(401, "unauthorized", _UNAUTHORIZED_TEXT).answer(**challenge(headers))
        if methods:
            said = f"This address takes {' or '.join(methods)}."
            return Refusal(405, "method_not_allowed", said).answer(Allow=", ".join(methods))
        return NOT_FOUND.answer() if route is None else None

    async def _response(self, request: Request, route: Route | None, inside: dict[str, str]) -> Response:
        assert route is not None
        if route.is_action and not self._site.options.allow_actions:
            return READ_ONLY.answer()
        request.scope["path_params"] = inside
        try:
            brought = Params(route.fixed)
            brought.update(
                parse_params(route.inside, ((v.name, inside[v.name]) for v in route.inside), where="address")
            )
            brought.update(parse_params(route.query, request.query_params.multi_items(), where="address"))
            if route.is_action:
                body = await _read_body(request)
                if body is None:
                    return TOO_LARGE.answer()
                brought.update(parse_params(route.body, body.items(), where="body"))
            return await route.handler(self._site, brought, request)
        except TaskyardError as error:
            return error_response(error)
        except ClientDisconnect:
            raise
        except Exception:
            _log.exception("%s %s could not be answered.", request.method, route.path)
            return FAILED.answer()


async def _read_body(request: Request) -> dict[str, object] | None:
    """Return the parsed body; None if it is too large.

    Raises:
        UsageError: It is not a JSON object.
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


class _ResponseSender:
    """Add the common headers to an answer, and record its status."""

    def __init__(self, send: Send, *, is_private: bool) -> None:
        self._send = send
        self._is_private = is_private
        self.status = 499  #: status if the client disconnected before an answer

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [*message.get("headers", ()), *_RAW_HEADERS]
            if self._is_private:
                own.append(_NO_STORE)
            message = {**message, "headers": own}
        await self._send(message)
