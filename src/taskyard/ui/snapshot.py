"""The read model: turn tasks, jobs and team members into what every screen shows. Pure.

`build_snapshot` turns a `ViewInput` (what was read, and when) into a `Snapshot`: order, wording, glyphs and colours are
decided here and nowhere else. A snapshot is a value: two that show the same are equal. `until` is when time alone
changes it.

`snapshot_json` and `snapshot_diff` serialise snapshots. Rows are keyed by id, so that a screen updates only what
changed:

    {"tasks": {"12": {…}, "9": null}, "task_order": ["12", …], "pill": {…}}

A missing key did not change. An order is present when rows were added, removed or moved.

`agent_views` has a row for each agent, whether it is a teammate's job, a member of the team or just a task owner.

`timeline` has a lane for each agent, then those of the jobs. Bars come from the list's log (a task belongs to its owner
from claim or start until it is done or released) and from the jobs' own times. Long stretches without work are gaps
that a screen may fold.
"""

from __future__ import annotations

from taskyard.core.text import JOB_GLYPHS, TASK_GLYPHS, escape_control
from taskyard.core.values import NamedTuple, as_object, as_text, cast
from taskyard.jobs.agent_reports import last_activity
from taskyard.jobs.job_text import JobUsage, own_usage, state_text, status_look
from taskyard.tasks.model import TaskStatus
from taskyard.tasks.text import HIDE_AFTER_MS, JUST_DONE_MS, panel_state, sort_tasks
from taskyard.ui.jobs import (
    JobView,
    StatusSummary,
    display_type,
    job_views,
    next_summary_change,
    status_summary,
)
from taskyard.ui.tasks import Counts, TaskView, ViewCache, count_states, task_wait_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskyard.agents.teams import MemberStatus
    from taskyard.jobs.model import Job
    from taskyard.tasks.model import Change, DamagedFile, Task


#: Row collections of a snapshot: their key, the field with the row's id, and the key of their order.
_ROWS = (("tasks", "id", "task_order"), ("jobs", "id", "job_order"), ("people", "name", "people_order"))


def snapshot_json(snapshot: Snapshot) -> dict[str, object]:
    """Return the complete snapshot as JSON values."""
    return snapshot_diff(None, snapshot)


def snapshot_diff(before: Snapshot | None, after: Snapshot) -> dict[str, object]:
    """Return what changes a display of `before` into one of `after`; empty if they show the same."""
    found: dict[str, object] = {}
    for key, name, order in _ROWS:
        was = {getattr(row, name): row for row in getattr(before, key)} if before is not None else {}
        now = {getattr(row, name): row for row in getattr(after, key)}
        changed: dict[str, object] = {one: as_json(row) for one, row in now.items() if was.get(one) != row}
        changed.update(dict.fromkeys(one for one in was if one not in now))
        if changed or before is None:
            found[key] = changed
        if before is None or list(was) != list(now):
            found[order] = list(now)
    was_rest: Mapping[str, object] = _other_fields(before) if before is not None else {}
    found.update(
        {key: value for key, value in _other_fields(after).items() if key not in was_rest or was_rest[key] != value}
    )
    return found


def as_json(record: NamedTuple) -> dict[str, object]:
    """Convert a record to plain JSON values, recursively."""
    return {name: _to_json(value) for name, value in record._asdict().items()}


def _to_json(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    parts = cast("tuple[object, ...]", value)
    fields: Sequence[str] = getattr(parts, "_fields", ())
    return {name: _to_json(part) for name, part in zip(fields, parts)} if fields else [_to_json(part) for part in parts]


def _other_fields(snapshot: Snapshot) -> Mapping[str, object]:
    return {
        "list": snapshot.list,
        "counts": {**as_json(snapshot.counts), "total": snapshot.counts.total},
        "pill": {**as_json(snapshot.pill), "line": snapshot.pill.in_words()},
        "headline": snapshot.headline,
        "is_panel_shown": snapshot.is_panel_shown,
        "attention": snapshot.attention,
        "problems": list(snapshot.problems),
        "is_disconnected": snapshot.is_disconnected,
        "lists": list(snapshot.lists),
    }


#: Glyph, its ASCII form, and colour of each agent state.
_AGENT_LOOKS = {
    "working": ("▶", ">", "accent"),
    "waits": ("!", "!", "warn"),
    "idle": ("…", "-", "muted"),
    "stalled": ("!", "!", "warn"),
    "gone": ("✗", "x", "fail"),
}
_ORDER = tuple(_AGENT_LOOKS)

#: A member's liveness in the team record, as an agent state.
_STATE_OF_LIVENESS = {"alive": "working", "idle": "idle", "stalled": "stalled", "dead": "gone", "unknown": "idle"}


class AgentView(NamedTuple):
    """One agent, ready to be shown."""

    name: str
    state: str  #: working, waits, idle, stalled or gone
    glyph: str
    ascii: str
    token: str
    doing: str = ""  #: its current activity, as text
    task: str | None = None  #: id of its task in progress; of several, the longest running
    since: int | None = None  #: epoch ms: in progress since
    job: str | None = None  #: id of its job, if it runs as one
    colour: str | None = None  #: the colour its team assigned to it
    figures: JobUsage = JobUsage()


def agent_views(
    tasks: Iterable[TaskView], jobs: Iterable[Job], members: Sequence[MemberStatus], *, team: str, now: int
) -> tuple[AgentView, ...]:
    """Return the agents of `team` that are present or have a task in progress: by state, working first, then name."""
    doing: dict[str, TaskView] = {}
    for task in tasks:
        if task.state == "doing" and task.owner is not None:
            doing.setdefault(task.owner, task)
    mates = {name: job for job in jobs if (name := _teammate_name(job, team)) and not job.is_final}
    seen = {escape_control(one.member.name): one for one in members}
    found = [
        _agent_view(name, doing.get(name), mates.get(name), seen.get(name), now) for name in {*doing, *mates, *seen}
    ]
    return tuple(sorted(found, key=lambda person: (_ORDER.index(person.state), person.name)))


def _agent_view(name: str, task: TaskView | None, job: Job | None, seen: MemberStatus | None, now: int) -> AgentView:
    state = _agent_state(task, job, seen)
    glyph, plain, token = _AGENT_LOOKS[state]
    return AgentView(
        name,
        state,
        glyph,
        plain,
        token,
        doing=_activity_text(task, job),
        task=task.id if task else None,
        since=task.since if task else None,
        job=job.id if job else None,
        colour=seen.member.colour if seen else None,
        figures=own_usage(job, now) if job else JobUsage(),
    )


def _agent_state(task: TaskView | None, job: Job | None, seen: MemberStatus | None) -> str:
    if job is not None:
        if job.needs_input or job.rate_limited is not None:
            return "waits"
        return "idle" if job.facts.get("isIdle") and task is None else "working"
    if seen is not None and seen.liveness != "unknown":
        state = _STATE_OF_LIVENESS[seen.liveness]
        return "working" if state == "idle" and task is not None else state
    return "working" if task is not None else "idle"


def _activity_text(task: TaskView | None, job: Job | None) -> str:
    """Return what it waits for, else its task's active form or subject, else its last tool use."""
    if job is not None and (limit := job.rate_limited) is not None:
        return limit.words()
    if task is not None:
        return task.doing or task.subject
    return (
        escape_control(last_activity(job.facts.get("progress")))
        if job is not None and not job.facts.get("isIdle")
        else ""
    )


def _teammate_name(job: Job, team: str) -> str:
    if job.type != "in_process_teammate":
        return ""
    identity = as_object(job.facts.get("identity")) or {}
    return escape_control(as_text(identity.get("agentName"))) if identity.get("teamName") == team else ""


class ViewInput(NamedTuple):
    """What was read, and when."""

    list: str = ""
    tasks: Sequence[Task] = ()
    damaged: Sequence[DamagedFile] = ()
    done_at: Mapping[str, int] = {}  #: completion times of tasks, from the log
    jobs: Sequence[Job] = ()
    last_lines: Mapping[str, str] = {}  #: last output line of jobs, control characters escaped
    members: Sequence[MemberStatus] = ()
    me: str | None = None
    now: int = 0  #: epoch ms
    done_since: int | None = None  #: since when everything is done, from the last snapshot
    seen: frozenset[str] = frozenset()  #: jobs whose end the user has looked at
    problems: tuple[str, ...] = ()  #: what could not be read, as text
    is_disconnected: bool = False  #: the store of the lists is unreachable: they are shown as last read
    lists: tuple[str, ...] = ()  #: the names of all lists
    elsewhere: int = 0  #: number of jobs of other projects that are not shown


class Snapshot(NamedTuple):
    """What a screen shows."""

    list: str = ""
    tasks: tuple[TaskView, ...] = ()
    counts: Counts = Counts()
    people: tuple[AgentView, ...] = ()
    jobs: tuple[JobView, ...] = ()
    pill: StatusSummary = StatusSummary()
    is_panel_shown: bool = False  #: False: there are no tasks, or all have been done for a while
    attention: int = 0  #: number of jobs that wait for an answer or failed unseen
    problems: tuple[str, ...] = ()
    is_disconnected: bool = False
    lists: tuple[str, ...] = ()
    elsewhere: int = 0  #: number of jobs of other projects that are not shown
    done_since: int | None = None
    until: int | None = None  #: epoch ms at which it changes by time alone

    @property
    def headline(self) -> str:
        """`3 agents · 3 doing · 4 ready`."""
        working = sum(person.state == "working" for person in self.people)
        parts = [f"{working} {'agent' if working == 1 else 'agents'}"] if working else []
        parts += [f"{number} {word}" for word in ("doing", "ready") if (number := getattr(self.counts, word))]
        return " · ".join(parts)


def build_snapshot(
    scene: ViewInput,
    before: Snapshot | None = None,
    *,
    same_tasks: bool = False,
    same_jobs: bool = False,
    memory: ViewCache | None = None,
) -> Snapshot:
    """Build the snapshot of `scene`; parts known to be unchanged are copied from `before`."""
    waits = task_wait_notes(scene.jobs, scene.list)
    is_same = before is not None and same_tasks and not waits and not any(map(_has_wait_note, before.tasks))
    tasks = before.tasks if before is not None and is_same else _task_views(scene, memory or ViewCache(), waits)
    jobs = before.jobs if before is not None and same_jobs else _job_views(scene)
    is_shown, done_since = panel_state(scene.tasks, done_since=scene.done_since, now=scene.now)
    everybody = agent_views(tasks, scene.jobs, scene.members, team=scene.list, now=0)
    return Snapshot(
        scene.list,
        tasks,
        count_states(tasks),
        everybody,
        jobs,
        status_summary(scene.jobs, now=scene.now, in_tree={one.job for one in everybody if one.job}, seen=scene.seen),
        is_shown,
        sum(job.needs_input or job.is_unseen for job in jobs),
        (*scene.problems, *(f"{found.file} cannot be read: {found.why}" for found in scene.damaged)),
        scene.is_disconnected,
        scene.lists,
        scene.elsewhere,
        done_since,
        _next_change_at(scene, tasks, done_since),
    )


def _has_wait_note(task: TaskView) -> bool:
    return task.state == "doing" and bool(task.note)


def _task_views(scene: ViewInput, memory: ViewCache, waits: Mapping[str, str]) -> tuple[TaskView, ...]:
    unreadable = {found.file.removesuffix(".json") for found in scene.damaged}
    rows = sort_tasks(
        scene.tasks, now=scene.now, done_at=scene.done_at, me=scene.me, unreadable=unreadable, waits=waits
    )
    return memory.views(rows, memory.places(scene.tasks), me=scene.me)


def _job_views(scene: ViewInput) -> tuple[JobView, ...]:
    return job_views(scene.jobs, now=scene.now, last_lines=scene.last_lines, seen=scene.seen)


def _next_change_at(scene: ViewInput, tasks: Sequence[TaskView], done_since: int | None) -> int | None:
    """Return the next moment at which time alone changes what is shown."""
    moments = [task.since + JUST_DONE_MS + 1 for task in tasks if task.state == "done" and task.since is not None]
    if done_since is not None:
        moments.append(done_since + HIDE_AFTER_MS)
    if (ended := next_summary_change(scene.jobs, scene.now)) is not None:
        moments.append(ended)
    return min((moment for moment in moments if moment > scene.now), default=None)


#: A stretch without work that is longer than this may be folded, in milliseconds.
IDLE_MS = 120_000

#: Most bars of one lane; the latest are shown.
MOST_BARS = 500

#: The lanes of jobs that are not agents, in their order below the agents.
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
    end: int | None  #: None: still running


class Lane(NamedTuple):
    """One agent, or all jobs of a kind."""

    name: str
    bars: tuple[Bar, ...]


class Gap(NamedTuple):
    """A stretch without any work."""

    start: int
    end: int


class Timeline(NamedTuple):
    """All lanes, and the gaps that may be folded."""

    start: int
    now: int
    lanes: tuple[Lane, ...] = ()
    gaps: tuple[Gap, ...] = ()


def timeline(changes: Iterable[Change], jobs: Iterable[Job], *, now: int) -> Timeline:
    """Build the timeline of all tasks and jobs."""
    lanes: dict[str, list[Bar]] = {}
    for owner, bar in _task_bars(changes):
        lanes.setdefault(owner, []).append(bar)
    agents = len(lanes)
    names = sorted(lanes)
    for job in jobs:
        if (
            (lane := _JOB_LANES.get(display_type(job), "agents"))
            and job.start_time
            and job.type != "in_process_teammate"
        ):
            lanes.setdefault(lane, []).append(_job_bar(job))
    names += [name for name in ("agents", *_JOB_LANES.values()) if name in lanes and name not in names[:agents]]
    shown = tuple(Lane(name, tuple(sorted(lanes[name], key=_start)[-MOST_BARS:])) for name in names)
    bars = [bar for lane in shown for bar in lane.bars]
    start = min((bar.start for bar in bars), default=now)
    return Timeline(start, now, shown, tuple(gaps(bars, now)))


def gaps(bars: Iterable[Bar], now: int) -> Sequence[Gap]:
    """Return the stretches without bars longer than `IDLE_MS` between the first bar and now."""
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
    """Yield each stretch in which a task was in progress, with its owner."""
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
    seen = TASK_GLYPHS[state]
    return Bar(task_id, False, escape_control(subject), state, seen.glyph, seen.token, start, end)


def _job_bar(job: Job) -> Bar:
    seen = status_look(job)
    word = "waits" if seen is JOB_GLYPHS["waits"] else job.status.value
    end = (job.end_time or job.start_time) if job.is_final else None
    return Bar(
        job.id,
        True,
        f"{escape_control(job.description)}: {state_text(job)}",
        word,
        seen.glyph,
        seen.token,
        job.start_time,
        end,
    )


def _start(bar: Bar) -> int:
    return bar.start
