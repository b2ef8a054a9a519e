"""The Tasks extension (`io.modelcontextprotocol/tasks`): a slow call is answered with a task to poll.

Only a client that declares support gets such an answer. The task is the job behind the call, so it can be polled from
any process, and after a restart:

    tools/call  ->  resultType "task", taskId "b1x9k2m4q"
    tasks/get   ->  working, input_required, completed (with the call's own result), cancelled

A job that waits for input becomes `input_required`. A question's key is made of its position in the output and its
text: the same for all clients, also after a restart, and different for any later question.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from mcp.server.context import CallNext, HandlerResult
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import CallToolRequestParams, RequestParams
from mcp_types.jsonrpc import HEADER_MISMATCH
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from taskyard.core.values import as_object
from taskyard.errors import BadText, JobEnded, TaskyardError
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.job_text import state_text
from taskyard.jobs.model import Job
from taskyard.jobs.output import Output, for_terminal
from taskyard.servers.mcp.answers import (
    DeferrableResult,
    ToolAnswer,
    ended_answer,
    protocol_error,
    tool_result,
)
from taskyard.servers.mcp.callers import Caller, Callers, Request, parses_text
from taskyard.servers.mcp.calls import TASKS_EXTENSION, DeferredId, parse_deferred_id, supports_tasks
from taskyard.servers.mcp.job_tools import output_answer, progress_line

#: Lines and bytes of the output's end that are shown with the question.
_LINES, _BYTES = 10, 2_000

#: The one field of the form.
_FIELD = "answer"


class Question(NamedTuple):
    """What a job asks."""

    key: str
    request: Mapping[str, object]  #: the elicitation request for the client


def pending_question(home: str, job: Job) -> Question | None:
    """Return the job's question; None if it has none, or cannot take an answer."""
    if job.is_final or not (job.needs_input and job.takes_input):
        return None
    if isinstance(asked := job.facts.get("question"), str):  # an agent reports its question, and when it was asked
        return Question(f"input-{job.facts.get('askedAt')}-{_checksum(asked)}", _elicitation(job, asked))
    if _has_new_output(JobPaths(home, job.id)):
        return None
    tail = Output(JobPaths(home, job.id)).tail(_LINES, most=_BYTES)
    said = for_terminal(tail.text)
    return Question(f"input-{tail.next_offset}-{_checksum(said)}", _elicitation(job, said))


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}"


def _has_new_output(folder: JobPaths) -> bool:
    """Return whether it printed something since its record was written: the supervisor will clear the question."""
    try:
        return os.stat(folder.output).st_mtime_ns > os.stat(folder.record).st_mtime_ns
    except OSError:
        return False


def _elicitation(job: Job, said: str) -> Mapping[str, object]:
    schema = {
        "type": "object",
        "properties": {_FIELD: {"type": "string", "title": "Answer", "description": "Typed in as one line."}},
        "required": [_FIELD],
    }
    who = "The agent" if job.type == "local_agent" else "The command"
    message = f"{who} {job.description!r} waits for input:\n\n{said.strip()}"
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


async def apply_answer(caller: Caller, job: Job, response: object) -> bool:
    """Apply the client's response to a question; return whether the question is settled.

    accept types the answer; decline closes the job's input, so that it continues without. A form that was only closed
    (cancel) settles nothing.

    Raises:
        BadText: There is no answer in it.
        NoInput: The job does not read input.
    """
    found = as_object(response) or {}
    action = found.get("action")
    if action not in ("accept", "decline"):
        return False
    text = (as_object(found.get("content")) or {}).get(_FIELD)
    if action == "accept" and not isinstance(text, str):
        raise BadText(_FIELD, "is missing: the answer is a text under that name")
    try:
        if action == "accept":
            await caller.jobs.answer(job.id, f"{text}\n")
        else:
            await caller.jobs.answer(job.id, "", close=True)
    except JobEnded:
        pass  # the job ended meanwhile
    return True


#: Poll interval in ms: shortest, longest, and polls per age of the call (the interval grows with the age).
_MIN_POLL_MS, _MAX_POLL_MS, _POLLS_PER_AGE = 500, 5_000, 10


def is_finished(task: DeferredId, job: Job) -> bool:
    """Return whether the call is complete: its job ended, or its wait timed out."""
    return job.is_final or (task.until is not None and time.time() * 1000 >= task.until)


def working_state(caller: Caller, task: DeferredId, job: Job) -> dict[str, object]:
    """Return the state of a call in progress."""
    said = progress_line(caller.yard.home, job)
    return _task_state(caller, task, job, "working", said or state_text(job))


def input_required_state(caller: Caller, task: DeferredId, job: Job, asked: Question) -> dict[str, object]:
    """Return the state of a call whose job waits for input."""
    state = _task_state(caller, task, job, "input_required", "It waits for input.")
    return {**state, "inputRequests": {asked.key: asked.request}}


async def finished_state(caller: Caller, task: DeferredId, *, structured: bool) -> dict[str, object]:
    """Return the state of a complete call. Reading it counts as having been notified of the job's end."""
    found = await caller.jobs.output(task.job_id, transcript=task.transcript)
    job, end = found.job, found.job.end
    if task.until is None and end is not None and end.cause == "stopped":
        by = f" by {end.by}" if end.by else ""
        return await asyncio.to_thread(_task_state, caller, task, job, "cancelled", f"It was stopped{by}.")
    answer = ended_answer(found) if task.until is None else output_answer(found, blocked=True)
    state = await asyncio.to_thread(_task_state, caller, task, job, "completed", "")
    return {**state, "result": _result_json(answer, structured=structured)}


def _result_json(answer: ToolAnswer, *, structured: bool) -> Mapping[str, object]:
    return tool_result(answer, structured=structured).model_dump(by_alias=True, mode="json", exclude_none=True)


def _task_state(caller: Caller, task: DeferredId, job: Job, status: str, message: str) -> dict[str, object]:
    began = job.start_time if task.until is None else task.until - task.lasts
    changed = max(_last_change(JobPaths(caller.yard.home, job.id)) or began, began)
    kept = round(caller.yard.settings.job_age_limit * 1000)
    return {
        "taskId": str(task),
        "status": status,
        **({"statusMessage": message} if message else {}),
        "createdAt": _iso(began),
        "lastUpdatedAt": _iso(job.end.at if job.end is not None else changed),
        "ttlMs": max(job.end.at - began, 0) + kept if job.end is not None else None,
        "pollIntervalMs": _poll_interval(began),
    }


def _poll_interval(began: int) -> int:
    return max(_MIN_POLL_MS, min(_MAX_POLL_MS, round(time.time() * 1000 - began) // _POLLS_PER_AGE))


def _last_change(folder: JobPaths) -> int | None:
    """Return when the job's record or output last changed, in epoch ms."""
    times: list[int] = []
    for path in (folder.record, folder.output):
        try:
            times.append(os.lstat(path).st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return max(times, default=None)


def _iso(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


#: Most answered questions that are remembered: a job asks again only after it printed something.
_MOST_ANSWERED = 1_000


def _check_name(ctx: Request, task_id: str) -> None:
    """Refuse a request over HTTP whose `Mcp-Name` header does not match its body (SEP-2243).

    The SDK does it for the methods it knows.
    """
    headers: Mapping[str, str] | None = getattr(ctx.request, "headers", None)
    named = headers.get(MCP_NAME_HEADER) if headers is not None else None
    if named is not None and decode_header_value(named) != task_id:
        raise MCPError(HEADER_MISMATCH, "The header Mcp-Name does not name the task of the request's taskId.")


class TaskParams(RequestParams):
    """The task of a request."""

    task_id: Annotated[str, Field(max_length=100)]


class UpdateParams(TaskParams):
    """Answers to a task's questions."""

    input_responses: Annotated[dict[str, Any], Field(max_length=100)]


class TasksExtension(Extension):
    """The extension that serves deferred calls."""

    identifier = TASKS_EXTENSION

    def __init__(self, callers: Callers, *, structured: bool) -> None:
        """Set up. `callers`: resolves requests to callers. `structured`: answers have data beside their text."""
        self._callers = callers
        self._structured = structured
        self._answered: dict[tuple[str, str], None] = {}  # in the order of the answers

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods for tasks."""
        modern = frozenset(MODERN_PROTOCOL_VERSIONS)
        return (
            MethodBinding("tasks/get", TaskParams, self._get, modern),
            MethodBinding("tasks/update", UpdateParams, self._update, modern),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, modern),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Request, call_next: CallNext
    ) -> HandlerResult:
        """Answer with a task if the call was deferred and the client supports tasks."""
        answer = await call_next(ctx)
        if not isinstance(answer, DeferrableResult) or answer.deferred is None or not supports_tasks(ctx):
            return answer
        caller, task = await self._callers.find(ctx), parse_deferred_id(answer.deferred)
        caller.awaits(task.job_id)
        job = await asyncio.to_thread(caller.jobs.get, task.job_id)
        state = await asyncio.to_thread(working_state, caller, task, job)
        return {"resultType": "task", **state}

    async def _get(self, ctx: Request, params: TaskParams) -> HandlerResult:
        caller, task, job = await self._found(ctx, params)
        try:
            if is_finished(task, job):
                state = await finished_state(caller, task, structured=self._structured or parses_text(ctx))
                caller.stop_awaiting(job.id)
                return state
            caller.awaits(job.id)
            asked = await asyncio.to_thread(pending_question, caller.yard.home, job)
            if asked is not None and (job.id, asked.key) not in self._answered:
                return input_required_state(caller, task, job, asked)
            return await asyncio.to_thread(working_state, caller, task, job)
        except TaskyardError as error:
            raise protocol_error(error) from error

    async def _update(self, ctx: Request, params: UpdateParams) -> HandlerResult:
        caller, _, job = await self._found(ctx, params)
        asked = await asyncio.to_thread(pending_question, caller.yard.home, job)
        if asked is None or asked.key not in params.input_responses or (job.id, asked.key) in self._answered:
            return {}  # the question is settled or gone
        key = (job.id, asked.key)
        self._answered[key] = None  # before it is typed: of two concurrent answers only one is
        done = False
        try:
            done = await apply_answer(caller, job, params.input_responses[asked.key])
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
        if task.until is None and not job.is_final:  # cancelling a wait does not stop the job
            await caller.jobs.ask_to_stop(job.id)
        return {}

    async def _found(self, ctx: Request, params: TaskParams) -> tuple[Caller, DeferredId, Job]:
        """Return the caller, the deferred call, and the job behind it."""
        require_client_extension(ctx, TASKS_EXTENSION)
        _check_name(ctx, params.task_id)
        caller = await self._callers.find(ctx)
        try:
            task = parse_deferred_id(params.task_id)
            return caller, task, await asyncio.to_thread(caller.jobs.get, task.job_id)
        except TaskyardError as error:
            raise protocol_error(error) from error
