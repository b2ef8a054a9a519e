"""
Who did what when: a lane for each agent, then those of the jobs. Pure.

Bars come from the list's log (a task is somebody's from its claim or start until it is done or given back) and from the
jobs' own times. Stretches in which nobody did anything are gaps; where they are long a screen may fold them.
"""

from __future__ import annotations

from taskyard.tasklist.model import TaskStatus
from taskyard.typed import NamedTuple
from taskyard.view.glyphs import JOB_LOOKS, TASK_LOOKS
from taskyard.view.job_text import look, state
from taskyard.view.pill import shown_type
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.runtime.model import Job
    from taskyard.tasklist.model import Change

#: A stretch without any work that is longer than this may be folded, in milliseconds.
IDLE_MS = 120_000

#: Bars of one lane; of more, the latest are shown.
MOST_BARS = 500

#: The lanes of jobs that are no agents, and their order below the agents.
_JOB_LANES = {"local_bash": "shells", "monitor_mcp": "monitors", "local_workflow": "workflows", "dream": "dreams"}


class Bar(NamedTuple):
    """A stretch of work."""

    id: str  #: of the task or job
    is_job: bool
    text: str
    state: str
    glyph: str
    token: str
    start: int  #: epoch ms
    end: int | None  #: None: it goes on


class Lane(NamedTuple):
    """One agent, or all jobs of a kind."""

    name: str
    bars: tuple[Bar, ...]


class Gap(NamedTuple):
    """A stretch in which nobody did anything."""

    start: int
    end: int


class Timeline(NamedTuple):
    """All lanes, and where they may be folded."""

    start: int
    now: int
    lanes: tuple[Lane, ...] = ()
    gaps: tuple[Gap, ...] = ()


def timeline(changes: Iterable[Change], jobs: Iterable[Job], *, now: int) -> Timeline:
    """Everything that was worked on, by whom and when."""
    lanes: dict[str, list[Bar]] = {}
    for owner, bar in _task_bars(changes):
        lanes.setdefault(owner, []).append(bar)
    agents = len(lanes)
    names = sorted(lanes)
    for job in jobs:
        if (lane := _JOB_LANES.get(shown_type(job), "agents")) and job.start_time and job.type != "in_process_teammate":
            lanes.setdefault(lane, []).append(_job_bar(job))
    names += [name for name in ("agents", *_JOB_LANES.values()) if name in lanes and name not in names[:agents]]
    shown = tuple(Lane(name, tuple(sorted(lanes[name], key=_start)[-MOST_BARS:])) for name in names)
    bars = [bar for lane in shown for bar in lane.bars]
    start = min((bar.start for bar in bars), default=now)
    return Timeline(start, now, shown, tuple(gaps(bars, now)))


def gaps(bars: Iterable[Bar], now: int) -> Sequence[Gap]:
    """The long stretches between the first bar and now in which there is none."""
    found: list[Gap] = []
    reached: int | None = None
    for bar in sorted(bars, key=_start):
        if reached is not None and bar.start - reached > IDLE_MS:
            found.append(Gap(reached, bar.start))
        reached = max(reached or 0, now if bar.end is None else bar.end)
    if reached is not None and now - reached > IDLE_MS:
        found.append(Gap(reached, now))
    return found


def _task_bars(changes: Iterable[Change]) -> Iterable[tuple[str, Bar]]:
    """Each stretch in which a task was somebody's, with its owner."""
    going: dict[str, tuple[str, int, str]] = {}
    for change in changes:
        if change.aborted:
            continue
        for task_id, task in change.tasks.items():
            owner = task.owner if task is not None and task.status is TaskStatus.IN_PROGRESS else None
            if task_id in going and going[task_id][0] != owner:
                was, since, subject = going.pop(task_id)
                is_done = task is not None and task.is_done
                yield was, _task_bar(task_id, subject, "done" if is_done else "ready", since, change.at)
            if task is not None and owner is not None and not task.is_internal:
                since = going[task_id][1] if task_id in going else change.at
                going[task_id] = (owner, since, task.subject)
    for task_id, (owner, since, subject) in going.items():
        yield owner, _task_bar(task_id, subject, "doing", since, None)


def _task_bar(task_id: str, subject: str, state: str, start: int, end: int | None) -> Bar:
    seen = TASK_LOOKS[state]
    return Bar(task_id, False, safe(subject), state, seen.glyph, seen.token, start, end)


def _job_bar(job: Job) -> Bar:
    seen = look(job)
    word = "waits" if seen is JOB_LOOKS["waits"] else job.status.value
    end = (job.end_time or job.start_time) if job.is_final else None
    return Bar(
        job.id, True, f"{safe(job.description)}: {state(job)}", word, seen.glyph, seen.token, job.start_time, end
    )


def _start(bar: Bar) -> int:
    return bar.start
