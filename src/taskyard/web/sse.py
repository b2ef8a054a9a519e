"""
An answer that goes on: server-sent events, until whoever listens is gone or there is nothing more to say.

Who does not read for a while is let go: what waits for it stays bounded, and it comes back with the last id it has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from taskyard.errors import TaskyardError
from taskyard.web.answers import dumped, error_body
from taskyard.web.channel import event
from taskyard.web.site import Site

HEARTBEAT = b": still here\n\n"

#: Says that somebody is there before anything happens, and how soon to come back, in milliseconds.
HELLO = b"retry: 1000\n: hello\n\n"

_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]

Say = Callable[[bytes], Awaitable[None]]

#: Something that has events to tell.
Teller = Callable[[Say], Awaitable[None]]


class EventStream(Response):
    """What some tellers have to say, as it comes."""

    def __init__(self, site: Site, *tellers: Teller) -> None:
        super().__init__()
        self._site = site
        self._tellers = tellers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell until there is nobody to tell, or nothing."""
        self._site.metrics.streams += 1
        try:
            async with anyio.create_task_group() as listener:
                listener.start_soon(self._until_gone, receive, listener.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                say = self._saying(send, listener.cancel_scope)
                await say(HELLO)
                async with anyio.create_task_group() as all_tellers:
                    for teller in self._tellers:
                        all_tellers.start_soon(_told, teller, say)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                listener.cancel_scope.cancel()
        finally:
            self._site.metrics.streams -= 1

    async def _until_gone(self, receive: Receive, everything: anyio.CancelScope) -> None:
        while True:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                everything.cancel()
                return

    def _saying(self, send: Send, everything: anyio.CancelScope) -> Say:
        async def say(data: bytes) -> None:
            with anyio.move_on_after(self._site.options.patience) as waited:
                await send({"type": "http.response.body", "body": data, "more_body": True})
            if waited.cancelled_caught:
                everything.cancel()  # it does not read
                await anyio.sleep_forever()

        return say


async def _told(teller: Teller, say: Say) -> None:
    """An error in the middle of a stream is told as its last event."""
    try:
        await teller(say)
    except TaskyardError as error:
        await say(event(b"error", "", dumped(error_body(error))))
