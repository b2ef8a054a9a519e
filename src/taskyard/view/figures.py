"""What jobs took: tokens, tools, dollars and time, of one, of all below it, of a task. Pure."""

from __future__ import annotations

from taskyard.runtime.families import PART
from taskyard.runtime.model import JobStatus
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple
from taskyard.view.job_records import cost_usd, dollars
from taskyard.view.text import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.runtime.model import Job


class Figures(NamedTuple):
    """What some jobs took."""

    jobs: int = 0
    tokens: int = 0
    tools: int = 0
    cost_usd: float | None = None  #: None: nobody said
    duration_ms: int = 0  #: the times of all of them, one after the other

    def plus(self, other: Figures) -> Figures:
        """Both together."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Figures(
            self.jobs + other.jobs,
            self.tokens + other.tokens,
            self.tools + other.tools,
            sum(costs) if costs else None,
            self.duration_ms + other.duration_ms,
        )

    def to_json(self) -> dict[str, object]:
        """As `--json` has it."""
        return dict(self._asdict())

    def in_words(self) -> str:
        """`3 jobs, 12,345 tokens, $0.42, 3m`."""
        parts = [f"{self.jobs:,} {'job' if self.jobs == 1 else 'jobs'}"]
        parts += [f"{self.tokens:,} tokens"] if self.tokens else []
        parts += [f"${self.cost_usd:.2f}"] if self.cost_usd is not None else []
        return ", ".join([*parts, duration(self.duration_ms / 1000)])


def own(job: Job, now: int) -> Figures:
    """What one job took by itself, so far; of one that works on several tasks, its part."""
    if (part := as_object(job.facts.get(PART))) is not None:
        return Figures(
            1,
            _count(part.get("total_tokens")),
            _count(part.get("tool_uses")),
            dollars(part.get("costUsd")),
            _count(part.get("duration_ms")),
        )
    usage = as_object(job.facts.get("usage")) or {}
    return Figures(
        1, _count(usage.get("total_tokens")), _count(usage.get("tool_uses")), cost_usd(job), _duration(job, now)
    )


def together(jobs: Iterable[Job], now: int) -> Figures:
    """What all of them took; one that is named twice counts once."""
    total = Figures()
    for job in {job.id: job for job in jobs}.values():
        total = total.plus(own(job, now))
    return total


def up_the_tree(jobs: Iterable[Job], now: int) -> dict[str, Figures]:
    """What each took together with all that were started inside it, as far as they are among `jobs`."""
    by_id = {job.id: job for job in jobs}
    totals = dict.fromkeys(by_id, Figures())
    for job in by_id.values():
        figures = own(job, now)
        seen: set[str] = set()
        above: str | None = job.id
        while above is not None and above in by_id and above not in seen:  # a circle was written by hand
            totals[above] = totals[above].plus(figures)
            seen.add(above)
            above = by_id[above].parent
    return totals


def _duration(job: Job, now: int) -> int:
    if job.end is not None:
        return job.end.duration_ms or 0
    if job.status is JobStatus.PENDING or not job.start_time:
        return 0
    return max(now - job.start_time - job.total_paused_ms, 0)


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0
