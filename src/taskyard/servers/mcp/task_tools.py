"""The MCP tools of the shared list: TaskCreate, TaskGet, TaskList, TaskUpdate, TaskClaim.

TaskUpdate changes fields, status and dependencies in one atomic step of the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskyard.core.values import as_object
from taskyard.errors import BadValue, TaskNotFound, UsageError
from taskyard.servers.mcp import tool_definitions, tool_texts
from taskyard.servers.mcp.answers import (
    LONGEST_ECHO,
    ToolAnswer,
    refusal,
    task_data,
    tasks_page,
    truncate,
    unreadable_in,
)
from taskyard.servers.mcp.calls import ToolCall, ToolSpec
from taskyard.servers.mcp.tool_definitions import TaskUpdate
from taskyard.tasks import text as tasks_text
from taskyard.tasks.model import EXTRAS, Task, labels_of
from taskyard.tasks.rules import nothing_free
from taskyard.tasks.task_list import TaskList
from taskyard.yard import Yard

#: Fields that an answer names, in the order models know.
_FIELDS = {
    "subject": "subject",
    "description": "description",
    "active_form": "activeForm",
    "owner": "owner",
    "status": "status",
    "blocks": "blocks",
    "blocked_by": "blockedBy",
    "metadata": "metadata",
}


def update(tasks: TaskList, given: TaskUpdate, extras: dict[str, Any]) -> ToolAnswer:
    """Change a task, and report what changed."""
    before = tasks.get(given.task_id)
    task = tasks.update(
        given.task_id,
        subject=given.subject,
        description=given.description,
        active_form=given.active_form,
        owner=given.owner,
        status=given.status,
        metadata=given.metadata,
        clear=given.clear or (),
        add_blocks=given.add_blocks or (),
        add_blocked_by=given.add_blocked_by or (),
        remove_blocks=given.remove_blocks or (),
        remove_blocked_by=given.remove_blocked_by or (),
        **extras,
    )
    changed = [name for field, name in _FIELDS.items() if getattr(before, field) != getattr(task, field)]
    text = (
        tasks_text.format_updated(task.id, changed)
        if changed
        else f"Nothing to change: task #{task.id} is as asked for."
    )
    ready = f"Ready now: {', '.join(f'#{other}' for other in task.ready)}." if task.ready else ""
    data = {"task": task_data(task, longest=LONGEST_ECHO), "changed": changed, "ready": list(task.ready)}
    return ToolAnswer(text, data, tuple(filter(None, (ready, *task.notes))))


def delete(tasks: TaskList, given: TaskUpdate) -> ToolAnswer:
    """Delete a task from the list."""
    if others := given.model_fields_set - {"task_id", "status"}:
        names = ", ".join(sorted(type(given).model_fields[name].alias or name for name in others))
        raise BadValue("status", "deleted", f"no other field with that, and there is {names}", found="is deleted")
    gone = tasks.delete(given.task_id)
    data = {"task": task_data(gone, longest=LONGEST_ECHO), "changed": ["deleted"], "ready": []}
    return ToolAnswer(tasks_text.format_updated(gone.id, ["deleted"]), data)


async def _create(call: ToolCall, given: tool_definitions.TaskCreate) -> ToolAnswer:
    def act(yard: Yard) -> Task:
        return yard.tasks.create(
            given.subject,
            description=given.description,
            active_form=given.active_form,
            owner=given.owner or None,
            blocks=given.blocks or (),
            blocked_by=given.blocked_by or (),
            metadata=given.metadata,
            **extras_of(given),
        )

    task = await call.caller.on_list(act)
    return ToolAnswer(tasks_text.format_created(task), {"task": task_data(task, longest=LONGEST_ECHO)}, task.notes)


async def _get(call: ToolCall, given: tool_definitions.TaskGet) -> ToolAnswer:
    def act(yard: Yard) -> ToolAnswer:
        task = yard.tasks.get(given.task_id)
        listing = yard.tasks.list(internal=True)
        by_id = {other.id: other for other in listing}
        text = tasks_text.format_details(_with_short_description(task), by_id, unreadable=unreadable_in(listing))
        return ToolAnswer(text, {"task": task_data(task)})

    try:
        return await call.caller.on_list(act)
    except TaskNotFound as error:
        return refusal(error, text=tasks_text.NOT_FOUND)


async def _list(call: ToolCall, given: tool_definitions.TaskList) -> ToolAnswer:
    listing = await call.caller.on_list(lambda yard: yard.tasks.list())
    return tasks_page(listing, status=given.status, owner=given.owner, after=given.after)


async def _update(call: ToolCall, given: tool_definitions.TaskUpdate) -> ToolAnswer:
    try:
        if given.status == "deleted":
            answer = await call.caller.on_list(lambda yard: delete(yard.tasks, given))
            call.caller.changed(given.task_id, is_working=False)
            return answer
        answer = await call.caller.on_list(lambda yard: update(yard.tasks, given, extras_of(given)))
        call.caller.changed(given.task_id, is_working=_is_working(call, as_object(answer.data["task"]) or {}))
        return answer
    except TaskNotFound as error:
        return refusal(error, text=tasks_text.NOT_FOUND) if error.task_id == given.task_id else refusal(error)


def _is_working(call: ToolCall, task: Mapping[str, object]) -> bool:
    return task.get("status") == "in_progress" and task.get("owner") == call.caller.yard.agent


async def _claim(call: ToolCall, given: tool_definitions.TaskClaim) -> ToolAnswer:
    labels = frozenset(given.labels or ())

    def suits(task: Task) -> bool:
        return not labels or not labels.isdisjoint(labels_of(task))

    def one(yard: Yard, task_id: str) -> Task:
        task = yard.tasks.claim(task_id, check_busy=given.check_busy, lease=call.caller.lease)
        return yard.tasks.start(task_id)._replace(notes=task.notes) if given.start else task

    def act(yard: Yard) -> Task:
        if given.task_id is not None:
            if labels or given.capabilities:
                raise UsageError("labels and capabilities choose among free tasks: give them or a taskId, not both.")
            return one(yard, given.task_id)
        found = yard.tasks.claim_next(
            where=suits,
            capabilities=given.capabilities or (),
            lease=call.caller.lease,
            start=given.start,
            check_busy=given.check_busy,
        )
        if found is None:
            raise nothing_free(yard.tasks)
        return found

    try:
        task = await call.caller.on_list(act)
    except TaskNotFound as error:
        return refusal(error, text=tasks_text.NOT_FOUND)
    call.caller.changed(task.id, is_working=task.status.value == "in_progress")
    details = tasks_text.format_details(_with_short_description(task), {task.id: task})
    text = f"Claimed task #{task.id} for {call.caller.name}.\n{details}"
    return ToolAnswer(text, {"task": task_data(task)}, task.notes)


def _with_short_description(task: Task) -> Task:
    return task._replace(description=truncate(task.description))


def extras_of(given: tool_definitions.Extras) -> dict[str, Any]:
    """Return the optional fields that were given, as keyword arguments of the list."""
    found: Mapping[str, Any] = given.model_dump(include=set(EXTRAS), exclude_none=True)
    return dict(found)


TASK_TOOLS: tuple[ToolSpec[Any], ...] = (
    ToolSpec(
        "TaskCreate",
        tool_texts.TASK_CREATE,
        tool_definitions.TaskCreate,
        _create,
        tool_definitions.ONE_TASK,
        title="Add a task",
    ),
    ToolSpec(
        "TaskGet",
        tool_texts.TASK_GET,
        tool_definitions.TaskGet,
        _get,
        tool_definitions.ONE_TASK,
        reads=True,
        title="Look at a task",
    ),
    ToolSpec(
        "TaskList",
        tool_texts.TASK_LIST,
        tool_definitions.TaskList,
        _list,
        tool_definitions.TASKS,
        reads=True,
        title="Look at the list",
    ),
    ToolSpec(
        "TaskUpdate",
        tool_texts.TASK_UPDATE,
        tool_definitions.TaskUpdate,
        _update,
        tool_definitions.UPDATED_TASK,
        destroys=True,
        title="Change a task",
    ),
    ToolSpec(
        "TaskClaim",
        tool_texts.TASK_CLAIM,
        tool_definitions.TaskClaim,
        _claim,
        tool_definitions.ONE_TASK,
        repeats=True,
        title="Claim a task",
    ),
)
