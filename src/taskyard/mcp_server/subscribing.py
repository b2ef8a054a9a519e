"""
Who wants to hear of changes of a resource, and how they hear: on a stream they opened (`subscriptions/listen`), or, by
the older protocol, as notifications after `resources/subscribe`.

Only what somebody is subscribed to is watched, once however many they are, and until the last of them leaves. The
kernel tells of changes, or the list's server; nothing is looked at again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

import anyio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ServerEvent
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from taskyard.disk.async_follow import Folder, followed
from taskyard.errors import TaskyardError
from taskyard.lists.async_alarm import Told, told
from taskyard.mcp_server.answers import protocol_error
from taskyard.mcp_server.callers import Caller, Callers, Request
from taskyard.mcp_server.places import Place, place_of, resources_place
from taskyard.mcp_server.yard_server import YardServer

#: Resources that one caller, or one stream, may be subscribed to.
_MOST = 100

End = Callable[[], object]


class Subscriptions:
    """Everyone who is subscribed to something."""

    def __init__(self, callers: Callers, bus: InMemorySubscriptionBus) -> None:
        """`bus`: where changes are told."""
        self._callers = callers
        self._bus = bus
        self._watches = Watches(bus)
        self._stream = ListenHandler(bus)
        self._ends: dict[Caller, dict[str, End]] = {}  # of subscriptions by the older protocol

    def offer(self, server: YardServer) -> None:
        """Have `server` take subscriptions."""
        server.serve("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        server.serve("resources/subscribe", SubscribeRequestParams, self._subscribe)
        server.serve("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    async def _listen(self, ctx: Request, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Tell one stream, until its client closes it."""
        caller, wanted = await self._callers.find(ctx), params.notifications
        with ExitStack() as held:
            for uri in _few(set(wanted.resource_subscriptions or ())):
                held.callback(self._watches.hold(await _place(caller, uri)))
            if wanted.resources_list_changed:
                held.callback(self._watches.hold(resources_place(caller.yard)))
            return await self._stream(ctx, params)

    async def _subscribe(self, ctx: Request, params: SubscribeRequestParams) -> EmptyResult:
        caller, uri = await self._callers.find(ctx), params.uri
        place = await _place(caller, uri)
        if caller not in self._ends:
            self._ends[caller] = {}
            caller.at_end(lambda: self._leave(caller))
        mine = self._ends[caller]
        if uri not in mine:
            _few({*mine, uri})
            mine[uri] = self._begin(place, ctx.session, uri)
        return EmptyResult()

    async def _unsubscribe(self, ctx: Request, params: UnsubscribeRequestParams) -> EmptyResult:
        end = self._ends.get(await self._callers.find(ctx), {}).pop(params.uri, None)
        if end is not None:
            end()
        return EmptyResult()

    def _leave(self, caller: Caller) -> None:
        for end in self._ends.pop(caller, {}).values():
            end()

    def _begin(self, place: Place, session: ServerSession, uri: str) -> End:
        """Tell a client of the older protocol of changes; how to end that."""
        changed, held = asyncio.Event(), ExitStack()
        held.callback(self._watches.hold(place))
        held.callback(self._bus.subscribe(lambda event: changed.set() if event == place.event else None))
        held.callback(asyncio.create_task(_tell(session, uri, changed)).cancel)
        return held.close


class Watches:
    """What is watched, for how many."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self._bus = bus
        self._held: dict[ServerEvent, tuple[int, End]] = {}

    def hold(self, place: Place) -> End:
        """Have a place watched, from now on; how to end that, for this holder."""
        count, end = self._held.get(place.event) or (0, self._begin(place))
        self._held[place.event] = (count + 1, end)
        return lambda: self._let_go(place.event)

    def _let_go(self, event: ServerEvent) -> None:
        count, end = self._held.pop(event)
        if count > 1:
            self._held[event] = (count - 1, end)
        else:
            end()

    def _begin(self, place: Place) -> End:
        with ExitStack() as held:
            folder: Folder | Told
            if place.wait is None:
                folder = held.enter_context(followed(place.folder))
            else:
                folder = held.enter_context(told(place.wait))
            folder.look()  # all that changes from here on is news
            held.callback(asyncio.create_task(self._watch(place, folder)).cancel)
            return held.pop_all().close

    async def _watch(self, place: Place, folder: Folder | Told) -> None:
        there = place.is_there
        while True:
            names = await folder.news()
            before, there = there, place.is_there
            if place.concerns(names) and (before or there):  # not if only what is around it came to be
                await self._bus.publish(place.event)
                await asyncio.sleep(place.pause)


async def _tell(session: ServerSession, uri: str, changed: asyncio.Event) -> None:
    while True:
        await changed.wait()
        changed.clear()
        try:
            await session.send_resource_updated(uri)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody is there any more


async def _place(caller: Caller, uri: str) -> Place:
    try:
        return await asyncio.to_thread(place_of, caller.yard, uri)
    except TaskyardError as error:
        raise protocol_error(error) from error


def _few(uris: set[str]) -> set[str]:
    if len(uris) > _MOST:
        raise MCPError(INVALID_PARAMS, f"At most {_MOST} resources can be subscribed to; these are {len(uris)}.")
    return uris
