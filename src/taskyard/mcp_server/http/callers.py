"""
Who is at the other end of a request over HTTP: an agent instance, for as long as it keeps asking.

    with a session (2025-11-25)        the session is the caller: two of one name are `ada` and `ada-2`
    without (2026-07-28)               the name is the caller

A request that is being answered, or a stream that is open, is a sign of life. Whoever ends the session, or gives none
for the time of a lease, is gone: its claims and the notices it did not acknowledge go back, and its jobs end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

import anyio
import anyio.to_thread
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request as HttpRequest

from taskyard.app import Yard
from taskyard.app import open as open_yard
from taskyard.clock import now_ms
from taskyard.config import Settings
from taskyard.errors import TaskyardError, TooManyCallers
from taskyard.mcp_server.answers import protocol_error
from taskyard.mcp_server.callers import Caller, Request, clean_name, client_name
from taskyard.mcp_server.http.claims import Claims
from taskyard.names import check_name

T = TypeVar("T")

#: Where a request says who asks, if not by its client's own name.
HEADER, PARAMETER = "taskyard-agent", "agent"

SESSION = "mcp-session-id"

#: Claims are written anew, and the silent noticed, this often within the time of a lease; never more rarely than
#: every half minute.
_PARTS, _RAREST = 20, 30.0

_log = logging.getLogger("taskyard.mcp")


class Guest:
    """A caller, and when it was last heard of."""

    def __init__(self, key: str, caller: Caller) -> None:
        self.key = key
        self.caller = caller
        self.seen = time.monotonic()
        self.renewed = self.seen


class HttpCallers:
    """Everyone who asks over HTTP."""

    def __init__(self, *, agent: str | None, list: str | None, tasks_dir: str | None, settings: Settings) -> None:
        """`agent`: the name of every caller; else each says its own."""
        self._agent = agent
        self._list = list
        self._tasks_dir = tasks_dir
        self._lease = settings.mcp_lease
        self._most = settings.mcp_callers
        self._every = min(self._lease / _PARTS, _RAREST)
        self._yard = open_yard(list=list, tasks_dir=tasks_dir, via="mcp", is_person=True)
        self._claims = Claims(self._yard)
        self._guests: dict[str, Guest] = {}
        self._left: set[str] = set()  # names of those who left a moment ago
        self._visits: dict[str, int] = {}  # requests that are being answered, by caller
        self._door = anyio.Lock()  # one enters or leaves at a time
        self._desk = anyio.CapacityLimiter(1)  # a thread for claims alone: one at a time, and no call keeps it waiting

    @property
    def list_name(self) -> str:
        """The list they share."""
        return self._yard.tasks.name

    async def find(self, request: Request) -> Caller:
        """Whoever asks for this; it enters with its first request.

        Raises:
            BadName: it calls itself what nobody can be called.
            TooManyCallers: there is no room for another.
            MCPError: the same, where the answer is not a tool's.
        """
        try:
            return await self._found(request)
        except TaskyardError as error:
            if request.method == "tools/call":
                raise
            raise protocol_error(error) from error

    async def _found(self, request: Request) -> Caller:
        http = cast("HttpRequest", request.request)
        name = self._name(http, client_name(request))
        session = http.headers.get(SESSION) if request.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS else None
        key = session_key(session) if session else f"name:{name}"
        visit = http.scope["taskyard.visit"]
        assert isinstance(visit, Visit)
        visit.is_of(key)
        guest = self._guests.get(key)
        if guest is None:
            async with self._door:
                guest = self._guests.get(key) or await self._entered(key, name)
        elif time.monotonic() - guest.renewed > self._every:
            await self._renew([guest])
        return guest.caller

    def _name(self, http: HttpRequest, own: str) -> str:
        """The name a request is made under."""
        given = self._agent or http.headers.get(HEADER) or http.query_params.get(PARAMETER)
        return check_name("an agent", given) if given else clean_name(own)

    async def _entered(self, key: str, name: str) -> Guest:
        while len(self._guests) >= self._most:
            await self._make_room()

        def enter() -> Yard:
            return open_yard(
                list=self._list,
                tasks_dir=self._tasks_dir,
                agent=name,
                via="mcp",
                lease=self._lease,
                sharing=self._yard,
            )

        yard = await anyio.to_thread.run_sync(enter)
        guest = self._guests[key] = Guest(key, Caller(yard, lease=self._lease, asks_roots=True))
        await self._renew([guest])  # what it held before this server was started is its own again
        return guest

    async def _make_room(self) -> None:
        """Let go of whoever was silent the longest and holds nothing."""
        for guest in sorted(self._guests.values(), key=lambda guest: guest.seen):
            if self._visits.get(guest.key):
                continue
            if not await self._at_desk(partial(self._claims.has_any, guest.caller.name)):
                await self._let_go(guest)
                return
        raise TooManyCallers(self._most)

    def came(self, key: str) -> None:
        """A request of this caller begins."""
        self._visits[key] = self._visits.get(key, 0) + 1
        self._heard_of(key)

    def went(self, key: str) -> None:
        """A request of this caller is over."""
        left = self._visits.pop(key, 0) - 1
        if left > 0:
            self._visits[key] = left
        self._heard_of(key)

    def _heard_of(self, key: str) -> None:
        if (guest := self._guests.get(key)) is not None:
            guest.seen = time.monotonic()

    async def end(self, key: str) -> None:
        """A caller is gone."""
        async with self._door:
            if (guest := self._guests.get(key)) is not None:
                await self._let_go(guest)

    async def _let_go(self, guest: Guest) -> None:
        """Give back what it held; its name is free only then."""
        self._guests.pop(guest.key, None)
        self._left.add(guest.caller.name)
        with anyio.CancelScope(shield=True):
            await self._give_back(guest.caller.name)
            await guest.caller.leave()

    async def _give_back(self, name: str) -> None:
        try:
            await self._at_desk(partial(self._claims.give_back, name))
        except TaskyardError as error:
            _log.warning("What %s held goes back when its time is up: %s", name, error)

    async def watch(self) -> None:
        """Keep what the living hold, and let go of the silent; without end."""
        while True:
            await anyio.sleep(self._every)
            left, self._left = self._left, set()
            for name in left.difference(guest.caller.name for guest in self._guests.values()):
                await self._give_back(name)  # what a call on its way when it left has taken since
            for key in self._visits:
                self._heard_of(key)
            await self._renew([guest for guest in self._guests.values() if guest.seen > guest.renewed])
            for guest in list(self._guests.values()):
                async with self._door:
                    if self._guests.get(guest.key) is guest and self._is_silent(guest):
                        await self._let_go(guest)

    def _is_silent(self, guest: Guest) -> bool:
        return not self._visits.get(guest.key) and time.monotonic() - guest.seen >= self._lease

    async def _renew(self, guests: list[Guest]) -> None:
        if not guests:
            return
        names = {guest.caller.name for guest in guests}
        for guest in guests:
            guest.renewed = time.monotonic()
        try:
            await self._at_desk(lambda: self._claims.renew(names, now_ms()))
        except TaskyardError as error:
            _log.warning("Claims could not be renewed: %s", error)

    async def _at_desk(self, act: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(act, limiter=self._desk)

    async def close(self) -> None:
        """The server ends; its callers do not: their claims wait for them, as long as the lease says."""
        for guest in list(self._guests.values()):
            await guest.caller.leave()
        self._guests.clear()
        self._yard.close()


class Visit:
    """One request, from its arrival to its end."""

    def __init__(self, callers: HttpCallers) -> None:
        self._callers = callers
        self._key: str | None = None

    def is_of(self, key: str) -> None:
        """It is known whose it is."""
        if self._key is None:
            self._key = key
            self._callers.came(key)

    def over(self) -> None:
        """It was answered, or given up."""
        if self._key is not None:
            self._callers.went(self._key)


def session_key(session: str) -> str:
    """What stands for the caller of a session."""
    return f"session:{session}"
