"""
One tool call, from the protocol's words to ours and back.

    1. who asks (`callers`); what its last answer brought is acknowledged
    2. the arguments are checked; what does not fit is refused in a sentence
    3. the tool does it, or refuses
    4. what waits for the caller rides along with the answer
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import anyio
import anyio.lowlevel
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp_types import ToolAnnotations
from pydantic import PrivateAttr, ValidationError

from taskyard.context import reminder_text
from taskyard.errors import TaskyardError
from taskyard.mcp_server import roots
from taskyard.mcp_server.answers import Answer, Result, malformed, refusal, result
from taskyard.mcp_server.arguments import Arguments
from taskyard.mcp_server.callers import Caller, Callers, parses_text
from taskyard.mcp_server.riding import Ride
from taskyard.mcp_server.task_ids import declared

A = TypeVar("A", bound=Arguments)


class Call(NamedTuple):
    """What a tool knows beside its arguments."""

    caller: Caller
    context: Context[Any, Any]
    patience: float  #: seconds after which a command goes on in the background
    defer_after: float | None = None  #: seconds after which it may be put off; None: its client cannot wait by itself

    @property
    def tool_use_id(self) -> str | None:
        """The model's own name for this call, where its client tells."""
        meta = self.context.request_context.meta
        value = (dict(meta) if meta else {}).get("claudecode/toolUseId")
        return value if isinstance(value, str) else None

    @property
    def wants_progress(self) -> bool:
        """Whether somebody asked to hear how it stands."""
        meta = self.context.request_context.meta
        return bool(meta) and "progress_token" in dict(meta or {})

    async def progress(self, done: float, message: str) -> None:
        """Say how it stands, to whoever asked to hear it."""
        await self.context.report_progress(done, None, message)


class Spec(NamedTuple, Generic[A]):
    """A tool as we describe it."""

    name: str
    about: str
    takes: type[A]
    act: Callable[[Call, A], Awaitable[Answer]]
    gives: dict[str, Any]  #: the schema of its data
    reads: bool = False  #: it changes nothing
    destroys: bool = False  #: what it does cannot be taken back
    repeats: bool = False  #: doing it again changes nothing more
    title: str = ""


class Pace(NamedTuple):
    """How long calls wait for what takes its time, in seconds."""

    patience: float = 45.0  #: then a command goes on in the background
    defer_after: float = 2.0  #: then a client that can wait by itself gets a task to look at


class OurTool(Tool):
    """A tool that answers in our words, also where its arguments do not fit."""

    _spec: Spec[Any] = PrivateAttr()
    _callers: Callers = PrivateAttr()
    _pace: Pace = PrivateAttr(default=Pace())
    _structured: bool = PrivateAttr(default=False)

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """Answer one call."""
        try:
            caller = await self._callers.find(context.request_context)
        except TaskyardError as error:
            return result(refusal(error), structured=self._sends_data(context))
        if (question := await roots.settle(caller, context)) is not None:
            return question
        async with caller.asking() as begins_turn:
            caller.reminding.called(self.name, begins_turn=begins_turn)
            return await self._answer(caller, arguments, context)

    async def _answer(self, caller: Caller, arguments: dict[str, Any], context: Context[Any, Any]) -> Result:
        try:
            checked = cast("Arguments", self.fn_metadata.validate_arguments(arguments)["arguments"])
            answer = await self._spec.act(self._call(caller, context), checked)
        except ValidationError as error:
            answer = malformed(self.name, self.parameters.get("properties", {}), error)
        except TaskyardError as error:
            answer = refusal(error)
        structured = self._sends_data(context)
        if answer.deferred is not None and declared(context.request_context):
            return result(answer, structured=structured)  # a task for its client: nobody reads it, nothing rides on it
        reminder = await self._reminder(caller)
        ride = await _ride(caller)  # last: whatever comes between taking notices and sending them may fail
        return result(answer, structured=structured, riding=(*ride.text, *reminder), notices=ride.notices)

    def _sends_data(self, context: Context[Any, Any]) -> bool:
        return self._structured or parses_text(context.request_context)

    async def _reminder(self, caller: Caller) -> tuple[str, ...]:
        """A word on the list, if it is time for one and there is a list."""
        if not caller.reminding.is_due():
            return ()
        try:
            tasks = await caller.on_list(lambda yard: yard.tasks.list())
        except TaskyardError:
            return ()  # an answer is worth more than a reminder
        return (reminder_text(tasks, caller.reminding.config),) if tasks else ()

    def _call(self, caller: Caller, context: Context[Any, Any]) -> Call:
        defers = declared(context.request_context)
        return Call(caller, context, self._pace.patience, self._pace.defer_after if defers else None)

    def serve(self, spec: Spec[Any], callers: Callers, pace: Pace, *, structured: bool) -> OurTool:
        """Do what `spec` says, for `callers`."""
        self._spec, self._callers, self._pace, self._structured = spec, callers, pace, structured
        return self


async def _ride(caller: Caller) -> Ride:
    """What comes along with an answer. If nobody waits for the answer any more, it comes with the next."""
    ride = Ride()
    with anyio.CancelScope(shield=True):  # what is taken is known to be
        ride = await caller.with_notices(lambda riding: riding.next(but=caller.awaited()))
    try:
        await anyio.lowlevel.checkpoint_if_cancelled()
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await caller.with_notices(lambda riding: riding.missed(ride))
        raise
    return ride


def tools(specs: Sequence[Spec[Any]], callers: Callers, *, pace: Pace, structured: bool) -> list[Tool]:
    """Tools for the SDK's server; `structured`: they answer with data beside the text, and describe it."""
    return [_tool(spec, callers, pace, structured=structured) for spec in specs]


def _tool(spec: Spec[Any], callers: Callers, pace: Pace, *, structured: bool) -> Tool:
    return OurTool(
        fn=spec.act,
        name=spec.name,
        title=spec.title or None,
        description=spec.about,
        parameters=_strict(spec.takes.model_json_schema(by_alias=True)),
        fn_metadata=FuncMetadata(arg_model=spec.takes, output_schema=_with_common(spec.gives) if structured else None),
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


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without what only its maker reads."""
    schema.pop("title", None)
    schema.pop("description", None)
    for one in schema.get("properties", {}).values():
        one.pop("title", None)
    return schema


def _with_common(gives: dict[str, Any]) -> dict[str, Any]:
    """The schema of what a tool gives; any answer may be a refusal, and may bring notes along."""
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
