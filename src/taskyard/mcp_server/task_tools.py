"""The tools of the shared list: TaskCreate, TaskGet, TaskList, TaskUpdate, TaskClaim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskyard.app import Yard
from taskyard.errors import TaskNotFound, UsageError
from taskyard.mcp_server import arguments, schemas, words
from taskyard.mcp_server.answers import Answer, refusal
from taskyard.mcp_server.bounds import LONGEST_ECHO, shortened, task_data
from taskyard.mcp_server.calls import Call, Spec
from taskyard.mcp_server.listing import page, unreadable_in
from taskyard.mcp_server.updating import delete, update
from taskyard.shapes import as_object
from taskyard.tasklist.extras import EXTRAS, labels_of
from taskyard.tasklist.model import Task
from taskyard.tasklist.picking import nothing_free
from taskyard.view import model_text


async def _create(call: Call, given: arguments.TaskCreate) -> Answer:
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
    return Answer(model_text.created(task), {"task": task_data(task, longest=LONGEST_ECHO)}, task.notes)


async def _get(call: Call, given: arguments.TaskGet) -> Answer:
    def act(yard: Yard) -> Answer:
        task = yard.tasks.get(given.task_id)
        listing = yard.tasks.list(internal=True)
        by_id = {other.id: other for other in listing}
        text = model_text.details(_shown(task), by_id, unreadable=unreadable_in(listing))
        return Answer(text, {"task": task_data(task)})

    try:
        return await call.caller.on_list(act)
    except TaskNotFound as error:
        return refusal(error, text=model_text.NOT_FOUND)


async def _list(call: Call, given: arguments.TaskList) -> Answer:
    listing = await call.caller.on_list(lambda yard: yard.tasks.list())
    return page(listing, status=given.status, owner=given.owner, after=given.after)


async def _update(call: Call, given: arguments.TaskUpdate) -> Answer:
    try:
        if given.status == "deleted":
            answer = await call.caller.on_list(lambda yard: delete(yard.tasks, given))
            call.caller.changed(given.task_id, works_on_it=False)
            return answer
        answer = await call.caller.on_list(lambda yard: update(yard.tasks, given, extras_of(given)))
        call.caller.changed(given.task_id, works_on_it=_is_at_work(call, as_object(answer.data["task"]) or {}))
        return answer
    except TaskNotFound as error:
        return refusal(error, text=model_text.NOT_FOUND) if error.task_id == given.task_id else refusal(error)


def _is_at_work(call: Call, task: Mapping[str, object]) -> bool:
    return task.get("status") == "in_progress" and task.get("owner") == call.caller.yard.agent


async def _claim(call: Call, given: arguments.TaskClaim) -> Answer:
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
        return refusal(error, text=model_text.NOT_FOUND)
    call.caller.changed(task.id, works_on_it=task.status.value == "in_progress")
    text = f"Claimed task #{task.id} for {call.caller.name}.\n{model_text.details(_shown(task), {task.id: task})}"
    return Answer(text, {"task": task_data(task)}, task.notes)


def _shown(task: Task) -> Task:
    return task._replace(description=shortened(task.description))


def extras_of(given: arguments.Extras) -> dict[str, Any]:
    """The optional fields that were given, as the list takes them."""
    found: Mapping[str, Any] = given.model_dump(include=set(EXTRAS), exclude_none=True)
    return dict(found)


TASK_TOOLS: tuple[Spec[Any], ...] = (
    Spec("TaskCreate", words.TASK_CREATE, arguments.TaskCreate, _create, schemas.ONE_TASK, title="Add a task"),
    Spec("TaskGet", words.TASK_GET, arguments.TaskGet, _get, schemas.ONE_TASK, reads=True, title="Look at a task"),
    Spec("TaskList", words.TASK_LIST, arguments.TaskList, _list, schemas.TASKS, reads=True, title="Look at the list"),
    Spec(
        "TaskUpdate",
        words.TASK_UPDATE,
        arguments.TaskUpdate,
        _update,
        schemas.UPDATED_TASK,
        destroys=True,
        title="Change a task",
    ),
    Spec(
        "TaskClaim",
        words.TASK_CLAIM,
        arguments.TaskClaim,
        _claim,
        schemas.ONE_TASK,
        repeats=True,
        title="Claim a task",
    ),
)
