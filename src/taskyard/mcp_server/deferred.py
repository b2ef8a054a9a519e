"""
The Tasks extension (`io.modelcontextprotocol/tasks`): a call that takes longer is answered with a task to look at.

Only a client that says it can do that is ever answered so. The task is the job behind the call, so it can be looked at
from any process, and after a restart:

    tools/call  ->  resultType "task", taskId "b1x9k2m4q"
    tasks/get   ->  working, input_required, completed (with the call's own result), cancelled
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from mcp.server.context import CallNext, HandlerResult
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import CallToolRequestParams, RequestParams
from mcp_types.jsonrpc import HEADER_MISMATCH
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from taskyard.errors import TaskyardError
from taskyard.mcp_server import asking, task_states
from taskyard.mcp_server.answers import Result, protocol_error
from taskyard.mcp_server.callers import Caller, Callers, Request, parses_text
from taskyard.mcp_server.task_ids import IDENTIFIER, TaskId, declared, parsed
from taskyard.runtime.model import Job

#: Answered questions that are kept in mind: a job asks again only after it printed something.
_MOST_ANSWERED = 1_000


def _check_name(ctx: Request, task_id: str) -> None:
    """Refuse a request over HTTP whose `Mcp-Name` header names something else than its body (SEP-2243).

    The SDK does it for the methods it knows.
    """
    headers: Mapping[str, str] | None = getattr(ctx.request, "headers", None)
    named = headers.get(MCP_NAME_HEADER) if headers is not None else None
    if named is not None and decode_header_value(named) != task_id:
        raise MCPError(HEADER_MISMATCH, "The header Mcp-Name does not name the task of the request's taskId.")


class TaskParams(RequestParams):
    """Which task."""

    task_id: Annotated[str, Field(max_length=100)]


class UpdateParams(TaskParams):
    """Answers to what it asked."""

    input_responses: Annotated[dict[str, Any], Field(max_length=100)]


class Deferred(Extension):
    """Calls that were put off."""

    identifier = IDENTIFIER

    def __init__(self, callers: Callers, *, structured: bool) -> None:
        """`callers`: everyone who may ask. `structured`: answers have data beside their text."""
        self._callers = callers
        self._structured = structured
        self._answered: dict[tuple[str, str], None] = {}  # in the order they were

    def methods(self) -> Sequence[MethodBinding]:
        """What a client does with a task."""
        modern = frozenset(MODERN_PROTOCOL_VERSIONS)
        return (
            MethodBinding("tasks/get", TaskParams, self._get, modern),
            MethodBinding("tasks/update", UpdateParams, self._update, modern),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, modern),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Request, call_next: CallNext
    ) -> HandlerResult:
        """Answer with a task where the call goes on without its caller, if that one can look at it."""
        answer = await call_next(ctx)
        if not isinstance(answer, Result) or answer.deferred is None or not declared(ctx):
            return answer
        caller, task = await self._callers.find(ctx), parsed(answer.deferred)
        caller.awaits(task.job_id)
        job = await asyncio.to_thread(caller.jobs.get, task.job_id)
        state = await asyncio.to_thread(task_states.working, caller, task, job)
        return {"resultType": "task", **state}

    async def _get(self, ctx: Request, params: TaskParams) -> HandlerResult:
        caller, task, job = await self._found(ctx, params)
        try:
            if task_states.is_over(task, job):
                state = await task_states.over(caller, task, structured=self._structured or parses_text(ctx))
                caller.heard_of(job.id)
                return state
            caller.awaits(job.id)
            asked = await asyncio.to_thread(asking.question, caller.yard.home, job)
            if asked is not None and (job.id, asked.key) not in self._answered:
                return task_states.asking(caller, task, job, asked)
            return await asyncio.to_thread(task_states.working, caller, task, job)
        except TaskyardError as error:
            raise protocol_error(error) from error

    async def _update(self, ctx: Request, params: UpdateParams) -> HandlerResult:
        caller, _, job = await self._found(ctx, params)
        asked = await asyncio.to_thread(asking.question, caller.yard.home, job)
        if asked is None or asked.key not in params.input_responses or (job.id, asked.key) in self._answered:
            return {}  # nothing of it is asked any more
        key = (job.id, asked.key)
        self._answered[key] = None  # before it is typed: of two answers at once, one is
        done = False
        try:
            done = await asking.answered(caller, job, params.input_responses[asked.key])
        except TaskyardError as error:
            raise protocol_error(error) from error
        finally:
            if not done:
                self._answered.pop(key, None)
        for oldest in list(self._answered)[:-_MOST_ANSWERED]:
            del self._answered[oldest]
        return {}

    async def _cancel(self, ctx: Request, params: TaskParams) -> HandlerResult:
        caller, task, job = await self._found(ctx, params)
        if task.until is None and not job.is_final:  # who only waited for a job has nothing to do with its end
            await caller.jobs.ask_to_stop(job.id)
        return {}

    async def _found(self, ctx: Request, params: TaskParams) -> tuple[Caller, TaskId, Job]:
        """Who asks, for which task, and the job behind it."""
        require_client_extension(ctx, IDENTIFIER)
        _check_name(ctx, params.task_id)
        caller = await self._callers.find(ctx)
        try:
            task = parsed(params.task_id)
            return caller, task, await asyncio.to_thread(caller.jobs.get, task.job_id)
        except TaskyardError as error:
            raise protocol_error(error) from error
