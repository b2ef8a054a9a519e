"""Who is at work: a row for each agent, whether it is a teammate's job, a member of the team or just an owner. Pure."""

from __future__ import annotations

from taskyard.shapes import as_object, as_text
from taskyard.typed import NamedTuple
from taskyard.view.agent_text import last_activity
from taskyard.view.figures import Figures, own
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.runtime.model import Job
    from taskyard.tasklist.liveness import Seen
    from taskyard.view.task_views import TaskView

#: Glyph, the same in ASCII, and colour of what somebody is at.
_LOOKS = {
    "working": ("▶", ">", "accent"),
    "waits": ("!", "!", "warn"),
    "idle": ("…", "-", "muted"),
    "stalled": ("!", "!", "warn"),
    "gone": ("✗", "x", "fail"),
}
_ORDER = tuple(_LOOKS)

#: What a team's record says of a member, in these words.
_STATES = {"alive": "working", "idle": "idle", "stalled": "stalled", "dead": "gone", "unknown": "idle"}


class Person(NamedTuple):
    """One agent, ready to be shown."""

    name: str
    state: str  #: working, waits, idle, stalled or gone
    glyph: str
    ascii: str
    token: str
    doing: str = ""  #: what it is at, in words
    task: str | None = None  #: the id of its task, the one it began first
    since: int | None = None  #: epoch ms: at that task since then
    job: str | None = None  #: its job, where it is one
    colour: str | None = None  #: by which its team tells it apart
    figures: Figures = Figures()


def people(
    tasks: Iterable[TaskView], jobs: Iterable[Job], members: Sequence[Seen], *, team: str, now: int
) -> tuple[Person, ...]:
    """Everybody of `team` who is there or has something in progress: those at work first, then by name."""
    doing: dict[str, TaskView] = {}
    for task in tasks:
        if task.state == "doing" and task.owner is not None:
            doing.setdefault(task.owner, task)
    mates = {name: job for job in jobs if (name := _name(job, team)) and not job.is_final}
    seen = {safe(one.member.name): one for one in members}
    found = [_person(name, doing.get(name), mates.get(name), seen.get(name), now) for name in {*doing, *mates, *seen}]
    return tuple(sorted(found, key=lambda person: (_ORDER.index(person.state), person.name)))


def _person(name: str, task: TaskView | None, job: Job | None, seen: Seen | None, now: int) -> Person:
    state = _state(task, job, seen)
    glyph, plain, token = _LOOKS[state]
    return Person(
        name,
        state,
        glyph,
        plain,
        token,
        doing=_doing(task, job),
        task=task.id if task else None,
        since=task.since if task else None,
        job=job.id if job else None,
        colour=seen.member.colour if seen else None,
        figures=own(job, now) if job else Figures(),
    )


def _state(task: TaskView | None, job: Job | None, seen: Seen | None) -> str:
    if job is not None:
        if job.needs_input or job.rate_limited is not None:
            return "waits"
        return "idle" if job.facts.get("isIdle") and task is None else "working"
    if seen is not None and seen.liveness != "unknown":
        state = _STATES[seen.liveness]
        return "working" if state == "idle" and task is not None else state
    return "working" if task is not None else "idle"


def _doing(task: TaskView | None, job: Job | None) -> str:
    """What people want to read: what it waits for, the task's own words for it, else what a tool was used for."""
    if job is not None and (limit := job.rate_limited) is not None:
        return limit.words()
    if task is not None:
        return task.doing or task.subject
    return safe(last_activity(job.facts.get("progress"))) if job is not None and not job.facts.get("isIdle") else ""


def _name(job: Job, team: str) -> str:
    if job.type != "in_process_teammate":
        return ""
    identity = as_object(job.facts.get("identity")) or {}
    return safe(as_text(identity.get("agentName"))) if identity.get("teamName") == team else ""
