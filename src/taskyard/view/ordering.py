"""
Which tasks come first, and what is said about those that do not fit.

Just done (for 30 s, so that the eye sees what happened), in progress, ready, blocked, done earlier.
"""

from __future__ import annotations

from taskyard.tasklist.extras import priority_of
from taskyard.tasklist.graph import open_blockers
from taskyard.tasklist.model import TaskStatus
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from taskyard.tasklist.model import Task

#: How long a task that was just done stays on top.
JUST_DONE_MS = 30_000

#: How long the panel stays after everything is done; then it looks again, and hides.
HIDE_AFTER_MS = 5_000


_STATUS = {"doing": TaskStatus.IN_PROGRESS, "done": TaskStatus.COMPLETED}


class Row(NamedTuple):
    """A task in its place."""

    task: Task
    state: str  #: a key of `glyphs.TASK_LOOKS`
    waits_for: tuple[str, ...] = ()  #: its open blockers
    since: int | None = None  #: epoch ms: in progress or done since then, where known
    held_up: str = ""  #: why its worker does not get on, where that is known


def arranged(
    tasks: Iterable[Task],
    *,
    now: int,
    done_at: Mapping[str, int] | None = None,
    me: str | None = None,
    unreadable: Container[str] = (),
    waits: Mapping[str, str] | None = None,
) -> list[Row]:
    """`tasks` without trackers, in the order to show them.

    Within the groups: latest done first; mine, then the longest running; by priority and id; fewest open blockers.

    Args:
        tasks: All tasks of the list.
        now: Epoch ms.
        done_at: When tasks were completed, by the log or the file's time; else their last update counts.
        me: The agent whose tasks come first among those in progress.
        unreadable: Ids whose files are damaged: as blockers they count as open.
        waits: What keeps tasks in progress from getting on, by id (`task_waits`).
    """
    by_id = {task.id: task for task in tasks}
    shown = [task for task in by_id.values() if not task.is_internal]
    times = done_at or {}
    placed: list[tuple[tuple[int, ...], Row]] = []
    for task in shown:
        row = _row(task, waits_for(task, by_id, unreadable), times)
        if waits and row.state == "doing" and task.id in waits:
            row = row._replace(held_up=waits[task.id])
        placed.append((_place(row, now, me), row))
    placed.sort(key=lambda pair: pair[0])
    return [row for _, row in placed]


def waits_for(task: Task, by_id: Mapping[str, Task], unreadable: Container[str] = ()) -> tuple[str, ...]:
    """The ids `task` still waits for, nothing if it is done; a blocker whose file is damaged counts as open."""
    if not task.blocked_by or task.is_done:
        return ()
    still_open = open_blockers(task, by_id)
    return tuple(blocker for blocker in task.blocked_by if blocker in still_open or blocker in unreadable)


def fitted(rows: Sequence[Row], most: int) -> tuple[Sequence[Row], str]:
    """The first `most` rows, and a line about the others; empty if there are none."""
    return rows[:most], hidden_line(row.task for row in rows[most:])


def hidden_line(tasks: Iterable[Task]) -> str:
    """`… +2 in progress, 3 pending, 1 completed`, without what is zero."""
    return _hidden(task.status for task in tasks)


def hidden_states(states: Iterable[str]) -> str:
    """The same, of tasks by their states in a row."""
    return _hidden(_STATUS.get(state, TaskStatus.PENDING) for state in states)


def _hidden(statuses: Iterable[TaskStatus]) -> str:
    count = dict.fromkeys((TaskStatus.IN_PROGRESS, TaskStatus.PENDING, TaskStatus.COMPLETED), 0)
    for status in statuses:
        count[status] += 1
    parts = [f"{number} {status.value.replace('_', ' ')}" for status, number in count.items() if number]
    return f"… +{', '.join(parts)}" if parts else ""


def panel(tasks: Iterable[Task], *, done_since: int | None, now: int) -> tuple[bool, int | None]:
    """Whether the task panel is visible, and since when all is done: what to pass as `done_since` next time.

    Hiding is the view's affair: the tasks stay where they are.
    """
    shown = [task for task in tasks if not task.is_internal]
    if not shown:
        return False, None
    if not all(task.is_done for task in shown):
        return True, None
    since = now if done_since is None else done_since
    return now - since < HIDE_AFTER_MS, since


def _row(task: Task, waits_for: tuple[str, ...], done_at: Mapping[str, int]) -> Row:
    if task.is_done:
        return Row(task, "done", (), done_at.get(task.id, task.updated_at))
    if task.status is TaskStatus.IN_PROGRESS:
        return Row(task, "doing", waits_for, task.lease.since if task.lease else task.updated_at)
    return Row(task, "blocked" if waits_for else "ready", waits_for)


def _place(row: Row, now: int, me: str | None) -> tuple[int, ...]:
    number = int(row.task.id)
    if row.state == "done":
        since = row.since or 0
        return (0 if now - since <= JUST_DONE_MS else 4, -since, number)
    if row.state == "doing":
        mine = me is not None and row.task.owner == me
        return (1, not mine, now if row.since is None else row.since, number)
    if row.state == "ready":
        return (2, priority_of(row.task), number)
    return (3, len(row.waits_for), number)
