"""Tasks as every screen shows them: in order, each with its look, its words and its place in the graph. Pure."""

from __future__ import annotations

from taskyard.tasklist.extras import due_of, labels_of, set_priority_of
from taskyard.typed import NamedTuple
from taskyard.view.glyphs import TASK_LOOKS
from taskyard.view.text import safe, waits_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.view.graph import Place
    from taskyard.view.ordering import Row


class TaskView(NamedTuple):
    """One task, ready to be shown."""

    id: str
    subject: str
    state: str  #: ready, blocked, doing or done
    glyph: str
    ascii: str
    word: str
    token: str  #: the colour by meaning; see `glyphs`
    owner: str | None = None
    is_mine: bool = False
    since: int | None = None  #: epoch ms: in progress or done since then
    doing: str = ""  #: what its owner is at, while in progress
    note: str = ""  #: "waits for 12, 13", "set aside", "rate-limited by anthropic until 04:50"
    waits_for: tuple[str, ...] = ()  #: its open blockers
    blocked_by: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    priority: int | None = None  #: None where nobody set one
    labels: tuple[str, ...] = ()
    level: int = 0  #: its column in the graph
    rank: int = 0  #: its row in that column
    is_critical: bool = False  #: on the longest way that is still to go
    due: str | None = None  #: when it should be done, in ISO 8601
    is_assigned: bool = False  #: its owner has neither claimed nor started it


class Counts(NamedTuple):
    """How many tasks are in which state."""

    ready: int = 0
    blocked: int = 0
    doing: int = 0
    done: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.ready + self.blocked + self.doing + self.done


def counted(tasks: Iterable[TaskView]) -> Counts:
    """How many tasks are in which state."""
    found = dict.fromkeys(Counts._fields, 0)
    for task in tasks:
        found[task.state] += 1
    return Counts(**found)


def task_view(row: Row, place: Place, me: str | None) -> TaskView:
    """One row, ready to be shown."""
    task, look = row.task, TASK_LOOKS[row.state]
    is_doing = row.state == "doing"
    return TaskView(
        task.id,
        safe(task.subject),
        row.state,
        *look,
        owner=safe(task.owner) if task.owner else None,
        is_mine=me is not None and task.owner == me,
        since=row.since,
        doing=safe(task.active_form or "") if is_doing else "",
        note=row.held_up or waits_note(row.waits_for) or ("set aside" if task.is_held else ""),
        waits_for=row.waits_for,
        blocked_by=task.blocked_by,
        blocks=task.blocks,
        priority=set_priority_of(task),
        labels=tuple(safe(label) for label in labels_of(task)),
        level=place.level,
        rank=place.rank,
        is_critical=place.is_critical,
        due=due_of(task),
        is_assigned=task.is_assigned,
    )
