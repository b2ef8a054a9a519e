"""The detail view of one task or one job, as rows; some rows link to another task or job. Pure."""

from __future__ import annotations

import time

from taskyard.core.text import duration, escape_control
from taskyard.core.values import NamedTuple
from taskyard.jobs.job_text import JobUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskyard.tasks.model import Change, Task
    from taskyard.ui.jobs import JobView
    from taskyard.ui.tasks import TaskView

#: Changes of a task's history that are shown, the latest; `taskyard task log` has all.
MOST_CHANGES = 50


class DetailRow(NamedTuple):
    """One row: a name and its value."""

    name: str
    value: str
    token: str = "default"  # noqa: S105  (a colour)
    link_id: str = ""  #: id of the linked task or job; "" if none
    glyph: str = ""
    ascii: str = ""


class DetailData(NamedTuple):
    """Data of the detail view that is not in a snapshot."""

    task: Task | None = None
    history: Sequence[Change] = ()
    took: JobUsage = JobUsage()
    cwd: str = ""


BLANK = DetailRow("", "")


def task_detail_rows(
    task: TaskView, known: DetailData, *, tasks: Mapping[str, TaskView], jobs: Sequence[JobView], now: int
) -> list[DetailRow]:
    """Return the rows of a task."""
    facts = [DetailRow("", f"#{task.id} {task.subject}", "bold")]
    age = f", {duration((now - task.since) / 1000)}" if task.since is not None else ""
    facts.append(DetailRow("state", f"{task.word}{age}", task.token, glyph=task.glyph, ascii=task.ascii))
    facts += [DetailRow("owner", f"@{task.owner}{' (you)' if task.is_mine else ''}")] if task.owner else []
    facts += [DetailRow("meanwhile", task.doing)] if task.doing else []
    facts += [DetailRow("note", task.note)] if task.note and not task.waits_for else []
    facts += _edge_rows("waits for", task.waits_for, tasks)
    facts += _edge_rows("waited for", [one for one in task.blocked_by if one not in task.waits_for], tasks)
    facts += _edge_rows("blocks", task.blocks, tasks)
    facts += [DetailRow("priority", str(task.priority))] if task.priority is not None else []
    facts += [DetailRow("labels", ", ".join(task.labels))] if task.labels else []
    facts += _job_rows(jobs)
    facts += [DetailRow("took", known.took.in_words())] if known.took.jobs else []
    if known.task is not None and known.task.description and known.task.description != known.task.subject:
        facts += [
            BLANK,
            *(DetailRow("", line) for line in escape_control(known.task.description, lines=True).split("\n")),
        ]
    if known.history:
        facts += [BLANK, DetailRow("history", ""), *_history_rows(known.history)]
    return facts


def job_detail_rows(job: JobView, known: DetailData, *, now: int) -> list[DetailRow]:
    """Return the rows of a job."""
    facts = [
        DetailRow("", job.description, "bold"),
        DetailRow("", format_steps(job), job.token, glyph=job.glyph, ascii=job.ascii),
    ]
    facts += _time_rows(job, now)
    facts += [DetailRow("cut off", job.last_line, "warn")] if job.is_disconnected else []
    facts += [DetailRow("asks", line, "warn") for line in job.question.split("\n") if line.strip()][:5]
    facts += [DetailRow("id", job.id), DetailRow("kind", job.kind)]
    facts += [
        DetailRow("command" if at == 0 else "", line) for at, line in enumerate(job.command.split("\n")[:20]) if line
    ]
    facts += [DetailRow("in", escape_control(known.cwd))] if known.cwd else []
    facts += [DetailRow("process", str(job.pid))] if job.pid is not None else []
    facts += [DetailRow("output", escape_control(job.output))] if job.output else []
    facts += [DetailRow("by", f"@{job.agent}")] if job.agent else []
    facts += (
        [DetailRow("for task", f"#{job.task.rpartition('/')[2]}", link_id=job.task.rpartition("/")[2])]
        if job.task
        else []
    )
    facts += [DetailRow("inside", job.parent, link_id=job.parent)] if job.parent else []
    facts += [DetailRow("notified", "yes", glyph="✓", ascii="+")] if job.notified else []
    took = job.total._replace(duration_ms=_run_ms(job, now)) if job.total.jobs <= 1 else job.total
    return [*facts, DetailRow("took", took.in_words())]


def format_steps(job: JobView) -> str:
    """`pending ─▶ running ─▶ failed (exit 2)`."""
    return " ─▶ ".join(step.word for step in job.steps)


def format_time(at: int) -> str:
    """Format a time of day, in local time."""
    return time.strftime("%H:%M:%S", time.localtime(at / 1000))


def format_datetime(at: int) -> str:
    """Format date and time of day, in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))


def _run_ms(job: JobView, now: int) -> int:
    if job.started_at is None or job.state == "pending":
        return 0
    return max((job.ended_at or now) - job.started_at - job.paused_ms, 0)


def _time_rows(job: JobView, now: int) -> Iterator[DetailRow]:
    parts = [f"{step.word.partition(' ')[0]} {format_time(step.at)}" for step in job.steps if step.at is not None]
    if parts:
        yield DetailRow("when", " · ".join([*parts, duration(_run_ms(job, now) / 1000)]))
    if job.paused_ms:
        yield DetailRow("paused", duration(job.paused_ms / 1000))


def _edge_rows(name: str, ids: Sequence[str], tasks: Mapping[str, TaskView]) -> Iterator[DetailRow]:
    for at, task_id in enumerate(ids):
        title = name if at == 0 else ""
        if (other := tasks.get(task_id)) is None:
            yield DetailRow(title, f"#{task_id} (not on the list)", "muted")
            continue
        yield DetailRow(title, f"#{other.id} {other.subject}", other.token, other.id, other.glyph, other.ascii)


def _job_rows(jobs: Sequence[JobView]) -> Iterator[DetailRow]:
    for at, job in enumerate(jobs):
        yield DetailRow(
            "jobs" if at == 0 else "", f"{job.id} {job.description}", job.token, job.id, job.glyph, job.ascii
        )


def _history_rows(history: Sequence[Change]) -> Iterator[DetailRow]:
    for change in reversed(history[-MOST_CHANGES:]):
        note = f" ({escape_control(change.act.note)})" if change.act.note else ""
        undone = ", never took effect" if change.aborted else ""
        yield DetailRow(
            "",
            f"{format_datetime(change.at)}  {escape_control(change.act.by or '-')}"
            f"  {escape_control(change.act.cause)}{note}{undone}",
            "muted",
        )
