"""Jobs in words: a row each in a list, a line about how one ended."""

from __future__ import annotations

from taskyard.runtime.model import JobStatus
from taskyard.shapes import as_object, as_text
from taskyard.typed import NamedTuple
from taskyard.view.figures import Figures
from taskyard.view.glyphs import JOB_LOOKS, Style, glyph, painted
from taskyard.view.job_records import cost_usd
from taskyard.view.text import cut, duration, padded, safe, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskyard.runtime.model import End, Job
    from taskyard.view.glyphs import Look

#: A description keeps at least so many columns before what was printed last gets any, and that is left out below this.
_LEAST_DESCRIPTION = 20
_LEAST_NOTE = 10


class JobRow(NamedTuple):
    """A job with what a list shows of it beyond its record."""

    job: Job
    depth: int = 0  #: how many jobs of the list it is inside of
    last_line: str = ""  #: what it printed last, safe to show
    total: Figures = Figures()  #: what it took with all that were started inside it


def tree(jobs: Iterable[Job]) -> Iterator[tuple[int, Job]]:
    """Jobs in their order, each followed by those that were started inside it, with how deep they are."""
    jobs = list(jobs)
    known = {job.id for job in jobs}
    inside: dict[str | None, list[Job]] = {}
    for job in jobs:
        inside.setdefault(job.parent if job.parent in known and job.parent != job.id else None, []).append(job)
    waiting = [(0, job) for job in reversed(inside.pop(None, []))]
    while waiting or inside:
        if not waiting:  # a circle, which somebody wrote by hand
            waiting = [(0, job) for job in inside.pop(next(iter(inside)))]
        depth, job = waiting.pop()
        yield depth, job
        waiting += [(depth + 1, child) for child in reversed(inside.pop(job.id, []))]


def _resumes(job: Job) -> str:
    """Which job it continues, if it does."""
    earlier = job.facts.get("resumes")
    return f" (resumes {safe(earlier)})" if isinstance(earlier, str) and earlier else ""


def job_rows(rows: Sequence[JobRow], *, now: int, columns: int, style: Style = Style()) -> list[str]:  # noqa: B008
    """One line per job: `◐ b7k2m3x0q  running  38s  npm test   ✓ 18 passed`."""
    states = [state(row.job) for row in rows]
    ages = [_age(row.job, now) for row in rows]
    costs = [_cost(row) for row in rows]
    states_wide, ages_wide, costs_wide = (max(map(len, words), default=0) for words in (states, ages, costs))
    names = [f"{_branch(row.depth, style)}{safe(row.job.description)}{_resumes(row.job)}" for row in rows]
    notes = [_note(row) for row in rows]
    hosts = _hosts(rows)
    hosts_wide = max(map(width, hosts), default=0)
    fixed = 2 + 9 + 2 + states_wide + 2 + ages_wide + 2 + sum(wide + 2 for wide in (costs_wide, hosts_wide) if wide)
    names_wide, notes_wide = _shares(names, notes, max(columns - fixed, _LEAST_DESCRIPTION))
    lines: list[str] = []
    for row, host, status, age, cost, name, note in zip(rows, hosts, states, ages, costs, names, notes, strict=True):
        money = f"{cost:>{costs_wide}}  " if costs_wide else ""
        where = f"{padded(host, hosts_wide)}  " if hosts_wide else ""
        shown = cut(name, names_wide, style)
        line = f"{row.job.id}  {where}{status:<{states_wide}}  {age:>{ages_wide}}  {money}"
        rest = painted(cut(note, notes_wide, style), "muted", style) if note and notes_wide else ""
        line += f"{padded(shown, names_wide)}  {rest}" if rest else shown
        lines.append(f"{glyph(look(row.job), style)} {line}")
    return lines


def _hosts(rows: Sequence[JobRow]) -> list[str]:
    """The machine of each job, if any is on another: nobody need be told of their own."""
    return [safe(row.job.host_name) if any(row.job.is_far for row in rows) else "" for row in rows]


def _age(job: Job, now: int) -> str:
    """How long a job has run, or ran; `?` where its record does not say when it began, or its end when that was."""
    until = job.end_time if job.end is not None else now
    return duration((until - job.start_time) / 1000) if until and job.start_time else "?"


def _shares(names: Sequence[str], notes: Sequence[str], room: int) -> tuple[int, int]:
    """How many columns descriptions get, and how many are left for what was printed last."""
    widest = max(map(width, names), default=0)
    if not any(notes):
        return min(widest, room), 0
    names_wide = min(widest, max(_LEAST_DESCRIPTION, room // 2))
    left = room - names_wide - 2
    return (names_wide, left) if left >= _LEAST_NOTE else (min(widest, room), 0)


def _branch(depth: int, style: Style) -> str:
    return "  " * (depth - 1) + ("- " if style.ascii else "└ ") if depth else ""


def _cost(row: JobRow) -> str:
    cost = row.total.cost_usd if row.total.jobs else cost_usd(row.job)
    return "" if cost is None else f"${cost:.2f}"


def _note(row: JobRow) -> str:
    """What is worth knowing beside the state: what it waits for, which attempt it is, what it printed last."""
    if (limit := row.job.rate_limited) is not None:
        return limit.words()
    if row.job.status is JobStatus.PENDING:
        return f"waits for {safe(row.job.waits_for)}"
    if cut_off := why_disconnected(row.job):
        return cut_off
    attempt = f"[attempt {row.job.attempt} of {row.job.retries + 1}]" if row.job.attempt > 1 else ""
    return " ".join(filter(None, (attempt, row.last_line)))


def look(job: Job) -> Look:
    """How a job's state is drawn."""
    if job.rate_limited is not None and not job.is_paused:
        return JOB_LOOKS["pending"]
    is_held_up = job.needs_input or job.is_paused or job.is_disconnected
    return JOB_LOOKS["waits" if is_held_up else job.status.value]


def state(job: Job) -> str:
    """A job's state in a word or two: `running`, `needs input`, `disconnected`, `exit 3`, `timed out`."""
    if job.end is not None:
        return _ended(job.end)
    if job.is_paused:
        return "paused"
    if job.is_disconnected:
        return "disconnected"
    if job.rate_limited is not None:
        return "pending"
    if job.needs_input:
        return "needs input"
    return "left running" if job.left_running else job.status.value


def why_disconnected(job: Job) -> str:
    """Why nobody here can see what goes on elsewhere, and since when: `since 14:01: it cannot be reached`."""
    told = as_object(job.facts.get("disconnected"))
    if not job.is_disconnected or told is None:
        return ""
    import time

    since = told.get("since")
    at = f"since {time.strftime('%H:%M', time.localtime(since / 1000))}: " if type(since) is int else ""
    return at + safe(as_text(told.get("why")))


def _ended(end: End) -> str:
    if end.cause == "exited":
        return f"exit {end.exit_code}" if end.exit_code else "done"
    if end.cause == "signal":
        return f"signal {end.signal}"
    words = {"timeout": "timed out", "output_cap": "over its cap", "oom": "out of memory", "error": "failed"}
    return words.get(end.cause, safe(end.cause))


def ended_line(job: Job, style: Style = Style()) -> str:  # noqa: B008
    """How a job stands, in a line: `✗ b7k2m3x0q  npm test  failed: exit code 1, after 41s`."""
    what = f"{glyph(look(job), style)} {job.id}  {safe(job.description)}  "
    if job.end is None and (limit := job.rate_limited) is not None:
        return f"{what}{limit.state()}"
    if job.end is None:
        waits = f": waits for {safe(job.waits_for)}" if job.waits_for else ""
        cut_off = f" {why}" if (why := why_disconnected(job)) else ""
        return f"{what}{state(job) if not waits else 'pending'}{waits}{cut_off}"
    attempts = f", attempt {job.attempt}" if job.attempt > 1 else ""
    lost = f"; output lost: {safe(job.end.output_lost)}" if job.end.output_lost else ""
    took = "" if job.end.duration_ms is None else f", after {duration(job.end.duration_ms / 1000)}"
    return f"{what}{how_it_ended(job.end)}{took}{attempts}{lost}"


def how_it_ended(end: End) -> str:
    """How a job ended, in words: `failed: exit code 3`, `stopped by ada`."""
    if end.cause == "exited":
        return f"failed: exit code {end.exit_code}" if end.exit_code else "completed"
    if end.cause == "signal":
        return f"failed: killed by {_signal_name(end.signal)}"
    words = {
        "timeout": "stopped: it reached its time limit",
        "output_cap": "stopped: its output was larger than its cap",
        "stopped": f"stopped by {safe(end.by)}" if end.by else "stopped",
        "oom": "failed: out of memory",
        "lost": f"lost: {safe(end.error)}" if end.error else "lost",
    }
    return words.get(end.cause, f"failed: {safe(end.error) or safe(end.cause)}")


def _signal_name(number: int | None) -> str:
    import signal

    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"
