"""MCP resources (task lists, job output), subscriptions to their changes, and prompts.

    taskyard://lists/<name>         a list, as TaskList shows it
    taskyard://jobs/<id>/output     the end of a job's output

Reads are bounded as for a model and never leave Taskyard's own files. Clients learn of changes on a stream they opened
(`subscriptions/listen`) or, by the older protocol, as notifications after `resources/subscribe`. Only subscribed
resources are watched, each once for all subscribers, until the last one leaves; changes come from inotify or from the
store's notifications, never from polling.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Annotated, Any, NamedTuple

import anyio
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.shared.uri_template import UriTemplate
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    ListResourcesResult,
    PaginatedRequestParams,
    Resource,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from pydantic import Field

from taskyard.core.values import nearest
from taskyard.errors import BadValue, ListNotFound, TaskyardError, UsageError, quote_value
from taskyard.jobs.job_dir import JobPaths, live_folder
from taskyard.jobs.output import Output
from taskyard.servers.mcp import resource_list
from taskyard.servers.mcp.answers import protocol_error, tasks_page
from taskyard.servers.mcp.callers import Caller, Callers, Request
from taskyard.servers.mcp.resource_list import LIST, OUTPUT, PAGE_SIZE, TEXT, list_resource, output_resources
from taskyard.servers.mcp.sdk_server import YardServer
from taskyard.storage.async_change_feed import (
    AsyncSubscription,
    WaitSubscription,
    subscribe_async,
    subscribe_wait,
)
from taskyard.tasks import text
from taskyard.tasks.list_folder import ListFolder, is_list_name
from taskyard.tasks.model import Listing, Task
from taskyard.yard import Yard

_LIST, _OUTPUT = UriTemplate.parse(LIST), UriTemplate.parse(OUTPUT)

#: Minimum seconds between two notifications about one list, and about one output (which changes all the time).
_LIST_INTERVAL, _OUTPUT_INTERVAL = 0.1, 1.0


class WatchTarget(NamedTuple):
    """What to watch for changes (a folder, or a store's notifications), and the event they cause."""

    event: ServerEvent
    folder: str = ""
    names: tuple[str, ...] = ()  #: suffixes of the file names that matter; empty: all do
    pause: float = _LIST_INTERVAL  #: minimum seconds between two events
    wait: Callable[[float], bool] | None = None  #: blocks until there is a change, where no folder shows it

    @property
    def is_there(self) -> bool:
        """Whether the folder exists; a store notifies only of what exists."""
        return self.wait is not None or os.path.isdir(self.folder)

    def concerns(self, names: Iterable[str] | None) -> bool:
        """Return whether one of these names matters; None: all may have changed."""
        return names is None or not self.names or any(name.endswith(self.names) for name in names)


def watch_target(yard: Yard, uri: str) -> WatchTarget:
    """Return what to watch for changes of a resource. A list need not exist yet, a job must.

    Raises:
        BadValue: The URI is not of a resource.
        JobNotFound: There is no such job.
    """
    if (found := _LIST.match(uri)) is not None:
        return _list_target(yard, uri, _list_name(str(found["list"])))
    if (found := _OUTPUT.match(uri)) is not None:
        job = yard.jobs.get(str(found["id"]))
        return WatchTarget(
            ResourceUpdated(uri), JobPaths(yard.home, job.id).path, ("output", "end.json"), _OUTPUT_INTERVAL
        )
    raise BadValue("The resource", uri[:200], f"{LIST} or {OUTPUT}")


def resource_list_target(yard: Yard) -> WatchTarget:
    """Return what to watch for changes of the list of resources: jobs start and end."""
    return WatchTarget(ResourcesListChanged(), live_folder(yard.home))


def known_list(yard: Yard, name: str) -> str:
    """Return the name if such a list exists.

    Raises:
        ListNotFound: There is none; the error has the nearest names.
    """
    known = yard.lists.names()
    if name not in known:
        raise ListNotFound(name[:200], nearest=nearest(name[:200], known))
    return name


def _list_name(name: str) -> str:
    if not is_list_name(name):
        raise BadValue("The list", name[:200], "the name of a list: letters, digits, - and _")
    return name


def _list_target(yard: Yard, uri: str, name: str) -> WatchTarget:
    if yard.lists.folder is not None:
        folder = ListFolder(yard.lists.folder, name)
        folder.exists()  # raises if it is not a list folder
        return WatchTarget(ResourceUpdated(uri), folder.path, (".json",))
    other = yard if name == yard.tasks.name else yard.beside(name)
    return WatchTarget(ResourceUpdated(uri), wait=other.tasks.store.wait)


class Resources:
    """The resources that can be read."""

    def __init__(self, callers: Callers) -> None:
        """Set up the resources. `callers`: resolves requests to callers."""
        self._callers = callers

    def offer(self, server: YardServer) -> None:
        """Register the resources with `server`."""
        server.resource(
            resource_list.LIST,
            name="list",
            title="A task list",
            description="The tasks of a list, as TaskList shows them.",
            mime_type=TEXT,
        )(self.read_list)
        server.resource(
            resource_list.OUTPUT,
            name="output",
            title="A job's output",
            description="The end of what a background job printed, as much as a model is given.",
            mime_type=TEXT,
        )(self.read_output)
        server.serve("resources/list", PaginatedRequestParams, self._list)

    async def read_list(self, list: str, ctx: Context[Any, Any]) -> str:
        """Return a list as text."""
        caller = await self._callers.find(ctx.request_context)
        try:
            listing = await caller.on_list(lambda yard: _read_listing(yard, list))
        except TaskyardError as error:
            raise protocol_error(error) from error
        answer = tasks_page(listing, status=None, owner=None, after=None)
        return "\n".join((answer.text, *answer.hints))

    async def read_output(self, id: str, ctx: Context[Any, Any]) -> str:
        """Return the end of a job's output."""
        caller = await self._callers.find(ctx.request_context)
        try:
            job = await asyncio.to_thread(caller.jobs.get, id)
            found = await asyncio.to_thread(Output(JobPaths(caller.yard.home, job.id)).for_model)
        except TaskyardError as error:
            raise protocol_error(error) from error
        return found.text

    async def _list(self, ctx: Request, params: PaginatedRequestParams) -> ListResourcesResult:
        """Return the current list, and the output of every job that has not ended."""
        caller = await self._callers.find(ctx)
        jobs = await asyncio.to_thread(caller.jobs.list)
        after = _parse_cursor(params.cursor) if params.cursor is not None else None
        left = [job for job in jobs if after is None or (job.start_time, job.id) > after]
        shown = left[:PAGE_SIZE]
        first = [] if after is not None else [list_resource(caller.tasks_yard.tasks.name)]
        more = f"{shown[-1].start_time}.{shown[-1].id}" if len(left) > len(shown) else None
        return ListResourcesResult(resources=_resources([*first, *output_resources(shown)]), next_cursor=more)


def _read_listing(yard: Yard, name: str) -> Listing:
    if name == yard.tasks.name:
        return yard.tasks.list()
    with yard.beside(known_list(yard, name)) as other:
        return other.tasks.list()


def _resources(found: list[dict[str, str]]) -> list[Resource]:
    return [Resource.model_validate(one) for one in found]


def _parse_cursor(cursor: str) -> tuple[int, str]:
    """Parse a page cursor."""
    began, _, job_id = cursor.partition(".")
    if not (began.isascii() and began.isdigit() and len(began) <= 15):
        raise MCPError(INVALID_PARAMS, "The cursor is none that a list of resources gave.")
    return int(began), job_id


#: Most subscriptions of one caller, or of one stream.
_MAX_SUBSCRIPTIONS = 100

Unsubscribe = Callable[[], object]


class Subscriptions:
    """All subscriptions of clients."""

    def __init__(self, callers: Callers, bus: InMemorySubscriptionBus) -> None:
        """Set up without subscriptions. `bus`: where changes are published."""
        self._callers = callers
        self._bus = bus
        self._watches = ResourceWatcher(bus)
        self._stream = ListenHandler(bus)
        self._ends: dict[Caller, dict[str, Unsubscribe]] = {}  # subscriptions by the older protocol

    def offer(self, server: YardServer) -> None:
        """Register the subscription methods with `server`."""
        server.serve("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        server.serve("resources/subscribe", SubscribeRequestParams, self._subscribe)
        server.serve("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    async def _listen(self, ctx: Request, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Serve one stream of changes, until its client closes it."""
        caller, wanted = await self._callers.find(ctx), params.notifications
        with ExitStack() as held:
            for uri in _check_count(set(wanted.resource_subscriptions or ())):
                held.callback(self._watches.hold(await _resolve_target(caller, uri)))
            if wanted.resources_list_changed:
                held.callback(self._watches.hold(resource_list_target(caller.yard)))
            return await self._stream(ctx, params)

    async def _subscribe(self, ctx: Request, params: SubscribeRequestParams) -> EmptyResult:
        caller, uri = await self._callers.find(ctx), params.uri
        place = await _resolve_target(caller, uri)
        if caller not in self._ends:
            self._ends[caller] = {}
            caller.at_end(lambda: self._leave(caller))
        mine = self._ends[caller]
        if uri not in mine:
            _check_count({*mine, uri})
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

    def _begin(self, place: WatchTarget, session: ServerSession, uri: str) -> Unsubscribe:
        """Notify a client of the older protocol of changes; return a function that unsubscribes."""
        changed, held = asyncio.Event(), ExitStack()
        held.callback(self._watches.hold(place))
        held.callback(self._bus.subscribe(lambda event: changed.set() if event == place.event else None))
        held.callback(asyncio.create_task(_send_updates(session, uri, changed)).cancel)
        return held.close


class ResourceWatcher:
    """The watched resources, with reference counts."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self._bus = bus
        self._held: dict[ServerEvent, tuple[int, Unsubscribe]] = {}

    def hold(self, place: WatchTarget) -> Unsubscribe:
        """Watch a target from now on; return a function that releases this reference."""
        count, end = self._held.get(place.event) or (0, self._begin(place))
        self._held[place.event] = (count + 1, end)
        return lambda: self._let_go(place.event)

    def _let_go(self, event: ServerEvent) -> None:
        count, end = self._held.pop(event)
        if count > 1:
            self._held[event] = (count - 1, end)
        else:
            end()

    def _begin(self, place: WatchTarget) -> Unsubscribe:
        with ExitStack() as held:
            folder: AsyncSubscription | WaitSubscription
            if place.wait is None:
                folder = held.enter_context(subscribe_async(place.folder))
            else:
                folder = held.enter_context(subscribe_wait(place.wait))
            folder.look()  # discard earlier changes
            held.callback(asyncio.create_task(self._watch(place, folder)).cancel)
            return held.pop_all().close

    async def _watch(self, place: WatchTarget, folder: AsyncSubscription | WaitSubscription) -> None:
        there = place.is_there
        while True:
            names = await folder.news()
            before, there = there, place.is_there
            if place.concerns(names) and (before or there):  # not for changes around a missing one
                await self._bus.publish(place.event)
                await asyncio.sleep(place.pause)


async def _send_updates(session: ServerSession, uri: str, changed: asyncio.Event) -> None:
    while True:
        await changed.wait()
        changed.clear()
        try:
            await session.send_resource_updated(uri)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the client disconnected


async def _resolve_target(caller: Caller, uri: str) -> WatchTarget:
    try:
        return await asyncio.to_thread(watch_target, caller.yard, uri)
    except TaskyardError as error:
        raise protocol_error(error) from error


def _check_count(uris: set[str]) -> set[str]:
    if len(uris) > _MAX_SUBSCRIPTIONS:
        raise MCPError(
            INVALID_PARAMS, f"At most {_MAX_SUBSCRIPTIONS} resources can be subscribed to; these are {len(uris)}."
        )
    return uris


#: Most finished tasks named in the prompt; TaskList shows the others.
_MOST = 30

_PLAN = """\
Plan this as tasks on the shared list, before you do any of it:

{goal}

- Look at TaskList first: build on what is there, and add nothing twice.
- One task for each step with a result that can be seen. Subjects in the imperative; descriptions that another agent \
can act on without asking: what, where, and how to tell that it is done.
- Say with blockedBy what must be completed first, and only that: what does not depend on each other can be done at \
the same time, by several agents.
- Where a command can prove a task done, give it as acceptance.
- End with a task that has an independent verifier check the result, blocked by all the others.

Then show the plan: TaskList, and in a sentence what can be started now. If the goal leaves something open that would \
change the plan, ask before you create tasks. If it takes three steps or fewer, say so and do without a list."""

_VERIFY = """\
Have this checked by an independent verifier: {what}

{tasks}

- Whoever did the work does not check it. Start a {verifier} agent if you can start agents; it gets the tasks and \
where the work is, not your opinion of it. If you cannot, begin anew: trust nothing that was said, look at \
what is there.
- The verifier reads each task in full (TaskGet), runs what can be run (tests, builds, the program itself), and tries \
to break it: inputs at the edge, errors, what the description asks for and nobody mentioned.
- The verdict is pass, fail or partial, for each task, with the commands that were run and what they printed. What was \
only read is not called tested.
- What fails is reopened with TaskUpdate (status pending), or becomes a task of its own with how to reproduce it. \
Nothing is repaired in passing."""


class TaskyardPrompt(Prompt):
    """A prompt that names a missing or unknown argument; the SDK would report an internal error."""

    async def render(self, arguments: dict[str, Any] | None, context: Context[Any, Any]) -> Any:
        """Render the prompt with the given arguments."""
        known, given = self.arguments or [], arguments or {}
        names = ", ".join(each.name for each in known)
        for each in known:
            if each.required and not str(given.get(each.name, "")).strip():
                raise protocol_error(UsageError(f"The prompt {self.name} needs {each.name!r}: {each.description}"))
        if strange := sorted(set(given).difference(each.name for each in known)):
            raise protocol_error(
                UsageError(f"The prompt {self.name} has no {quote_value(strange[0])}; it has {names}.")
            )
        return await super().render(arguments, context)


class Prompts:
    """The prompts that users can choose."""

    def __init__(self, callers: Callers) -> None:
        """Set up the prompts. `callers`: resolves requests to callers."""
        self._callers = callers

    def all(self) -> list[Prompt]:
        """Return all prompts."""
        return [
            TaskyardPrompt.from_function(
                self.plan,
                "plan",
                title="Plan a goal",
                description="Break a goal down into tasks that depend on each other.",
            ),
            TaskyardPrompt.from_function(
                self.verify,
                "verify",
                title="Have finished work verified",
                description="Have an independent verifier check a task, or all that are completed.",
            ),
        ]

    async def plan(self, goal: Annotated[str, Field(description="What is to be reached.")]) -> str:
        """Return the prompt to plan a goal as tasks."""
        return _PLAN.format(goal=goal.strip())

    async def verify(
        self,
        ctx: Context[Any, Any],
        task_id: Annotated[str, Field(description="The task to check; all completed ones if not given.")] = "",
    ) -> str:
        """Return the prompt to verify finished work."""
        caller = await self._callers.find(ctx.request_context)
        try:
            return await caller.on_list(lambda yard: _verify_prompt(yard, task_id.strip().removeprefix("#")))
        except TaskyardError as error:
            raise protocol_error(error) from error


def _verify_prompt(yard: Yard, task_id: str) -> str:
    verifier = yard.settings.verifier
    listing = yard.tasks.list()
    if task_id:
        task = yard.tasks.get(task_id)
        tasks = text.format_details(task, {other.id: other for other in listing})
        what = f"task #{task.id}" if task.is_done else f"task #{task.id}, which is not completed yet"
        return _VERIFY.format(what=what, tasks=tasks, verifier=verifier)
    done: list[Task] = [task for task in listing if task.is_done]
    if not done:
        return "No task on the list is completed yet: there is nothing to verify. Look at TaskList for what is open."
    shown = done[-_MOST:]
    lines = text.format_listing(shown, among={task.id: task for task in listing})
    if len(shown) < len(done):
        lines += f'\n… and {len(done) - len(shown)} completed earlier: TaskList {{"status": "completed"}}'
    return _VERIFY.format(what="the completed tasks of this list", tasks=lines, verifier=verifier)
