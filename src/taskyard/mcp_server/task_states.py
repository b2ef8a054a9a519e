"""A call that was put off, as the Tasks extension describes it: how it stands, and in the end what it answers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from taskyard.mcp_server.answers import Answer, result
from taskyard.mcp_server.asking import Question
from taskyard.mcp_server.callers import Caller
from taskyard.mcp_server.job_tools import shown
from taskyard.mcp_server.results import ended
from taskyard.mcp_server.task_ids import TaskId
from taskyard.mcp_server.waiting import last_line
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.model import Job
from taskyard.view.job_text import state

#: How often to look, in ms: soon at first, then the less often the longer it takes.
_SOONEST, _LATEST, _OF_AGE = 500, 5_000, 10


def is_over(task: TaskId, job: Job) -> bool:
    """Whether the call has its answer: its job ended, or a wait lasted as long as it was to."""
    return job.is_final or (task.until is not None and time.time() * 1000 >= task.until)


def working(caller: Caller, task: TaskId, job: Job) -> dict[str, object]:
    """It goes on."""
    said = last_line(caller.yard.home, job)
    return _task(caller, task, job, "working", said or state(job))


def asking(caller: Caller, task: TaskId, job: Job, asked: Question) -> dict[str, object]:
    """It goes on when it is answered."""
    state = _task(caller, task, job, "input_required", "It waits for input.")
    return {**state, "inputRequests": {asked.key: asked.request}}


async def over(caller: Caller, task: TaskId, *, structured: bool) -> dict[str, object]:
    """It has its answer. Whoever is to hear of the job's end has heard of it with this."""
    found = await caller.jobs.output(task.job_id, transcript=task.transcript)
    job, end = found.job, found.job.end
    if task.until is None and end is not None and end.cause == "stopped":
        by = f" by {end.by}" if end.by else ""
        return await asyncio.to_thread(_task, caller, task, job, "cancelled", f"It was stopped{by}.")
    answer = ended(found) if task.until is None else shown(found, blocked=True)
    state = await asyncio.to_thread(_task, caller, task, job, "completed", "")
    return {**state, "result": _wire(answer, structured=structured)}


def _wire(answer: Answer, *, structured: bool) -> Mapping[str, object]:
    return result(answer, structured=structured).model_dump(by_alias=True, mode="json", exclude_none=True)


def _task(caller: Caller, task: TaskId, job: Job, status: str, message: str) -> dict[str, object]:
    began = job.start_time if task.until is None else task.until - task.lasts
    changed = max(_changed(JobFolder(caller.yard.home, job.id)) or began, began)
    kept = round(caller.yard.settings.job_age_limit * 1000)
    return {
        "taskId": str(task),
        "status": status,
        **({"statusMessage": message} if message else {}),
        "createdAt": _iso(began),
        "lastUpdatedAt": _iso(job.end.at if job.end is not None else changed),
        "ttlMs": max(job.end.at - began, 0) + kept if job.end is not None else None,
        "pollIntervalMs": _interval(began),
    }


def _interval(began: int) -> int:
    return max(_SOONEST, min(_LATEST, round(time.time() * 1000 - began) // _OF_AGE))


def _changed(folder: JobFolder) -> int | None:
    """When the job's record or output last changed."""
    times: list[int] = []
    for path in (folder.record, folder.output):
        try:
            times.append(os.lstat(path).st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return max(times, default=None)


def _iso(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
