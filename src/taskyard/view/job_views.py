"""Jobs as every screen shows them: in order, each with its look, its words, and what led to its state. Pure."""

from __future__ import annotations

from taskyard.runtime.model import JobStatus
from taskyard.shapes import as_text
from taskyard.typed import NamedTuple
from taskyard.view.agent_text import agent_line
from taskyard.view.figures import Figures, up_the_tree
from taskyard.view.glyphs import JOB_LOOKS
from taskyard.view.job_text import look, state, tree, why_disconnected
from taskyard.view.pill import kind_word
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.runtime.model import Job

#: A failure that nobody looked at is kept in view for a day.
UNSEEN_MS = 86_400_000

#: Characters of what a job printed last, and of what it asks.
_LONGEST_LINE, _LONGEST_QUESTION = 300, 2_000


class Step(NamedTuple):
    """A state a job came to: `pending ─▶ running ─▶ failed (exit 2)`."""

    word: str
    glyph: str
    token: str
    at: int | None = None  #: epoch ms, where known


class JobView(NamedTuple):
    """One job, ready to be shown."""

    id: str
    type: str
    kind: str  #: shell, agent, teammate, workflow, monitor, dream, cloud session
    description: str
    state: str  #: pending, running, waits, completed, failed or killed
    glyph: str
    ascii: str
    word: str  #: "running", "needs input", "exit 2"
    token: str
    command: str = ""
    depth: int = 0  #: how many jobs of the list it is inside of
    parent: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    paused_ms: int = 0
    last_line: str = ""  #: what it printed last, or does
    question: str = ""  #: what it asks, if it does
    needs_input: bool = False
    takes_input: bool = False
    is_paused: bool = False
    is_disconnected: bool = False  #: its work goes on elsewhere, out of sight; `last_line` says why, and since when
    is_foreground: bool = False
    is_unseen: bool = False  #: it failed, and nobody looked yet
    notified: bool = False  #: its end was told
    task: str | None = None  #: the task it was started for, such as release/7
    agent: str | None = None  #: who started it
    pid: int | None = None
    output: str = ""  #: the path of its output
    total: Figures = Figures()  #: what it took with all that were started inside it
    steps: tuple[Step, ...] = ()

    @property
    def is_going_on(self) -> bool:
        """Whether something can be seen to happen, if it runs."""
        return not self.is_paused and not self.is_disconnected

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ("completed", "failed", "killed")


def job_views(
    jobs: Iterable[Job], *, now: int, last_lines: Mapping[str, str], seen: frozenset[str] = frozenset()
) -> tuple[JobView, ...]:
    """Jobs in the order to show them, those inside another below it.

    What waits for an answer, what runs (latest start first), what failed unseen, what is over (latest end first).
    """
    jobs = list(jobs)
    totals = up_the_tree(jobs, 0)  # of what runs, its start is told: a clock in it would make every look a change
    ordered = sorted(jobs, key=lambda job: _place(job, now, seen))
    return tuple(
        _view(job, depth, last_lines.get(job.id, ""), totals[job.id], is_unseen(job, now, seen))
        for depth, job in tree(ordered)
    )


def is_unseen(job: Job, now: int, seen: frozenset[str]) -> bool:
    """Whether a job failed within the last day and nobody has looked at it."""
    return job.status is JobStatus.FAILED and job.id not in seen and now - (job.end_time or 0) < UNSEEN_MS


def _place(job: Job, now: int, seen: frozenset[str]) -> tuple[int, int, str]:
    if job.is_final:
        return (2 if is_unseen(job, now, seen) else 3, -(job.end_time or 0), job.id)
    return (0 if job.needs_input else 1, -job.start_time, job.id)


def _view(job: Job, depth: int, last_line: str, total: Figures, unseen: bool) -> JobView:
    seen = look(job)
    said = agent_line(job)
    question = as_text(job.facts.get("question")) if job.needs_input else ""
    return JobView(
        job.id,
        safe(job.type),
        kind_word(job),
        safe(job.description),
        _state(job),
        seen.glyph,
        seen.ascii,
        state(job),
        seen.token,
        command=safe(job.command, lines=True),
        depth=depth,
        parent=job.parent,
        started_at=job.start_time or None,
        ended_at=job.end_time,
        paused_ms=job.total_paused_ms,
        last_line=(_waits(job) or why_disconnected(job) or (last_line if said is None else said))[:_LONGEST_LINE],
        question=safe(question, lines=True)[:_LONGEST_QUESTION],
        needs_input=job.needs_input,
        takes_input=job.takes_input and not job.is_final,
        is_paused=job.is_paused,
        is_disconnected=job.is_disconnected,
        is_foreground=not job.is_backgrounded and not job.is_final,
        is_unseen=unseen,
        notified=job.notified,
        task=job.task,
        agent=safe(job.agent_id) if job.agent_id else None,
        pid=job.pid,
        output=job.output_file,
        total=total,
        steps=steps(job),
    )


def _state(job: Job) -> str:
    if job.rate_limited is not None:
        return "pending"
    return "waits" if job.needs_input and not job.is_final else job.status.value


def steps(job: Job) -> tuple[Step, ...]:
    """How a job came to where it is."""
    pending, running = JOB_LOOKS["pending"], JOB_LOOKS["running"]
    found = [Step("pending", pending.glyph, "muted")]
    if job.status is JobStatus.PENDING:
        return (Step("pending", pending.glyph, pending.token, job.start_time or None),)
    is_last = not (job.is_final or job.needs_input or job.is_paused or job.is_disconnected)
    found.append(Step("running", running.glyph, running.token if is_last else "muted", job.start_time or None))
    if not is_last:
        last = look(job)
        found.append(Step(_last_word(job), last.glyph, last.token, job.end_time))
    return tuple(found)


def _last_word(job: Job) -> str:
    word, shown = look(job).word, state(job)
    if job.is_disconnected:
        return shown
    return word if word == shown or not job.is_final else f"{word} ({shown})"


def _waits(job: Job) -> str:
    if (limit := job.rate_limited) is not None:
        return limit.words()
    if job.status is not JobStatus.PENDING or not job.waits_for:
        return ""
    return f"waits for {safe(job.waits_for)}"
