"""Streams: what becomes of a list, what a job prints, what happens to jobs."""

from __future__ import annotations

from functools import partial

import anyio
from starlette.requests import Request
from starlette.responses import Response

from taskyard.disk.async_follow import followed
from taskyard.runtime.events import Event, to_json
from taskyard.runtime.folder import JobFolder
from taskyard.shapes import as_text
from taskyard.web.answers import TOO_MANY, dumped
from taskyard.web.channel import event
from taskyard.web.printed import Printed, reader_of, window_json
from taskyard.web.site import Site
from taskyard.web.sse import HEARTBEAT, EventStream, Say, Teller
from taskyard.web.values import KINDS, Given

#: Seconds in which what a job prints gathers: no eye sees more often.
_GATHER = 0.03

#: Seconds after which a job is looked at although nothing was heard of it.
_LOOK = 5.0

#: Events of jobs that are read at once.
_BATCH = 200


async def stream(site: Site, given: Given, request: Request) -> Response:
    """What becomes of a list, what one job prints, or both."""
    if site.is_full:
        return TOO_MANY.answer(**{"Retry-After": "5"})
    tellers: list[Teller] = []
    name, job = given.word("list"), given.word("job")
    if job is not None:
        await site.threads.look(partial(reader_of, site, job))  # says so if there is none
        await site.threads.look(partial(site.live.see, job))
        tellers.append(partial(_output, site, job, given.number("after") if "after" in given else None))
    if job is None or name is not None:
        async with site.lists.shown(name):  # the same
            mark = request.headers.get("last-event-id") or given.text("last_event_id")
            tellers.append(partial(_changes, site, name, mark))
    return EventStream(site, *tellers)


async def _changes(site: Site, name: str | None, mark: str, say: Say) -> None:
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


async def _output(site: Site, job: str, start: int | None, say: Say) -> None:
    printed = Printed(await site.threads.look(partial(reader_of, site, job)), start)
    with followed(JobFolder(site.yard.home, job).path) as folder:
        said_at = anyio.current_time()
        while True:
            folder.look()
            window, is_over = await site.threads.look(printed.more)
            if window is not None:
                await say(event(b"output", "", dumped(window_json(window, is_over=is_over))))
                said_at = anyio.current_time()
            if printed.is_behind:
                continue
            if is_over:
                return
            await folder.news(_LOOK)
            await anyio.sleep(_GATHER)
            if anyio.current_time() - said_at > site.options.heartbeat:
                await say(HEARTBEAT)
                said_at = anyio.current_time()


async def events(site: Site, given: Given, request: Request) -> Response:
    """What happens to jobs, from any id on: also after this server was started anew."""
    if site.is_full:
        return TOO_MANY.answer(**{"Retry-After": "5"})
    last = request.headers.get("last-event-id")
    since = KINDS["event"].check("Last-Event-ID", last) if last else given.get("since")
    begin = since if isinstance(since, int) else None
    first, position = await site.threads.look(partial(_events_after, site, begin, given.word("job")))
    return EventStream(site, partial(_job_events, site, given.word("job"), first, position))


async def _job_events(site: Site, job: str | None, found: list[Event], position: int, say: Say) -> None:
    with site.events.listening() as bell:
        while True:
            if found:
                await say(b"".join(_encoded(each) for each in found))
            elif not await bell.wait(site.options.heartbeat):
                await say(HEARTBEAT)
            found, position = await site.threads.look(partial(_events_after, site, position, job))


def _events_after(site: Site, position: int | None, job: str | None) -> tuple[list[Event], int]:
    """Some of what came after an id, and where to go on."""
    events = site.yard.events(position, job=job)
    found: list[Event] = []
    for each in events:
        found.append(each)
        if len(found) >= _BATCH:
            break
    return found, events.position


def _encoded(found: Event) -> bytes:
    return event(as_text(found.subtype).encode(), str(found.id), dumped(to_json(found)))
