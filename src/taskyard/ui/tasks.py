"""Tasks as every screen shows them: state, wording, graph position, wait notes and history. Pure.

`task_wait_notes` has the reason a task in progress is stuck: its worker's job waits for a rate limit or an answer.
`task_history` puts changes into words: `ada claimed it`. `ViewCache` reuses earlier views, so that one changed task
does not cost as much as rebuilding all; results are the same with and without it.
"""

from __future__ import annotations

from taskyard.core.text import TASK_GLYPHS, escape_control
from taskyard.core.values import NamedTuple, as_object, as_text
from taskyard.tasks.model import due_of, explicit_priority_of, labels_of
from taskyard.tasks.text import waits_note
from taskyard.ui.graph import NO_POSITION, graph_positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskyard.jobs.model import Job
    from taskyard.tasks.model import Change, Task
    from taskyard.tasks.text import TaskRow
    from taskyard.ui.graph import GraphPosition


class TaskView(NamedTuple):
    """One task, ready to be shown."""

    id: str
    subject: str
    state: str  #: ready, blocked, doing or done
    glyph: str
    ascii: str
    word: str
    token: str  #: the colour, by meaning
    owner: str | None = None
    is_mine: bool = False
    since: int | None = None  #: epoch ms: in progress or done since then
    doing: str = ""  #: its active form, while in progress
    note: str = ""  #: "waits for 12, 13", the quarantine note, "rate-limited by anthropic until 04:50"
    waits_for: tuple[str, ...] = ()  #: its open blockers
    blocked_by: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    priority: int | None = None  #: None if none was set
    labels: tuple[str, ...] = ()
    level: int = 0  #: its column in the graph
    rank: int = 0  #: its row in that column
    is_critical: bool = False  #: on the critical path
    due: str | None = None  #: due date, in ISO 8601
    is_assigned: bool = False  #: its owner has neither claimed nor started it


class Counts(NamedTuple):
    """Number of tasks in each state."""

    ready: int = 0
    blocked: int = 0
    doing: int = 0
    done: int = 0

    @property
    def total(self) -> int:
        """Number of all tasks."""
        return self.ready + self.blocked + self.doing + self.done


def count_states(tasks: Iterable[TaskView]) -> Counts:
    """Count the tasks in each state."""
    found = dict.fromkeys(Counts._fields, 0)
    for task in tasks:
        found[task.state] += 1
    return Counts(**found)


def task_view(row: TaskRow, place: GraphPosition, me: str | None) -> TaskView:
    """Convert one row to a view."""
    task, look = row.task, TASK_GLYPHS[row.state]
    is_doing = row.state == "doing"
    return TaskView(
        task.id,
        escape_control(task.subject),
        row.state,
        *look,
        owner=escape_control(task.owner) if task.owner else None,
        is_mine=me is not None and task.owner == me,
        since=row.since,
        doing=escape_control(task.active_form or "") if is_doing else "",
        note=row.held_up or waits_note(row.waits_for) or ("set aside" if task.is_held else ""),
        waits_for=row.waits_for,
        blocked_by=task.blocked_by,
        blocks=task.blocks,
        priority=explicit_priority_of(task),
        labels=tuple(escape_control(label) for label in labels_of(task)),
        level=place.level,
        rank=place.rank,
        is_critical=place.is_critical,
        due=due_of(task),
        is_assigned=task.is_assigned,
    )


def task_wait_notes(jobs: Iterable[Job], list_name: str) -> Mapping[str, str]:
    """Return, for each task of the list whose job waits, the reason: `rate-limited by anthropic until 04:50`."""
    found: dict[str, str] = {}
    for job in jobs:
        if job.is_final:
            continue
        if (limit := job.rate_limited) is not None:
            about = as_text((as_object(job.facts.get("rateLimited")) or {}).get("task")) or job.task or ""
            note = limit.words()
        elif job.needs_input:
            about, note = as_text(job.facts.get("askedFor")) or job.task or "", f"waits for an answer: {job.id}"
        else:
            continue
        owner, _, task_id = about.rpartition("/")
        if owner == list_name and task_id:
            found[task_id] = note
    return found


#: Text for each cause in the log; other causes are shown as they are.
_CAUSE_TEXT = {
    "create": "created it",
    "import": "imported it",
    "claim": "claimed it",
    "start": "began to work on it",
    "complete": "completed it",
    "release": "gave it back",
    "assign": "assigned it",
    "update": "changed it",
    "block": "added a dependency",
    "unblock": "removed a dependency",
    "delete": "removed it",
    "restore": "brought it back",
    "reopen": "opened it again",
    "archive": "put it away",
    "lease_lost": "lost it",
    "renew": "renewed its claim",
}

_EXTERNAL_TEXT = "another program changed it"


def task_history(changes: Iterable[Change], task_id: str) -> list[dict[str, object]]:
    """Return each change of a task that took effect, oldest first."""
    rows: list[dict[str, object]] = []
    before: Task | None = None
    for change in changes:
        if task_id not in change.tasks or change.aborted:
            continue
        after = change.tasks[task_id]
        rows.append(_history_row(change, before, after))
        before = after
    return rows


def _history_row(change: Change, before: Task | None, after: Task | None) -> dict[str, object]:
    return {
        "id": change.id,
        "at": change.at,
        "by": escape_control(change.act.by) if change.act.by else None,
        "cause": escape_control(change.act.cause),
        "via": escape_control(change.act.via),
        "note": escape_control(change.act.note) if change.act.note else None,
        "words": _blocks_change_text(before, after) or change_text(change),
    }


def _blocks_change_text(before: Task | None, after: Task | None) -> str:
    """Describe a change that altered only which tasks wait for this one; "" if it altered more."""
    if before is None or after is None:
        return ""
    if before._replace(blocks=after.blocks, updated_at=after.updated_at, lease=after.lease) != after:
        return ""
    came = [one for one in after.blocks if one not in before.blocks]
    went = [one for one in before.blocks if one not in after.blocks]
    more = f"{', '.join(came)} {_wait_verb(came)} for it" if came else ""
    less = f"{', '.join(went)} no longer {_wait_verb(went)} for it" if went else ""
    return " and ".join(filter(None, (more, less)))


def _wait_verb(ids: list[str]) -> str:
    return "waits" if len(ids) == 1 else "wait"


def change_text(change: Change) -> str:
    """Describe one change as a sentence without its full stop."""
    if change.act.cause == "external":
        return _EXTERNAL_TEXT
    who = escape_control(change.act.by) if change.act.by else "an unnamed agent"
    return f"{who} {_CAUSE_TEXT.get(change.act.cause) or escape_control(change.act.cause)}"


class ViewCache:
    """Cached graph positions and views of one list's tasks, as seen by one agent (`me`)."""

    def __init__(self) -> None:
        self._edges: list[tuple[object, ...]] | None = None  # everything that positions depend on
        self._places: Mapping[str, GraphPosition] = {}
        self._views: dict[str, tuple[TaskRow, GraphPosition, TaskView]] = {}
        self._me: str | None = None

    def places(self, tasks: Sequence[Task]) -> Mapping[str, GraphPosition]:
        """Return the graph position of each task."""
        edges: list[tuple[object, ...]] = [(task.id, task.blocked_by, task.is_done, task.is_internal) for task in tasks]
        if edges != self._edges:
            self._edges, self._places = edges, graph_positions({task.id: task for task in tasks})
        return self._places

    def views(
        self, rows: Sequence[TaskRow], at: Mapping[str, GraphPosition], *, me: str | None
    ) -> tuple[TaskView, ...]:
        """Return the views of `rows`, in the same order."""
        known = self._views if me == self._me else {}
        made: dict[str, tuple[TaskRow, GraphPosition, TaskView]] = {}
        for row in rows:
            task_id = row.task.id
            place = at.get(task_id, NO_POSITION)
            was = known.get(task_id)
            is_same = was is not None and was[0] == row and was[1] == place
            made[task_id] = was if was is not None and is_same else (row, place, task_view(row, place, me))
        self._views, self._me = made, me
        return tuple(view for _, _, view in made.values())
