"""Jobs as text: list rows, status lines, and usage totals of a job, its subtree or a task."""

from __future__ import annotations

from taskyard.core.text import (
    JOB_GLYPHS,
    Style,
    colorize,
    cut,
    duration,
    escape_control,
    glyph,
    padded,
    width,
)
from taskyard.core.values import NamedTuple, as_object, as_text
from taskyard.jobs.model import JobStatus, cost_usd, parse_usd
from taskyard.jobs.query import PART_FACT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskyard.core.text import StateGlyph
    from taskyard.jobs.model import End, Job


class JobUsage(NamedTuple):
    """Usage of some jobs."""

    jobs: int = 0
    tokens: int = 0
    tools: int = 0
    cost_usd: float | None = None  #: None: not reported
    duration_ms: int = 0  #: sum of the times of all jobs

    def plus(self, other: JobUsage) -> JobUsage:
        """Return the sum of both."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return JobUsage(
            self.jobs + other.jobs,
            self.tokens + other.tokens,
            self.tools + other.tools,
            sum(costs) if costs else None,
            self.duration_ms + other.duration_ms,
        )

    def to_json(self) -> dict[str, object]:
        """Return it for `--json`."""
        return dict(self._asdict())

    def in_words(self) -> str:
        """Return it in words: `3 jobs, 12,345 tokens, $0.42, 3m`."""
        parts = [f"{self.jobs:,} {'job' if self.jobs == 1 else 'jobs'}"]
        parts += [f"{self.tokens:,} tokens"] if self.tokens else []
        parts += [f"${self.cost_usd:.2f}"] if self.cost_usd is not None else []
        return ", ".join([*parts, duration(self.duration_ms / 1000)])


def own_usage(job: Job, now: int) -> JobUsage:
    """Return the usage of one job alone, so far; of one that works on several tasks, its part."""
    if (part := as_object(job.facts.get(PART_FACT))) is not None:
        return JobUsage(
            1,
            _count(part.get("total_tokens")),
            _count(part.get("tool_uses")),
            parse_usd(part.get("costUsd")),
            _count(part.get("duration_ms")),
        )
    usage = as_object(job.facts.get("usage")) or {}
    return JobUsage(
        1, _count(usage.get("total_tokens")), _count(usage.get("tool_uses")), cost_usd(job), _duration(job, now)
    )


def total_usage(jobs: Iterable[Job], now: int) -> JobUsage:
    """Return the usage of all jobs; duplicates count once."""
    total = JobUsage()
    for job in {job.id: job for job in jobs}.values():
        total = total.plus(own_usage(job, now))
    return total


def subtree_usage(jobs: Iterable[Job], now: int) -> dict[str, JobUsage]:
    """Return the usage of each job with all jobs started inside it, as far as they are in `jobs`."""
    by_id = {job.id: job for job in jobs}
    totals = dict.fromkeys(by_id, JobUsage())
    for job in by_id.values():
        figures = own_usage(job, now)
        seen: set[str] = set()
        above: str | None = job.id
        while above is not None and above in by_id and above not in seen:  # `seen`: stop at a cycle made by hand
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


#: Columns that a description keeps before the last output line gets any, and columns below which that is
#: left out.
_MIN_DESCRIPTION = 20
_MIN_NOTE = 10


class JobRow(NamedTuple):
    """A job with what a list shows beyond its record."""

    job: Job
    depth: int = 0  #: number of jobs of the list it is nested in
    last_line: str = ""  #: its last output line, safe to show
    total: JobUsage = JobUsage()  #: its usage with all jobs started inside it


def walk_tree(jobs: Iterable[Job]) -> Iterator[tuple[int, Job]]:
    """Yield jobs in order, each followed by those started inside it, with their depth."""
    jobs = list(jobs)
    known = {job.id for job in jobs}
    inside: dict[str | None, list[Job]] = {}
    for job in jobs:
        inside.setdefault(job.parent if job.parent in known and job.parent != job.id else None, []).append(job)
    waiting = [(0, job) for job in reversed(inside.pop(None, []))]
    while waiting or inside:
        if not waiting:  # a cycle, made by hand
            waiting = [(0, job) for job in inside.pop(next(iter(inside)))]
        depth, job = waiting.pop()
        yield depth, job
        waiting += [(depth + 1, child) for child in reversed(inside.pop(job.id, []))]


def _resumes_suffix(job: Job) -> str:
    """Return which job it continues, if any."""
    earlier = job.facts.get("resumes")
    return f" (resumes {escape_control(earlier)})" if isinstance(earlier, str) and earlier else ""


def format_rows(rows: Sequence[JobRow], *, now: int, columns: int, style: Style = Style()) -> list[str]:  # noqa: B008
    """Return one line per job: `◐ b7k2m3x0q  running  38s  npm test   ✓ 18 passed`."""
    states = [state_text(row.job) for row in rows]
    ages = [_age(row.job, now) for row in rows]
    costs = [_cost(row) for row in rows]
    states_wide, ages_wide, costs_wide = (max(map(len, words), default=0) for words in (states, ages, costs))
    names = [
        f"{_branch(row.depth, style)}{escape_control(row.job.description)}{_resumes_suffix(row.job)}" for row in rows
    ]
    notes = [_detail(row) for row in rows]
    hosts = _hosts(rows)
    hosts_wide = max(map(width, hosts), default=0)
    fixed = 2 + 9 + 2 + states_wide + 2 + ages_wide + 2 + sum(wide + 2 for wide in (costs_wide, hosts_wide) if wide)
    names_wide, notes_wide = _column_widths(names, notes, max(columns - fixed, _MIN_DESCRIPTION))
    lines: list[str] = []
    for row, host, status, age, cost, name, note in zip(rows, hosts, states, ages, costs, names, notes, strict=True):
        money = f"{cost:>{costs_wide}}  " if costs_wide else ""
        where = f"{padded(host, hosts_wide)}  " if hosts_wide else ""
        shown = cut(name, names_wide, style)
        line = f"{row.job.id}  {where}{status:<{states_wide}}  {age:>{ages_wide}}  {money}"
        rest = colorize(cut(note, notes_wide, style), "muted", style) if note and notes_wide else ""
        line += f"{padded(shown, names_wide)}  {rest}" if rest else shown
        lines.append(f"{glyph(status_look(row.job), style)} {line}")
    return lines


def _hosts(rows: Sequence[JobRow]) -> list[str]:
    """Return the host of each job, if any job is on another host; else empty strings."""
    return [escape_control(row.job.host_name) if any(row.job.is_on_other_host for row in rows) else "" for row in rows]


def _age(job: Job, now: int) -> str:
    """Return how long a job has run, or ran; `?` if its start or end is not recorded."""
    until = job.end_time if job.end is not None else now
    return duration((until - job.start_time) / 1000) if until and job.start_time else "?"


def _column_widths(names: Sequence[str], notes: Sequence[str], room: int) -> tuple[int, int]:
    """Return the columns for descriptions, and for the last output line."""
    widest = max(map(width, names), default=0)
    if not any(notes):
        return min(widest, room), 0
    names_wide = min(widest, max(_MIN_DESCRIPTION, room // 2))
    left = room - names_wide - 2
    return (names_wide, left) if left >= _MIN_NOTE else (min(widest, room), 0)


def _branch(depth: int, style: Style) -> str:
    return "  " * (depth - 1) + ("- " if style.ascii else "└ ") if depth else ""


def _cost(row: JobRow) -> str:
    cost = row.total.cost_usd if row.total.jobs else cost_usd(row.job)
    return "" if cost is None else f"${cost:.2f}"


def _detail(row: JobRow) -> str:
    """Return the detail beside the state: what it waits for, its attempt, its last output line."""
    if (limit := row.job.rate_limited) is not None:
        return limit.words()
    if row.job.status is JobStatus.PENDING:
        return f"waits for {escape_control(row.job.waits_for)}"
    if cut_off := disconnect_reason(row.job):
        return cut_off
    attempt = f"[attempt {row.job.attempt} of {row.job.retries + 1}]" if row.job.attempt > 1 else ""
    return " ".join(filter(None, (attempt, row.last_line)))


def status_look(job: Job) -> StateGlyph:
    """Return the glyph of a job's state."""
    if job.rate_limited is not None and not job.is_paused:
        return JOB_GLYPHS["pending"]
    is_held_up = job.needs_input or job.is_paused or job.is_disconnected
    return JOB_GLYPHS["waits" if is_held_up else job.status.value]


def state_text(job: Job) -> str:
    """Return a job's state in a word or two: `running`, `needs input`, `disconnected`, `exit 3`, `timed out`."""
    if job.end is not None:
        return _end_state(job.end)
    if job.is_paused:
        return "paused"
    if job.is_disconnected:
        return "disconnected"
    if job.rate_limited is not None:
        return "pending"
    if job.needs_input:
        return "needs input"
    return "left running" if job.left_running else job.status.value


def disconnect_reason(job: Job) -> str:
    """Return why and since when remote work cannot be followed: `since 14:01: it cannot be reached`."""
    told = as_object(job.facts.get("disconnected"))
    if not job.is_disconnected or told is None:
        return ""
    import time

    since = told.get("since")
    at = f"since {time.strftime('%H:%M', time.localtime(since / 1000))}: " if type(since) is int else ""
    return at + escape_control(as_text(told.get("why")))


def _end_state(end: End) -> str:
    if end.cause == "exited":
        return f"exit {end.exit_code}" if end.exit_code else "done"
    if end.cause == "signal":
        return f"signal {end.signal}"
    words = {"timeout": "timed out", "output_cap": "over its cap", "oom": "out of memory", "error": "failed"}
    return words.get(end.cause, escape_control(end.cause))


def status_line(job: Job, style: Style = Style()) -> str:  # noqa: B008
    """Return a job's status in a line: `✗ b7k2m3x0q  npm test  failed: exit code 1, after 41s`."""
    what = f"{glyph(status_look(job), style)} {job.id}  {escape_control(job.description)}  "
    if job.end is None and (limit := job.rate_limited) is not None:
        return f"{what}{limit.state()}"
    if job.end is None:
        waits = f": waits for {escape_control(job.waits_for)}" if job.waits_for else ""
        cut_off = f" {why}" if (why := disconnect_reason(job)) else ""
        return f"{what}{state_text(job) if not waits else 'pending'}{waits}{cut_off}"
    attempts = f", attempt {job.attempt}" if job.attempt > 1 else ""
    lost = f"; output lost: {escape_control(job.end.output_lost)}" if job.end.output_lost else ""
    took = "" if job.end.duration_ms is None else f", after {duration(job.end.duration_ms / 1000)}"
    return f"{what}{end_text(job.end)}{took}{attempts}{lost}"


def end_text(end: End) -> str:
    """Return how a job ended, in words: `failed: exit code 3`, `stopped by ada`."""
    if end.cause == "exited":
        return f"failed: exit code {end.exit_code}" if end.exit_code else "completed"
    if end.cause == "signal":
        return f"failed: killed by {_signal_name(end.signal)}"
    words = {
        "timeout": "stopped: it reached its time limit",
        "output_cap": "stopped: its output was larger than its cap",
        "stopped": f"stopped by {escape_control(end.by)}" if end.by else "stopped",
        "oom": "failed: out of memory",
        "lost": f"lost: {escape_control(end.error)}" if end.error else "lost",
    }
    return words.get(end.cause, f"failed: {escape_control(end.error) or escape_control(end.cause)}")


def _signal_name(number: int | None) -> str:
    import signal

    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"
