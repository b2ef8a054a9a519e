"""Tool calls: from the protocol's request to a tool and back, and ids of deferred calls.

    1. find the caller (`callers`); acknowledge what its last answer delivered
    2. check the arguments; refuse invalid ones in a sentence
    3. run the tool, which acts or refuses
    4. piggyback pending notices on the answer

The id of a deferred call (Tasks extension) has all that is needed to finish it, so any process can answer for it, even
after a restart; nothing is stored beside the job:

    b1x9k2m4q                            a command: the job's own id
    b1x9k2m4q.1785592800000.30000        a wait for a job: until when, and its length (both in ms)
    b1x9k2m4q.1785592800000.30000.t      the same, for the transcript
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import anyio
import anyio.lowlevel
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp_types import ToolAnnotations
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import PrivateAttr, ValidationError

from taskyard.errors import BadJobId, TaskyardError
from taskyard.integrations.model_context import reminder_text
from taskyard.jobs.model import is_job_id
from taskyard.servers.mcp import callers as mcp_callers
from taskyard.servers.mcp.answers import (
    DeferrableResult,
    ToolAnswer,
    invalid_arguments,
    refusal,
    tool_result,
)
from taskyard.servers.mcp.callers import Caller, Callers, parses_text
from taskyard.servers.mcp.piggyback import PiggybackItems
from taskyard.servers.mcp.tool_definitions import Arguments

#: The identifier of the Tasks extension.
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"

#: Most digits of a time in ms.
_LONGEST = 15


class DeferredId(NamedTuple):
    """The id of a deferred call."""

    job_id: str
    until: int | None = None  #: for a wait: its end, in epoch ms
    lasts: int = 0  #: for a wait: its length, in ms
    transcript: bool = False

    def __str__(self) -> str:
        if self.until is None:
            return self.job_id
        return f"{self.job_id}.{self.until}.{self.lasts}{'.t' if self.transcript else ''}"


def parse_deferred_id(text: str) -> DeferredId:
    """Parse the id of a deferred call.

    Raises:
        BadJobId: It is not such an id.
    """
    job_id, *rest = text.split(".")
    transcript = len(rest) == 3 and rest[-1] == "t"
    times = rest[:-1] if transcript else rest
    fits = all(time.isascii() and time.isdigit() and len(time) <= _LONGEST for time in times)
    if not is_job_id(job_id) or not fits or len(times) not in (0, 2):
        raise BadJobId(text)
    return DeferredId(job_id, int(times[0]), int(times[1]), transcript) if times else DeferredId(job_id)


def supports_tasks(request: ServerRequestContext[object, object]) -> bool:
    """Return whether the client can be answered with a task: it declared so with this very request."""
    capabilities = request.session.client_capabilities
    extensions = (capabilities.extensions if capabilities is not None else None) or {}
    return request.protocol_version in MODERN_PROTOCOL_VERSIONS and TASKS_EXTENSION in extensions


A = TypeVar("A", bound=Arguments)


class ToolCall(NamedTuple):
    """The context of a call beside its arguments."""

    caller: Caller
    context: Context[Any, Any]
    patience: float  #: seconds after which a command continues in the background
    defer_after: float | None = None  #: seconds after which it may be deferred; None: the client does not support tasks

    @property
    def tool_use_id(self) -> str | None:
        """The model's id of this call, if its client sends it."""
        meta = self.context.request_context.meta
        value = (dict(meta) if meta else {}).get("claudecode/toolUseId")
        return value if isinstance(value, str) else None

    @property
    def wants_progress(self) -> bool:
        """Whether the client asked for progress notifications."""
        meta = self.context.request_context.meta
        return bool(meta) and "progress_token" in dict(meta or {})

    async def progress(self, done: float, message: str) -> None:
        """Send a progress notification, if the client asked for them."""
        await self.context.report_progress(done, None, message)


class ToolSpec(NamedTuple, Generic[A]):
    """The definition of a tool."""

    name: str
    about: str
    takes: type[A]
    act: Callable[[ToolCall, A], Awaitable[ToolAnswer]]
    gives: dict[str, Any]  #: the schema of its data
    reads: bool = False  #: it changes nothing
    destroys: bool = False  #: its effect cannot be undone
    repeats: bool = False  #: it is idempotent
    title: str = ""


class CallTimeouts(NamedTuple):
    """How long calls wait for slow work, in seconds."""

    patience: float = 45.0  #: after that a command continues in the background
    defer_after: float = 2.0  #: after that a client that supports tasks gets a task to poll


class TaskyardTool(Tool):
    """A tool whose refusals, also of invalid arguments, are answers of Taskyard."""

    _spec: ToolSpec[Any] = PrivateAttr()
    _callers: Callers = PrivateAttr()
    _pace: CallTimeouts = PrivateAttr(default=CallTimeouts())
    _structured: bool = PrivateAttr(default=False)

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """Answer one call."""
        try:
            caller = await self._callers.find(context.request_context)
        except TaskyardError as error:
            return tool_result(refusal(error), structured=self._sends_data(context))
        if (question := await mcp_callers.resolve_folder(caller, context)) is not None:
            return question
        async with caller.asking(context.request_context.request_id) as begins_turn:
            caller.reminder_counter.called(self.name, begins_turn=begins_turn)
            return await self._answer(caller, arguments, context)

    async def _answer(self, caller: Caller, arguments: dict[str, Any], context: Context[Any, Any]) -> DeferrableResult:
        try:
            checked = cast("Arguments", self.fn_metadata.validate_arguments(arguments)["arguments"])
            answer = await self._spec.act(self._call(caller, context), checked)
        except ValidationError as error:
            answer = invalid_arguments(self.name, self.parameters.get("properties", {}), error)
        except TaskyardError as error:
            answer = refusal(error)
        structured = self._sends_data(context)
        if answer.deferred is not None and supports_tasks(context.request_context):
            return tool_result(
                answer, structured=structured
            )  # a task for its client: no model reads it, so nothing is piggybacked
        reminder = await self._reminder(caller)
        piggyback_items = await _take_piggyback(
            caller
        )  # last: a failure between taking notices and sending them would delay them
        return tool_result(
            answer,
            structured=structured,
            piggybacked=(*piggyback_items.text, *reminder),
            notices=piggyback_items.notices,
        )

    def _sends_data(self, context: Context[Any, Any]) -> bool:
        return self._structured or parses_text(context.request_context)

    async def _reminder(self, caller: Caller) -> tuple[str, ...]:
        """Return a reminder of the list, if one is due and there are tasks."""
        if not caller.reminder_counter.is_due():
            return ()
        try:
            tasks = await caller.on_list(lambda yard: yard.tasks.list())
        except TaskyardError:
            return ()  # an answer matters more than a reminder
        return (reminder_text(tasks, caller.reminder_counter.config),) if tasks else ()

    def _call(self, caller: Caller, context: Context[Any, Any]) -> ToolCall:
        defers = supports_tasks(context.request_context)
        return ToolCall(caller, context, self._pace.patience, self._pace.defer_after if defers else None)

    def serve(self, spec: ToolSpec[Any], callers: Callers, pace: CallTimeouts, *, structured: bool) -> TaskyardTool:
        """Bind the tool to `spec` and `callers`."""
        self._spec, self._callers, self._pace, self._structured = spec, callers, pace, structured
        return self


async def _take_piggyback(caller: Caller) -> PiggybackItems:
    """Take what is piggybacked on an answer; if the call is cancelled, requeue it for the next answer."""
    piggyback_items = PiggybackItems()
    with anyio.CancelScope(shield=True):  # so that what was taken is known
        piggyback_items = await caller.with_notices(lambda piggybacked: piggybacked.next(exclude=caller.awaited()))
    try:
        await anyio.lowlevel.checkpoint_if_cancelled()
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await caller.with_notices(lambda piggybacked: piggybacked.requeue(piggyback_items))
        raise
    return piggyback_items


def build_tools(
    specs: Sequence[ToolSpec[Any]], callers: Callers, *, pace: CallTimeouts, structured: bool
) -> list[Tool]:
    """Build tools for the SDK's server; `structured`: they answer with data beside the text, and describe it."""
    return [_build_tool(spec, callers, pace, structured=structured) for spec in specs]


def _build_tool(spec: ToolSpec[Any], callers: Callers, pace: CallTimeouts, *, structured: bool) -> Tool:
    return TaskyardTool(
        fn=spec.act,
        name=spec.name,
        title=spec.title or None,
        description=spec.about,
        parameters=_strip_titles(spec.takes.model_json_schema(by_alias=True)),
        fn_metadata=FuncMetadata(
            arg_model=spec.takes, output_schema=_output_schema(spec.gives) if structured else None
        ),
        is_async=True,
        context_kwarg=None,
        annotations=ToolAnnotations(
            title=spec.title or None,
            read_only_hint=spec.reads,
            destructive_hint=spec.destroys,
            idempotent_hint=spec.reads or spec.repeats,
            open_world_hint=spec.name == "Bash",
        ),
    ).serve(spec, callers, pace, structured=structured)


def _strip_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove titles and the model's own description from a schema."""
    schema.pop("title", None)
    schema.pop("description", None)
    for one in schema.get("properties", {}).values():
        one.pop("title", None)
    return schema


def _output_schema(gives: dict[str, Any]) -> dict[str, Any]:
    """Return the output schema of a tool; any answer may be a refusal, and may have notes."""
    properties = {
        **gives,
        "error": {"type": "object", "description": "Why it was refused: code, message, and what belongs to it."},
        "notes": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What else to know: what follows from it, the ends of background jobs, waiting mail.",
        },
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}
