"""TaskList and ListJobs, a page at a time: what fits into a model's context, and how to see the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from taskyard.errors import BadValue
from taskyard.mcp_server.answers import Answer
from taskyard.names import is_id
from taskyard.runtime.model import Job
from taskyard.tasklist.model import Listing, Task
from taskyard.view import model_text
from taskyard.view.job_text import state, why_disconnected
from taskyard.view.ordering import hidden_line, waits_for

#: Characters of one page, as data or as text, whichever is longer: well below 4,000 tokens.
PAGE = 9_000

#: Begins the place of a task among the completed ones, which come behind the open ones.
_DONE = "completed:"

T = TypeVar("T", Task, Job)


def page(listing: Listing, *, status: str | None, owner: str | None, after: str | None) -> Answer:
    """The tasks that are asked for. Of more than fit into one answer, the open ones come first, then the completed."""
    by_id = {task.id: task for task in listing}
    unreadable = unreadable_in(listing)
    behind = _place_of(after, status) if after else None
    wanted = [
        task
        for task in listing
        if not task.is_internal
        and status in (None, task.status.value)
        and owner in (None, task.owner)
        and (behind is None or _place(task) > behind)
    ]
    rows = {task.id: _row(task, by_id, unreadable) for task in wanted}
    shown = _fitting(wanted, rows)
    if behind is not None or len(shown) < len(wanted):
        wanted.sort(key=_place)
        shown = _fitting(wanted, rows)
    text = model_text.listing(shown, among=by_id, unreadable=unreadable)
    left = wanted[len(shown) :]
    turn = _cursor(shown[-1]) if left else None
    hints = [f"{hidden_line(left)}: {_asked('TaskList', status=status, owner=owner, after=turn)}"] if turn else []
    damaged = [f"#{task_id} cannot be read; a person can run `taskyard doctor`." for task_id in sorted(unreadable)]
    data = {
        "tasks": [rows[task.id] for task in shown],
        "total": len(wanted),
        "left_out": len(left),
        "after": turn,
    }
    return Answer(text, data, (*hints, *damaged[:5]))


def _place(task: Task) -> tuple[bool, int]:
    """Where a task stands among all pages."""
    return task.is_done, int(task.id)


def _cursor(task: Task) -> str:
    """How to ask for what is behind a task, also if its status is another one by then."""
    return f"{_DONE}{task.id}" if task.is_done else task.id


def _place_of(after: str, status: str | None) -> tuple[bool, int]:
    number = after.removeprefix(_DONE)
    if not is_id(number):
        raise BadValue("after", after, "what the page before gave as `after`, or the id of a task")
    return (after != number if status is None else status == "completed"), int(number)


def _asked(tool: str, **fields: object) -> str:
    """A call as a model writes it, with what was given."""
    given = {name: value for name, value in fields.items() if value}
    return f"{tool} {json.dumps(given, ensure_ascii=False)}"


def unreadable_in(listing: Listing) -> frozenset[str]:
    """The ids whose files cannot be read: whoever waits for one of them goes on waiting."""
    return frozenset(item.file.removesuffix(".json") for item in listing.damaged)


def jobs_page(jobs: Iterable[Job], *, ended: bool, last: Job | None) -> Answer:
    """Jobs, oldest first, behind the `last` of the page before, which may be over by now."""
    wanted = [job for job in jobs if last is None or (job.start_time, job.id) > (last.start_time, last.id)]
    rows = {job.id: _job_row(job) for job in wanted}
    shown = _fitting(wanted, rows)
    lines = [f"{job.id} [{state(job)}] {job.description}" for job in shown]
    left = len(wanted) - len(shown)
    turn = shown[-1].id if left else None
    hints = (f"… +{left} more: {_asked('ListJobs', all=ended, after=turn)}",) if turn else ()
    data = {
        "jobs": [rows[job.id] for job in shown],
        "total": len(wanted),
        "left_out": left,
        "after": turn,
    }
    return Answer("\n".join(lines) or "No jobs found", data, hints)


def _row(task: Task, by_id: Mapping[str, Task], unreadable: frozenset[str]) -> dict[str, object]:
    row: dict[str, object] = {"id": task.id, "status": task.status.value, "subject": task.subject}
    if task.owner:
        row["owner"] = task.owner
    if blockers := waits_for(task, by_id, unreadable):
        row["blocked_by"] = list(blockers)
    return row


def job_facts(job: Job) -> dict[str, object]:
    """What every answer about a job has."""
    facts: dict[str, object] = {
        "task_id": job.id,
        "task_type": job.type,
        "status": job.status.value,
        "description": job.description,
        "output_file": job.output_file or None,
    }
    if job.needs_input:
        facts["needs_input"] = True
    if (limit := job.rate_limited) is not None:
        facts["waiting"] = limit.state()
    if job.is_far:
        facts["host"] = job.host_name
    if job.is_disconnected:
        facts["disconnected"] = why_disconnected(job)
    return facts


def _job_row(job: Job) -> dict[str, object]:
    row = job_facts(job)
    if job.agent_id:
        row["agent"] = job.agent_id
    if job.end is not None and job.end.exit_code is not None:
        row["exitCode"] = job.end.exit_code
    return row


def _fitting(items: Sequence[T], rows: Mapping[str, Mapping[str, object]], room: int = PAGE) -> list[T]:
    """The first of them that fit into one page; always one, however long."""
    shown: list[T] = []
    for item in items:
        room -= len(json.dumps(rows[item.id])) + 2
        if room < 0 and shown:
            break
        shown.append(item)
    return shown
