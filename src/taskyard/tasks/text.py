"""Tasks as text and JSON: order of rows, replies to models, `--json` records, verification nudge.

Order of rows: just completed (for 30 s, so that users see what happened), in progress, ready, blocked,
completed earlier. Replies to a model are word for word those of Claude Code, which models know; completed
blockers are left out, so that what a model reads as blocked is blocked now. Records are plain JSON values
in snake_case: what `--json` prints and web pages receive. The nudge to have completed work verified has one
text for the agent and one for the user.
"""

from __future__ import annotations

from taskyard.core.text import (
    MIN_SUBJECT_WIDTH,
    TASK_GLYPHS,
    Style,
    colorize,
    cut,
    duration,
    escape_control,
    glyph,
    padded,
    width,
)
from taskyard.core.values import NamedTuple
from taskyard.tasks.model import TaskStatus, due_of, explicit_priority_of, open_blockers, priority_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from taskyard.tasks.model import Change, Lease, Task


#: Milliseconds a task that was just completed stays on top.
JUST_DONE_MS = 30_000

#: Milliseconds the panel stays after all tasks are completed; then it is refreshed and hidden.
HIDE_AFTER_MS = 5_000


_STATUS = {"doing": TaskStatus.IN_PROGRESS, "done": TaskStatus.COMPLETED}


class TaskRow(NamedTuple):
    """A task with its state, for display."""

    task: Task
    state: str  #: a key of `core.text.TASK_GLYPHS`
    waits_for: tuple[str, ...] = ()  #: its open blockers
    since: int | None = None  #: epoch ms: in progress or completed since then, where known
    held_up: str = ""  #: why its worker makes no progress, where known


def sort_tasks(
    tasks: Iterable[Task],
    *,
    now: int,
    done_at: Mapping[str, int] | None = None,
    me: str | None = None,
    unreadable: Container[str] = (),
    waits: Mapping[str, str] | None = None,
) -> list[TaskRow]:
    """Return `tasks` without trackers, in display order.

    Within the groups: latest completed first; mine, then the longest running; by priority and id; fewest open
    blockers.

    Args:
        tasks: All tasks of the list.
        now: Epoch ms.
        done_at: When tasks were completed, by the log or the file's time; else their last update counts.
        me: The agent whose tasks come first among those in progress.
        unreadable: Ids whose files are damaged: as blockers they count as open.
        waits: Why tasks in progress make no progress, by id.
    """
    by_id = {task.id: task for task in tasks}
    shown = [task for task in by_id.values() if not task.is_internal]
    times = done_at or {}
    placed: list[tuple[tuple[int, ...], TaskRow]] = []
    for task in shown:
        row = _make_row(task, unfinished_blockers(task, by_id, unreadable), times)
        if waits and row.state == "doing" and task.id in waits:
            row = row._replace(held_up=waits[task.id])
        placed.append((_sort_key(row, now, me), row))
    placed.sort(key=lambda pair: pair[0])
    return [row for _, row in placed]


def unfinished_blockers(task: Task, by_id: Mapping[str, Task], unreadable: Container[str] = ()) -> tuple[str, ...]:
    """Return the ids `task` still waits for, none if it is completed; a damaged blocker counts as open."""
    if not task.blocked_by or task.is_done:
        return ()
    still_open = open_blockers(task, by_id)
    return tuple(blocker for blocker in task.blocked_by if blocker in still_open or blocker in unreadable)


def fit_rows(rows: Sequence[TaskRow], most: int) -> tuple[Sequence[TaskRow], str]:
    """Return the first `most` rows, and a line about the others; "" if there are none."""
    return rows[:most], hidden_line(row.task for row in rows[most:])


def hidden_line(tasks: Iterable[Task]) -> str:
    """Return `… +2 in progress, 3 pending, 1 completed`, without zero counts."""
    return _format_hidden(task.status for task in tasks)


def hidden_states_line(states: Iterable[str]) -> str:
    """Return the line of `hidden_line` for tasks given by their row states."""
    return _format_hidden(_STATUS.get(state, TaskStatus.PENDING) for state in states)


def _format_hidden(statuses: Iterable[TaskStatus]) -> str:
    count = dict.fromkeys((TaskStatus.IN_PROGRESS, TaskStatus.PENDING, TaskStatus.COMPLETED), 0)
    for status in statuses:
        count[status] += 1
    parts = [f"{number} {status.value.replace('_', ' ')}" for status, number in count.items() if number]
    return f"… +{', '.join(parts)}" if parts else ""


def panel_state(tasks: Iterable[Task], *, done_since: int | None, now: int) -> tuple[bool, int | None]:
    """Return whether the task panel is visible, and since when all is done: the next call's `done_since`.

    Hiding concerns only the view: the tasks stay on the list.
    """
    shown = [task for task in tasks if not task.is_internal]
    if not shown:
        return False, None
    if not all(task.is_done for task in shown):
        return True, None
    since = now if done_since is None else done_since
    return now - since < HIDE_AFTER_MS, since


def _make_row(task: Task, waits_for: tuple[str, ...], done_at: Mapping[str, int]) -> TaskRow:
    if task.is_done:
        return TaskRow(task, "done", (), done_at.get(task.id, task.updated_at))
    if task.status is TaskStatus.IN_PROGRESS:
        return TaskRow(task, "doing", waits_for, task.lease.since if task.lease else task.updated_at)
    return TaskRow(task, "blocked" if waits_for else "ready", waits_for)


def _sort_key(row: TaskRow, now: int, me: str | None) -> tuple[int, ...]:
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


NO_TASKS = "No tasks found"
NOT_FOUND = "Task not found"


def format_listing(
    tasks: Iterable[Task],
    *,
    among: Mapping[str, Task] | None = None,
    unreadable: Container[str] = (),
    longest: int | None = None,
) -> str:
    """Format lines such as `#1 [in_progress] A (alice)`, without trackers; `among`: all tasks of the list.

    Beyond `longest` characters completed tasks are left out first, then the highest ids, and the last line
    counts them.
    """
    named = {task.id: task for task in tasks}
    shown = [task for task in named.values() if not task.is_internal]
    if not shown:
        return NO_TASKS
    by_id = named if among is None else among
    lines = {task.id: _format_line(task, by_id, unreadable) for task in shown}
    if longest is None or sum(map(len, lines.values())) + len(lines) - 1 <= longest:
        return "\n".join(lines.values())
    return _shorten(shown, lines, longest)


def format_details(task: Task, by_id: Mapping[str, Task], *, unreadable: Container[str] = ()) -> str:
    """Format `Task #1: A`, its status, description, open blockers, and the tasks it blocks."""
    parts = [
        f"Task #{task.id}: {_one_line(task.subject)}",
        f"Status: {task.status.value}",
        f"Description: {task.description}",
    ]
    if blockers := unfinished_blockers(task, by_id, unreadable):
        parts.append(f"Blocked by: {_format_ids(blockers)}")
    if task.blocks:
        parts.append(f"Blocks: {_format_ids(task.blocks)}")
    return "\n".join(parts)


def format_created(task: Task) -> str:
    """Return the reply of TaskCreate."""
    return f"Task #{task.id} created successfully: {_one_line(task.subject)}"


def format_updated(task_id: str, fields: Sequence[str]) -> str:
    """Return the reply of TaskUpdate: which fields changed; `deleted` for a deletion."""
    return f"Updated task #{task_id} {', '.join(fields)}".rstrip()


def _format_line(task: Task, by_id: Mapping[str, Task], unreadable: Container[str]) -> str:
    owner = f" ({_one_line(task.owner)})" if task.owner else ""
    blockers = unfinished_blockers(task, by_id, unreadable)
    blocked = f" [blocked by {_format_ids(blockers)}]" if blockers else ""
    return f"#{task.id} [{task.status.value}] {_one_line(task.subject)}{owner}{blocked}"


def _shorten(tasks: Sequence[Task], lines: Mapping[str, str], longest: int) -> str:
    room = longest - len(hidden_line(tasks))  # room for a line that counts all tasks, the longest case
    kept: set[str] = set()
    rank = (TaskStatus.IN_PROGRESS, TaskStatus.PENDING, TaskStatus.COMPLETED)
    for task in sorted(tasks, key=lambda task: rank.index(task.status)):
        room -= len(lines[task.id]) + 1
        if room < 0:
            break
        kept.add(task.id)
    rest = hidden_line(task for task in tasks if task.id not in kept)
    return "\n".join([lines[task.id] for task in tasks if task.id in kept] + [rest])


def _format_ids(ids: Iterable[str]) -> str:
    return ", ".join(f"#{task_id}" for task_id in ids)


def _one_line(text: str) -> str:
    """Return `text` on one line, so that another program's subject cannot imitate a second line of ours."""
    return text if text.isprintable() else " ".join(text.split())


def task_json(task: Task, *, open_blockers: Sequence[str] | None = None, with_token: bool = False) -> dict[str, object]:
    """Return `task` with every field, absent ones as null.

    Args:
        task: The task.
        open_blockers: Those of its blockers that are still open, where the caller knows.
        with_token: Include the lease's token: only for the caller that has just claimed the task.
    """
    record: dict[str, object] = {
        "id": task.id,
        "subject": task.subject,
        "description": task.description,
        "active_form": task.active_form,
        "owner": task.owner,
        "status": task.status.value,
        "blocks": list(task.blocks),
        "blocked_by": list(task.blocked_by),
    }
    if open_blockers is not None:
        record["open_blockers"] = list(open_blockers)
    return record | {
        "metadata": dict(task.metadata),
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "lease": lease_json(task.lease, with_token=with_token) if task.lease else None,
        "ready": list(task.ready),
        "notes": list(task.notes),
    }


def lease_json(lease: Lease, *, with_token: bool = False) -> dict[str, object]:
    """Return a lease as JSON; the token only on request, since it proves the claim."""
    record: dict[str, object] = {
        "owner": lease.owner,
        "instance": lease.instance,
        "kind": lease.kind,
        "since": lease.since,
        "expires": lease.expires,
        "host": lease.host or None,
    }
    return record | {"token": lease.token} if with_token else record


def change_json(change: Change) -> dict[str, object]:
    """Return one log entry as JSON; a removed task is null."""
    return {
        "id": change.id,
        "at": change.at,
        "by": change.act.by,
        "cause": change.act.cause,
        "via": change.act.via,
        "note": change.act.note or None,
        "tasks": {task_id: task_json(task) if task else None for task_id, task in change.tasks.items()},
        "aborted": change.aborted,
    }


def format_task_rows(rows: Sequence[TaskRow], *, now: int, columns: int = 80, style: Style = Style()) -> list[str]:  # noqa: B008
    """Format one line per task: `◐ 12  Migrate the schema   @ada   3m`, `◌ 13  Switch readers   waits for 12`.

    `P1` is a priority that was set, `due 2027-01-01` the due date, `@ada` has claimed it, `→ada` is assigned.
    """
    if not rows:
        return []
    ids = max(len(row.task.id) for row in rows)
    owners = max(width(_owner(row, style)) for row in rows)
    notes = [_note(row, now) for row in rows]
    # glyph, space, id, two spaces; the right side begins two spaces after the subject
    taken = ids + 4 + (owners + 2 if owners else 0) + max((len(note) + 2 for note in notes if note), default=0)
    subjects = [cut(escape_control(row.task.subject), max(MIN_SUBJECT_WIDTH, columns - taken), style) for row in rows]
    widest = max(map(width, subjects))
    lines: list[str] = []
    for row, subject, note in zip(rows, subjects, notes):
        right = f"{padded(_owner(row, style), owners)}  {note}" if owners else note
        line = f"{row.task.id:>{ids}}  {padded(subject, widest)}  {right}".rstrip()
        token = "muted" if row.state in ("done", "blocked") else "default"
        lines.append(f"{glyph(TASK_GLYPHS[row.state], style)} {colorize(line, token, style)}")
    return lines


def done_line(count: int, style: Style = Style()) -> str:  # noqa: B008
    """Return `✓ 8 done   (--all shows them)`; "" if there are none."""
    if not count:
        return ""
    return f"{glyph(TASK_GLYPHS['done'], style)} {colorize(f'{count} done   (--all shows them)', 'muted', style)}"


def _owner(row: TaskRow, style: Style) -> str:
    task = row.task
    return owner_mark(escape_control(task.owner), is_assigned=task.is_assigned, style=style) if task.owner else ""


def owner_mark(owner: str, *, is_assigned: bool, style: Style = Style()) -> str:  # noqa: B008
    """Return `@ada` for a claim, `→ada` for an assignment that is not claimed yet."""
    return f"{'->' if style.ascii else '→'}{owner}" if is_assigned else f"@{owner}"


def format_urgency(priority: int | None, due: str | None) -> str:
    """Return `P1  due 2027-01-01`, as far as they are set."""
    return "  ".join(filter(None, [f"P{priority}" if priority is not None else "", f"due {due}" if due else ""]))


def waits_note(waits_for: Sequence[str]) -> str:
    """Return `waits for 12, 13`, naming the first three; "" if there are no blockers."""
    first, more = ", ".join(waits_for[:3]), len(waits_for) - 3
    return f"waits for {first}" + (f" and {more} more" if more > 0 else "") if waits_for else ""


def _note(row: TaskRow, now: int) -> str:
    task = row.task
    marks = "" if row.state == "done" else format_urgency(explicit_priority_of(task), due_of(task))
    return "  ".join(filter(None, [_state_note(row, now), marks]))


def _state_note(row: TaskRow, now: int) -> str:
    if row.state == "blocked":
        return waits_note(row.waits_for)
    if row.state in ("doing", "done") and row.since is not None:
        return f"{duration((now - row.since) / 1000):>3}  {row.held_up}".rstrip()
    if row.held_up:
        return row.held_up
    return "set aside" if row.task.is_held else ""


#: One or two tasks are quickly reviewed; from three on an independent verification pays.
MIN_TASKS = 3


#: Beginning of the instructions to the agent.
_INSTRUCTIONS = " Before you report the work as done, "


def note_for_person(note: str) -> str:
    """Return a completion note for the user: a fact and a command, no instructions to a model."""
    fact, found, _ = note.partition(_INSTRUCTIONS)
    return f"{fact} To have the work checked, start an agent: `taskyard agent PROMPT`." if found else note


def verification_nudge(tasks: Iterable[Task], *, verifier: str) -> str | None:
    """Return the nudge for the main agent if `tasks` are all completed and none of them was a verification.

    The caller checks whether the agent that completed the last one is the main agent, and whether nudges are
    enabled.
    """
    real = [task for task in tasks if not task.is_internal]
    if len(real) < MIN_TASKS or not all(task.is_done for task in real):
        return None
    if any("verif" in task.subject.lower() for task in real):
        return None
    return (
        f"All {len(real)} tasks are completed and none of them was a verification.{_INSTRUCTIONS}"
        f"start an agent of type {verifier!r} to check it independently: the verdict is the verifier's to "
        "give, not yours."
    )
