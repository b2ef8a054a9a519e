"""Requests that are being answered: calls, which get a moment at the end, and streams, which only listen."""

from __future__ import annotations

import anyio
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Exchange:
    """A request and its answer, which may be ended early and then still is an answer."""

    def __init__(self, send: Send, ending: Response) -> None:
        self._send = send
        self._ending = ending
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
            await self._ending(scope, receive, self._send)

    async def _sending(self, message: Message) -> None:
        self._has_begun = True
        await self._send(message)


class Exchanges:
    """Everything that is being answered."""

    def __init__(self, ending: Response) -> None:
        """`ending`: the answer to those that had none when the server ended."""
        self._ending = ending
        self._open: dict[Exchange, bool] = {}  # whether it only listens
        self._quiet = anyio.Event()
        self._is_over = False

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, listens: bool) -> None:
        """Have `app` answer a request; one that comes after the end is told so."""
        if self._is_over:
            await self._ending(scope, receive, send)
            return
        exchange = Exchange(send, self._ending)
        self._open[exchange] = listens
        try:
            await exchange.run(app, scope, receive)
        finally:
            del self._open[exchange]
            if not self._calls:
                self._quiet.set()

    @property
    def _calls(self) -> int:
        return sum(not listens for listens in self._open.values())

    async def quiet(self) -> None:
        """Return when no call is being answered."""
        while self._calls:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    def end(self) -> None:
        """Answer nothing any more."""
        self._is_over = True
        for exchange in self._open:
            exchange.end()
