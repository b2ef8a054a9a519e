"""Server-sent event streams: changes of a list, output of a job, events of all jobs.

A client that does not read for `patience` seconds is disconnected, so buffers stay bounded; it reconnects with its
last event id. An error within a stream is sent as its last event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from taskyard.core.values import as_text
from taskyard.errors import TaskyardError
from taskyard.jobs.events import Event, to_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.storage.async_change_feed import subscribe_async
from taskyard.ui.web.channel import encode_event
from taskyard.ui.web.reads import OutputFollower, open_reader, window_json
from taskyard.ui.web.site import Site
from taskyard.ui.web.values import PARAM_KINDS, TOO_MANY, Params, encode_json, error_body

HEARTBEAT = b": still here\n\n"

#: Sent first: the connection works, and the client should reconnect after 1000 milliseconds.
HELLO = b"retry: 1000\n: hello\n\n"

_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]

WriteBytes = Callable[[bytes], Awaitable[None]]

#: A coroutine that writes events until it has no more.
EventSource = Callable[[WriteBytes], Awaitable[None]]


class EventStream(Response):
    """A response that merges the events of several sources as they arrive."""

    def __init__(self, site: Site, *sources: EventSource) -> None:
        super().__init__()
        self._site = site
        self._sources = sources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the client disconnects or all sources end."""
        self._site.metrics.streams += 1
        try:
            async with anyio.create_task_group() as listener:
                listener.start_soon(self._until_gone, receive, listener.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                say = self._make_writer(send, listener.cancel_scope)
                await say(HELLO)
                async with anyio.create_task_group() as all_sources:
                    for teller in self._sources:
                        all_sources.start_soon(_run_source, teller, say)
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

    def _make_writer(self, send: Send, everything: anyio.CancelScope) -> WriteBytes:
        async def say(data: bytes) -> None:
            with anyio.move_on_after(self._site.options.patience) as waited:
                await send({"type": "http.response.body", "body": data, "more_body": True})
            if waited.cancelled_caught:
                everything.cancel()  # the client does not read
                await anyio.sleep_forever()

        return say


async def _run_source(teller: EventSource, say: WriteBytes) -> None:
    """Run a source; send its error as the last event."""
    try:
        await teller(say)
    except TaskyardError as error:
        await say(encode_event(b"error", "", encode_json(error_body(error))))


#: Seconds for which output of a job is collected into one event.
_COALESCE_SECONDS = 0.03

#: Seconds after which a job is read although no event arrived.
_POLL_INTERVAL = 5.0

#: Job events read at once.
_BATCH = 200


async def stream(site: Site, given: Params, request: Request) -> Response:
    """Stream the changes of a list, the output of one job, or both."""
    if site.is_full:
        return TOO_MANY.answer(**{"Retry-After": "5"})
    sources: list[EventSource] = []
    name, job = given.word("list"), given.word("job")
    if job is not None:
        await site.threads.look(partial(open_reader, site, job))  # raises if there is no such job
        await site.threads.look(partial(site.live.see, job))
        sources.append(partial(_output, site, job, given.number("after") if "after" in given else None))
    if job is None or name is not None:
        async with site.lists.shown(name):  # raises if there is no such list
            mark = request.headers.get("last-event-id") or given.text("last_event_id")
            sources.append(partial(_changes, site, name, mark))
    return EventStream(site, *sources)


async def _changes(site: Site, name: str | None, mark: str, say: WriteBytes) -> None:
    async with site.lists.shown(name) as shown:
        channel = shown.channel
        number = site.numbers.parsed(mark)
        with channel.listening() as bell:
            while True:
                items = channel.after(number)
                if items is None:
                    items = [await site.threads.look(channel.whole)]
                    site.metrics.whole += 1
                if items:
                    await say(b"".join(item.data for item in items))
                    number = items[-1].number
                elif not await bell.wait(site.options.heartbeat):
                    await say(HEARTBEAT)


async def _output(site: Site, job: str, start: int | None, say: WriteBytes) -> None:
    printed = OutputFollower(await site.threads.look(partial(open_reader, site, job)), start)
    with subscribe_async(JobPaths(site.yard.home, job).path) as folder:
        sent_at_time = anyio.current_time()
        while True:
            folder.look()
            window, is_over = await site.threads.look(printed.more)
            if window is not None:
                await say(encode_event(b"output", "", encode_json(window_json(window, is_over=is_over))))
                sent_at_time = anyio.current_time()
            if printed.is_behind:
                continue
            if is_over:
                return
            await folder.news(_POLL_INTERVAL)
            await anyio.sleep(_COALESCE_SECONDS)
            if anyio.current_time() - sent_at_time > site.options.heartbeat:
                await say(HEARTBEAT)
                sent_at_time = anyio.current_time()


async def events(site: Site, given: Params, request: Request) -> Response:
    """Stream job events after any id, including ids from before a restart of this server."""
    if site.is_full:
        return TOO_MANY.answer(**{"Retry-After": "5"})
    last = request.headers.get("last-event-id")
    since = PARAM_KINDS["event"].check("Last-Event-ID", last) if last else given.get("since")
    begin = since if isinstance(since, int) else None
    first, position = await site.threads.look(partial(_events_after, site, begin, given.word("job")))
    return EventStream(site, partial(_job_events, site, given.word("job"), first, position))


async def _job_events(site: Site, job: str | None, found: list[Event], position: int, say: WriteBytes) -> None:
    with site.events.listening() as bell:
        while True:
            if found:
                await say(b"".join(_encode_job_event(each) for each in found))
            elif not await bell.wait(site.options.heartbeat):
                await say(HEARTBEAT)
            found, position = await site.threads.look(partial(_events_after, site, position, job))


def _events_after(site: Site, position: int | None, job: str | None) -> tuple[list[Event], int]:
    """Return up to `_BATCH` events after an id, and the position to continue from."""
    events = site.yard.events(position, job=job)
    found: list[Event] = []
    for each in events:
        found.append(each)
        if len(found) >= _BATCH:
            break
    return found, events.position


def _encode_job_event(found: Event) -> bytes:
    return encode_event(as_text(found.subtype).encode(), str(found.id), encode_json(to_json(found)))
