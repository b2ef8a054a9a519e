"""The callers of the MCP server: one agent instance each, with its list, jobs, mail and folder.

Over stdio there is one caller for the whole process; its name is the configured one, else the client's own. Calls on
its list run side by side in threads, since hooks and acceptance checks may be slow; a cancelled call ends its hooks
and checks, and nothing of it is saved.

The folder of a client over HTTP is the first of its roots that is a folder of this machine, else the server's folder:

    with a session (2025-11-25)     the server sends `roots/list` on the stream of the client's first tool call
    without (2026-07-28)            that call is answered with `input_required`, and its retry has the roots

"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver.context import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import InputRequiredResult, ListRootsRequest, ListRootsResult
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from taskyard import config
from taskyard.errors import Cancelled
from taskyard.integrations.model_context import reminder_config
from taskyard.jobs.async_jobs import AsyncJobs
from taskyard.servers.mcp.piggyback import Piggyback, ReminderCounter
from taskyard.servers.mcp.resource_list import project_dir
from taskyard.yard import Yard
from taskyard.yard import open as open_yard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.servers.mcp.input_lines import Arrivals


Result = TypeVar("Result")

#: Most list calls of one caller at once, in threads of their own: other callers' threads stay free.
_MAX_LIST_CALLS = 16

#: Seconds to wait for a cancelled list call to return.
_LIST_CALLS_TIMEOUT = 1.0


class ListCalls:
    """The calls of one caller on its list."""

    def __init__(self) -> None:
        self._threads = anyio.CapacityLimiter(_MAX_LIST_CALLS)
        self._in_flight: dict[threading.Event, threading.Event] = {}  # cancel event: event set when the call returned
        self._is_over = False

    async def do(self, act: Callable[[threading.Event], Result]) -> Result:
        """Run `act` in a thread; its argument is an event that is set when the call is cancelled.

        Raises:
            Cancelled: The caller is gone.
        """
        if self._is_over:
            raise Cancelled("A call")
        cancel, ended = threading.Event(), threading.Event()

        def work() -> Result:
            self._in_flight[cancel] = ended
            try:
                if self._is_over:
                    raise Cancelled("A call")
                return act(cancel)
            finally:
                del self._in_flight[cancel]
                ended.set()

        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)
        except anyio.get_cancelled_exc_class():
            cancel.set()
            with anyio.CancelScope(shield=True):  # so that the next call finds it ended
                await self._wait_for([ended] if cancel in self._in_flight else [])
            raise

    async def end(self) -> None:
        """Cancel all calls and accept no more: the caller is gone."""
        self._is_over = True
        going = dict(self._in_flight)
        for cancel in going:
            cancel.set()
        await self._wait_for(going.values())

    async def _wait_for(self, ends: Iterable[threading.Event]) -> None:
        with anyio.move_on_after(_LIST_CALLS_TIMEOUT):
            for ended in ends:
                await anyio.to_thread.run_sync(ended.wait, _LIST_CALLS_TIMEOUT, abandon_on_cancel=True)


T = TypeVar("T")

Request = ServerRequestContext[Any, Any]

#: The agent name if the client gives none.
DEFAULT_CLIENT_NAME = "mcp-client"

_LONGEST_NAME = 60

#: Prefix of the client names that Gemini CLI sends in `initialize`.
_GEMINI_CLI = "gemini-cli"

#: Seconds to wait for a notice check to return when its caller is gone.
_CALLER_TIMEOUT = 1.0
#: Seconds without a `tasks/get` after which a caller counts as no longer polling a job: six of the longest intervals.
_AWAIT_TTL = 30.0


class Caller:
    """One agent instance that sends requests."""

    def __init__(
        self,
        yard: Yard,
        *,
        lease: float | None = None,
        hold: float | None = None,
        asks_roots: bool = False,
        arrivals: Arrivals | None = None,
    ) -> None:
        """Set up without reading anything.

        Args:
            yard: Opened for this caller alone.
            lease: Seconds its claims last without a request; None: as long as this process.
            hold: Seconds until notices it did not acknowledge are requeued; None: when this process exits.
            asks_roots: Whether its folder is not that of this process: its client is asked for its roots.
            arrivals: Detects requests that were sent together; None: each comes alone, as over HTTP.
        """
        self.yard = yard
        self.jobs = AsyncJobs(yard.jobs)
        self.lease = lease
        self.hold = hold
        self.reminder_counter = ReminderCounter(reminder_config())
        self._piggyback = Piggyback(yard, hold=hold)
        self._arrivals = arrivals
        self._list_calls = ListCalls()
        self._turn = anyio.Lock()  # notices are taken and acknowledged by one call at a time
        self._awaited: dict[str, float] = {}
        self.at_work: str | None = None  #: the id of the task it put in progress last, while it is
        self._at_end: list[Callable[[], object]] = []
        self._team_yard: Yard | None = None
        self.folder: str | None = None  #: where its jobs run; None: in the folder of this process
        self.is_settled = not asks_roots  #: whether its folder is known
        self.roots_requests = 0  #: calls that were answered with a request for its roots
        self.folder_lock = anyio.Lock()

    @property
    def tasks_yard(self) -> Yard:
        """The yard of the list it works on: its own, or that of the team it leads."""
        return self._team_yard or self.yard

    def lead(self, team: str) -> None:
        """Switch to the list and the mail of `team`."""
        self._team_yard = self.yard.beside(team)
        self._piggyback.use_mail_of(self._team_yard)

    def work_in(self, folder: str | None) -> None:
        """Set its folder: hooks, acceptance commands and jobs run there from now on."""
        self.is_settled = True
        self.folder = folder
        if folder is not None:
            self.yard.work_in(folder)

    @property
    def name(self) -> str:
        """The agent name under which it acts."""
        return self.yard.agent or DEFAULT_CLIENT_NAME

    async def on_list(self, act: Callable[[Yard], T]) -> T:
        """Run `act` on the list in a thread, since hooks and checks may be slow.

        Raises:
            Cancelled: The caller is gone.
        """
        return await self._list_calls.do(lambda cancel: act(self.tasks_yard.unless(cancel)))

    @asynccontextmanager
    async def asking(self, request_id: str | int | None) -> AsyncGenerator[bool]:
        """Enclose one call, until its answer; yield whether the client sent it after the last answer."""
        is_alone = self._piggyback.begin()
        is_first = (self._arrivals is None or self._arrivals.follows_answers(request_id)) and is_alone
        try:
            if is_first:
                await self.with_notices(Piggyback.arrived)
            yield is_first
        except BaseException:
            self._piggyback.end(was_sent=False)
            raise
        self._piggyback.end()

    def mark_mail_sent(self, ids: Iterable[str]) -> None:
        """Record messages that are part of an answer."""
        self._piggyback.mark_mail_sent(ids)

    async def with_notices(self, act: Callable[[Piggyback], T]) -> T:
        """Run `act` on its pending notices and mail."""
        async with self._turn:
            return await anyio.to_thread.run_sync(partial(act, self._piggyback))

    async def leave(self) -> None:
        """Remove it while this process continues; calls in progress are cancelled."""
        await self._list_calls.end()
        with anyio.move_on_after(_CALLER_TIMEOUT) as waited:
            await self._turn.acquire()
        self._end()
        try:
            await anyio.to_thread.run_sync(self._let_go)
        finally:
            if not waited.cancelled_caught:
                self._turn.release()  # a call that waits for it finds that the caller is gone

    def changed(self, task_id: str, *, is_working: bool) -> None:
        """Track the task it works on: jobs it starts from now on count to that task."""
        if is_working:
            self.at_work = task_id
        elif task_id == self.at_work:
            self.at_work = None

    def awaits(self, job_id: str) -> None:
        """Suppress notices of a job that it polls itself, until it stops polling."""
        self._awaited[job_id] = time.monotonic() + _AWAIT_TTL

    def stop_awaiting(self, job_id: str) -> None:
        """Mark that it has seen the job's end."""
        self._awaited.pop(job_id, None)

    def awaited(self) -> frozenset[str]:
        """Return the jobs that it polls itself."""
        now = time.monotonic()
        self._awaited = {job_id: until for job_id, until in self._awaited.items() if until > now}
        return frozenset(self._awaited)

    def at_end(self, act: Callable[[], object]) -> None:
        """Register a function to call when it is gone."""
        self._at_end.append(act)

    def close(self) -> None:
        """Close it: what it did not acknowledge is delivered again."""
        self._end()
        self._let_go()

    def _end(self) -> None:
        for act in self._at_end:
            act()

    def _let_go(self) -> None:
        self._piggyback.close()
        self.yard.close()


class Callers(Protocol):
    """Resolves requests to callers."""

    async def find(self, request: Request) -> Caller:
        """Return the caller of a request."""
        ...

    async def close(self) -> None:
        """Close all callers."""
        ...


class StdioCaller:
    """The one caller over stdio."""

    def __init__(self, *, agent: str | None, list: str | None, tasks_dir: str | None) -> None:
        """Set up. `agent`: its configured name; else the client's own is used."""
        self._agent = agent
        self._list = list
        self._tasks_dir = tasks_dir
        self._caller: Caller | None = None
        self._arrivals: Arrivals | None = None

    def use_arrivals(self, arrivals: Arrivals) -> None:
        """Use `arrivals` to detect requests that follow an answer."""
        self._arrivals = arrivals

    async def find(self, request: Request) -> Caller:
        """Return the one caller; it is created with the first request."""
        if self._caller is None:
            name = self._agent or clean_name(client_name(request))
            folder = project_dir()
            yard = open_yard(
                tasks_dir=self._tasks_dir,
                list=self._list or config.list_name(cwd=folder),
                cwd=folder,
                agent=name,
                via="mcp",
            )
            self._caller = Caller(yard, arrivals=self._arrivals)
        return self._caller

    async def close(self) -> None:
        """Close the caller: the pipe is closed."""
        if self._caller is not None:
            self._caller.close()


def client_name(request: Request) -> str:
    """Return the name that the client gives itself."""
    params = request.session.client_params
    return params.client_info.name if params is not None else ""


def parses_text(request: Request) -> bool:
    """Return whether the client parses an answer's text as structuredContent if the answer has none."""
    return client_name(request).startswith(_GEMINI_CLI)


def clean_name(text: str) -> str:
    """Convert a client's name to a valid agent name."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:_LONGEST_NAME]
    return name or DEFAULT_CLIENT_NAME


#: Seconds a client has to answer: it knows its roots, and its call waits.
_ROOTS_TIMEOUT = 5.0

#: Most calls without a session that are answered with a request for roots, even if concurrent; after that a client
#: that never answers is served without.
_MAX_ROOTS_REQUESTS = 3

_ROOTS_KEY = "taskyard/roots"


async def resolve_folder(caller: Caller, context: Context[Any, Any]) -> InputRequiredResult | None:
    """Determine the folder of `caller`, once; return an answer for its call if the client must be asked."""
    if caller.is_settled:
        return None
    request = context.request_context
    capabilities = request.session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return None
    if request.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        async with caller.folder_lock:
            if not caller.is_settled:
                caller.work_in(first_folder(await _list_roots(request)))
        return None
    found = (context.input_responses or {}).get(_ROOTS_KEY)
    if found is None and caller.roots_requests < _MAX_ROOTS_REQUESTS:
        caller.roots_requests += 1
        return InputRequiredResult(input_requests={_ROOTS_KEY: ListRootsRequest()})
    caller.work_in(first_folder(found) if isinstance(found, ListRootsResult) else None)
    return None


async def _list_roots(request: Request) -> ListRootsResult | None:
    on_this_stream = ServerMessageMetadata(related_request_id=request.request_id)
    try:
        return await request.session.send_request(
            ListRootsRequest(), ListRootsResult, request_read_timeout_seconds=_ROOTS_TIMEOUT, metadata=on_this_stream
        )
    except (MCPError, ValidationError):
        return None  # the client refused or did not answer


def first_folder(listed: ListRootsResult | None) -> str | None:
    """Return the first root that is a folder of this machine."""
    for root in listed.roots if listed is not None else ():
        folder = _folder_of_uri(str(root.uri))
        if folder is not None:
            return folder
    return None


def _folder_of_uri(uri: str) -> str | None:
    try:
        scheme, host, path, *_ = urlsplit(uri)
        folder = unquote(path)
        is_here = scheme == "file" and host in ("", "localhost") and os.path.isabs(folder) and os.path.isdir(folder)
    except ValueError:
        return None
    return os.path.normpath(folder) if is_here else None
