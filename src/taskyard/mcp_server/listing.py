"""TaskList and ListJobs, a page at a time: what fits into a model's context, and how to see the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from taskyard.mcp_server.answers import Answer
from taskyard.runtime.model import Job
from taskyard.tasklist.model import Listing, Task
from taskyard.view import model_text
from taskyard.view.job_text import state
from taskyard.view.ordering import hidden_line, waits_for

#: Characters of one page, as data or as text, whichever is longer: well below 4,000 tokens.
PAGE = 9_000

T = TypeVar("T", Task, Job)


def page(listing: Listing, *, status: str | None, owner: str | None, after: str | None) -> Answer:
    """The tasks that are asked for. Of more than fit into one answer, the open ones come first."""
    by_id = {task.id: task for task in listing}
    unreadable = unreadable_in(listing)
    wanted = [
        task
        for task in listing
        if not task.is_internal
        and status in (None, task.status.value)
        and owner in (None, task.owner)
        and (after is None or _behind(task.id, after))
    ]
    rows = {task.id: _row(task, by_id, unreadable) for task in wanted}
    shown = _fitting(wanted, rows)
    if len(shown) < len(wanted) and status is None:
        shown = _fitting([task for task in wanted if not task.is_done], rows) or shown
    text = model_text.listing(shown, among=by_id, unreadable=unreadable)
    kept = {task.id for task in shown}
    left = [task for task in wanted if task.id not in kept]
    hints = _hints(left, shown, status) if left else ()
    damaged = [f"#{task_id} cannot be read; a person can run `taskyard doctor`." for task_id in sorted(unreadable)]
    data = {
        "tasks": [rows[task.id] for task in shown],
        "total": len(wanted),
        "left_out": len(left),
        "after": shown[-1].id if left and shown else None,
    }
    return Answer(text, data, (*hints, *damaged[:5]))


def unreadable_in(listing: Listing) -> frozenset[str]:
    """The ids whose files cannot be read: whoever waits for one of them goes on waiting."""
    return frozenset(item.file.removesuffix(".json") for item in listing.damaged)


def jobs_page(jobs: Iterable[Job], *, after: str | None) -> Answer:
    """Jobs, oldest first."""
    everyone = list(jobs)
    known = [job.id for job in everyone]
    wanted = everyone[known.index(after) + 1 :] if after in known else everyone
    rows = {job.id: _job_row(job) for job in wanted}
    shown = _fitting(wanted, rows)
    lines = [f"{job.id} [{state(job)}] {job.description}" for job in shown]
    left = len(wanted) - len(shown)
    hints = (f'… +{left} more: ListJobs {{"after": "{shown[-1].id}"}}',) if left and shown else ()
    data = {
        "jobs": [rows[job.id] for job in shown],
        "total": len(wanted),
        "left_out": left,
        "after": shown[-1].id if left and shown else None,
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


def _hints(left: Sequence[Task], shown: Sequence[Task], status: str | None) -> tuple[str, ...]:
    """What was left out, and how to see it."""
    asked = f'"status": "{status}", ' if status else ""
    last = shown[-1].id if shown else ""
    ways: list[str] = []
    if any(_behind(task.id, last) and (status or not task.is_done) for task in left):
        ways.append(f'TaskList {{{asked}"after": "{last}"}}')
    if not status and any(task.is_done for task in left):
        ways.append('TaskList {"status": "completed"}')
    return (f"{hidden_line(left)}: {' or '.join(ways)}" if ways else hidden_line(left),)


def _behind(task_id: str, after: str) -> bool:
    return not after.isdigit() or int(task_id) > int(after)
