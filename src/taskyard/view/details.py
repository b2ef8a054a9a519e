"""Everything about one task or one job, as facts to be shown below each other; some of them lead elsewhere. Pure."""

from __future__ import annotations

import time

from taskyard.typed import NamedTuple
from taskyard.view.figures import Figures
from taskyard.view.text import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskyard.tasklist.model import Change, Task
    from taskyard.view.job_views import JobView
    from taskyard.view.task_views import TaskView

#: Changes in a task's history that are shown, the latest; `taskyard task log` has all.
MOST_CHANGES = 50


class Fact(NamedTuple):
    """One line, or several: a name and what is so."""

    name: str
    value: str
    token: str = "default"  # noqa: S105  (a colour)
    leads_to: str = ""  #: the id of a task or job, where the line leads to one
    glyph: str = ""
    ascii: str = ""


class Known(NamedTuple):
    """What had to be read beyond a snapshot."""

    task: Task | None = None
    history: Sequence[Change] = ()
    took: Figures = Figures()
    cwd: str = ""


BLANK = Fact("", "")


def task_facts(
    task: TaskView, known: Known, *, tasks: Mapping[str, TaskView], jobs: Sequence[JobView], now: int
) -> list[Fact]:
    """Everything about a task."""
    facts = [Fact("", f"#{task.id} {task.subject}", "bold")]
    age = f", {duration((now - task.since) / 1000)}" if task.since is not None else ""
    facts.append(Fact("state", f"{task.word}{age}", task.token, glyph=task.glyph, ascii=task.ascii))
    facts += [Fact("owner", f"@{task.owner}{' (you)' if task.is_mine else ''}")] if task.owner else []
    facts += [Fact("meanwhile", task.doing)] if task.doing else []
    facts += [Fact("note", task.note)] if task.note and not task.waits_for else []
    facts += _edges("waits for", task.waits_for, tasks)
    facts += _edges("waited for", [one for one in task.blocked_by if one not in task.waits_for], tasks)
    facts += _edges("blocks", task.blocks, tasks)
    facts += [Fact("priority", str(task.priority))] if task.priority is not None else []
    facts += [Fact("labels", ", ".join(task.labels))] if task.labels else []
    facts += _jobs_of(jobs)
    facts += [Fact("took", known.took.in_words())] if known.took.jobs else []
    if known.task is not None and known.task.description and known.task.description != known.task.subject:
        facts += [BLANK, *(Fact("", line) for line in safe(known.task.description, lines=True).split("\n"))]
    if known.history:
        facts += [BLANK, Fact("history", ""), *_changes(known.history)]
    return facts


def job_facts(job: JobView, known: Known, *, now: int) -> list[Fact]:
    """Everything about a job."""
    facts = [Fact("", job.description, "bold"), Fact("", strip(job), job.token, glyph=job.glyph, ascii=job.ascii)]
    facts += _times(job, now)
    facts += [Fact("cut off", job.last_line, "warn")] if job.is_disconnected else []
    facts += [Fact("asks", line, "warn") for line in job.question.split("\n") if line.strip()][:5]
    facts += [Fact("id", job.id), Fact("kind", job.kind)]
    facts += [Fact("command" if at == 0 else "", line) for at, line in enumerate(job.command.split("\n")[:20]) if line]
    facts += [Fact("in", safe(known.cwd))] if known.cwd else []
    facts += [Fact("process", str(job.pid))] if job.pid is not None else []
    facts += [Fact("output", safe(job.output))] if job.output else []
    facts += [Fact("by", f"@{job.agent}")] if job.agent else []
    facts += (
        [Fact("for task", f"#{job.task.rpartition('/')[2]}", leads_to=job.task.rpartition("/")[2])] if job.task else []
    )
    facts += [Fact("inside", job.parent, leads_to=job.parent)] if job.parent else []
    facts += [Fact("told", "yes", glyph="✓", ascii="+")] if job.notified else []
    took = job.total._replace(duration_ms=_ran(job, now)) if job.total.jobs <= 1 else job.total
    return [*facts, Fact("took", took.in_words())]


def strip(job: JobView) -> str:
    """`pending ─▶ running ─▶ failed (exit 2)`."""
    return " ─▶ ".join(step.word for step in job.steps)


def clock(at: int) -> str:
    """The time of day, as people here say it."""
    return time.strftime("%H:%M:%S", time.localtime(at / 1000))


def moment(at: int) -> str:
    """Date and time of day."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))


def _ran(job: JobView, now: int) -> int:
    if job.started_at is None or job.state == "pending":
        return 0
    return max((job.ended_at or now) - job.started_at - job.paused_ms, 0)


def _times(job: JobView, now: int) -> Iterator[Fact]:
    parts = [f"{step.word.partition(' ')[0]} {clock(step.at)}" for step in job.steps if step.at is not None]
    if parts:
        yield Fact("when", " · ".join([*parts, duration(_ran(job, now) / 1000)]))
    if job.paused_ms:
        yield Fact("paused", duration(job.paused_ms / 1000))


def _edges(name: str, ids: Sequence[str], tasks: Mapping[str, TaskView]) -> Iterator[Fact]:
    for at, task_id in enumerate(ids):
        title = name if at == 0 else ""
        if (other := tasks.get(task_id)) is None:
            yield Fact(title, f"#{task_id} (not on the list)", "muted")
            continue
        yield Fact(title, f"#{other.id} {other.subject}", other.token, other.id, other.glyph, other.ascii)


def _jobs_of(jobs: Sequence[JobView]) -> Iterator[Fact]:
    for at, job in enumerate(jobs):
        yield Fact("jobs" if at == 0 else "", f"{job.id} {job.description}", job.token, job.id, job.glyph, job.ascii)


def _changes(history: Sequence[Change]) -> Iterator[Fact]:
    for change in reversed(history[-MOST_CHANGES:]):
        note = f" ({safe(change.act.note)})" if change.act.note else ""
        undone = ", never took effect" if change.aborted else ""
        yield Fact(
            "", f"{moment(change.at)}  {safe(change.act.by or '-')}  {safe(change.act.cause)}{note}{undone}", "muted"
        )
