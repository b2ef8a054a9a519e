"""
The read model: what is known of a list and of the jobs becomes what every screen shows. Pure.

    scene        what was read: tasks, jobs, members, the moment
    snapshot     the same ready to be shown: order, words, looks and colours are settled here and nowhere else

A snapshot is a value: two that show the same are equal. `until` says when time alone makes another of it.
"""

from __future__ import annotations

from taskyard.typed import NamedTuple
from taskyard.view.job_views import JobView, job_views
from taskyard.view.memory import Memory
from taskyard.view.ordering import HIDE_AFTER_MS, JUST_DONE_MS, arranged, panel
from taskyard.view.people import Person, people
from taskyard.view.pill import Pill, next_change, pill
from taskyard.view.task_views import Counts, TaskView, counted
from taskyard.view.task_waits import task_waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.runtime.model import Job
    from taskyard.tasklist.liveness import Seen
    from taskyard.tasklist.model import DamagedFile, Task


class Scene(NamedTuple):
    """What was read, and when."""

    list: str = ""
    tasks: Sequence[Task] = ()
    damaged: Sequence[DamagedFile] = ()
    done_at: Mapping[str, int] = {}  #: when tasks were completed, as the log says
    jobs: Sequence[Job] = ()
    last_lines: Mapping[str, str] = {}  #: what jobs printed last, safe to show
    members: Sequence[Seen] = ()
    me: str | None = None
    now: int = 0  #: epoch ms
    done_since: int | None = None  #: since when everything is done, as the last snapshot said
    seen: frozenset[str] = frozenset()  #: jobs whose end somebody has looked at
    problems: tuple[str, ...] = ()  #: what could not be read, in words
    is_disconnected: bool = False  #: where the lists are is out of reach: they are shown as they were
    lists: tuple[str, ...] = ()  #: the names of all lists there are
    elsewhere: int = 0  #: jobs of other projects that are not shown


class Snapshot(NamedTuple):
    """What a screen shows."""

    list: str = ""
    tasks: tuple[TaskView, ...] = ()
    counts: Counts = Counts()
    people: tuple[Person, ...] = ()
    jobs: tuple[JobView, ...] = ()
    pill: Pill = Pill()
    is_panel_shown: bool = False  #: False: there is nothing to do, or all has been done for a while
    attention: int = 0  #: jobs that wait for an answer or failed unseen
    problems: tuple[str, ...] = ()
    is_disconnected: bool = False
    lists: tuple[str, ...] = ()
    elsewhere: int = 0  #: jobs of other projects that are not shown
    done_since: int | None = None
    until: int | None = None  #: epoch ms: then it changes by time alone

    @property
    def headline(self) -> str:
        """`3 agents · 3 doing · 4 ready`."""
        working = sum(person.state == "working" for person in self.people)
        parts = [f"{working} {'agent' if working == 1 else 'agents'}"] if working else []
        parts += [f"{number} {word}" for word in ("doing", "ready") if (number := getattr(self.counts, word))]
        return " · ".join(parts)


def snapshot(
    scene: Scene,
    before: Snapshot | None = None,
    *,
    same_tasks: bool = False,
    same_jobs: bool = False,
    memory: Memory | None = None,
) -> Snapshot:
    """A scene, ready to be shown; what is known to be as it was `before` is not worked out again."""
    waits = task_waits(scene.jobs, scene.list)
    is_same = before is not None and same_tasks and not waits and not any(map(_is_held_up, before.tasks))
    tasks = before.tasks if before is not None and is_same else _tasks(scene, memory or Memory(), waits)
    jobs = before.jobs if before is not None and same_jobs else _jobs(scene)
    is_shown, done_since = panel(scene.tasks, done_since=scene.done_since, now=scene.now)
    everybody = people(tasks, scene.jobs, scene.members, team=scene.list, now=0)
    return Snapshot(
        scene.list,
        tasks,
        counted(tasks),
        everybody,
        jobs,
        pill(scene.jobs, now=scene.now, in_tree={one.job for one in everybody if one.job}, seen=scene.seen),
        is_shown,
        sum(job.needs_input or job.is_unseen for job in jobs),
        (*scene.problems, *(f"{found.file} cannot be read: {found.why}" for found in scene.damaged)),
        scene.is_disconnected,
        scene.lists,
        scene.elsewhere,
        done_since,
        _until(scene, tasks, done_since),
    )


def _is_held_up(task: TaskView) -> bool:
    return task.state == "doing" and bool(task.note)


def _tasks(scene: Scene, memory: Memory, waits: Mapping[str, str]) -> tuple[TaskView, ...]:
    unreadable = {found.file.removesuffix(".json") for found in scene.damaged}
    rows = arranged(scene.tasks, now=scene.now, done_at=scene.done_at, me=scene.me, unreadable=unreadable, waits=waits)
    return memory.views(rows, memory.places(scene.tasks), me=scene.me)


def _jobs(scene: Scene) -> tuple[JobView, ...]:
    return job_views(scene.jobs, now=scene.now, last_lines=scene.last_lines, seen=scene.seen)


def _until(scene: Scene, tasks: Sequence[TaskView], done_since: int | None) -> int | None:
    """The next moment at which time alone changes what is shown."""
    moments = [task.since + JUST_DONE_MS + 1 for task in tasks if task.state == "done" and task.since is not None]
    if done_since is not None:
        moments.append(done_since + HIDE_AFTER_MS)
    if (ended := next_change(scene.jobs, scene.now)) is not None:
        moments.append(ended)
    return min((moment for moment in moments if moment > scene.now), default=None)
