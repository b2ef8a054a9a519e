"""
What a row says: a task, a job, one of the team, as pieces of text for a width. Pure.

    ◐ 12 Migrate the schema          @ada     3m
    ◐ b7k2  npm test             running     38s
            × keeps unknown columns 12ms
    ▶ ada  working  Migrating the schema      3m
"""

from __future__ import annotations

from taskyard.tui.paint import TEAM_COLOUR, Piece
from taskyard.view.glyphs import Style
from taskyard.view.text import cut, duration, owner_mark, padded, urgency, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.view.job_views import JobView
    from taskyard.view.people import Person
    from taskyard.view.task_views import TaskView

#: Columns of an id of a job where there is little room, and where a description has room beside a whole one.
_SHORT_ID, _ROOM_FOR_ID = 4, 64

#: Turns on the row with the focus while something is going on in it.
SPINNER = ("◐", "◓", "◑", "◒")
ASCII_SPINNER = ("*", "+", "x", "+")

#: Columns of what a job is at, and of an age: "needs input", "1h 04m".
_WORD, _AGE = 11, 6


def task_row(task: TaskView, *, columns: int, ids: int, now: int, style: Style, turn: int | None = None) -> list[Piece]:
    """A task on one line. `ids`: columns of the longest id; `turn`: it has the focus and the spinner stands so."""
    quiet = "muted" if task.state in ("done", "blocked") else ""
    left = f"{task.id:>{ids}} "
    subject = task.doing or task.subject
    right = _task_right(task, now, style)
    room = max(columns - 2 - len(left) - width(right) - 1, 4)
    return [
        Piece(f"{sign(task.glyph, task.ascii, style, turn if task.state == 'doing' else None)} ", task.token),
        Piece(left, quiet or ("bold" if task.is_mine else "")),
        Piece(padded(cut(subject, room, style), room), quiet or ("accent" if turn is not None and task.doing else "")),
        Piece(f" {right}" if right else "", quiet or "muted"),
    ]


def _task_right(task: TaskView, now: int, style: Style) -> str:
    owner = owner_mark(cut(task.owner, 12), is_assigned=task.is_assigned, style=style) if task.owner else ""
    marks = "" if task.state == "done" else urgency(task.priority, task.due)
    age = f"{duration((now - task.since) / 1000):>{_AGE}}" if task.since is not None and task.state != "ready" else ""
    return "  ".join(part for part in (task.note, marks, owner) if part) + (age and f" {age}")


def job_row(
    job: JobView, *, columns: int, now: int, style: Style, costs: int = 0, turn: int | None = None, asks: str = ""
) -> list[list[Piece]]:
    """A job on one line, or on two with what it printed last.

    `costs`: columns of the highest cost; `asks`: what stands in place of its state.
    """
    shown = job.id if columns >= _ROOM_FOR_ID else job.id[:_SHORT_ID]
    branch = "  " * (job.depth - 1) + ("- " if style.ascii else "└ ") if job.depth else ""
    word = asks or ("foreground" if job.is_foreground and job.word == "running" else job.word)
    state = padded(cut(word, max(_WORD, len(asks))), _WORD)
    right = f"{f' {job_cost(job):>{costs}}' if costs else ''} {job_age(job, now):>{_AGE}}"
    lead = 2 + len(shown) + 2
    room = max(columns - lead - width(state) - width(right) - 1, 4)
    live = "muted" if job.is_over and not job.is_unseen else ""
    running = job.state == "running" and job.is_going_on
    lines = [
        [
            Piece(f"{sign(job.glyph, job.ascii, style, turn if running else None)} ", job.token),
            Piece(f"{shown}  ", "muted"),
            Piece(padded(cut(branch + job.description, room, style), room), live),
            Piece(f" {state}", "warn bold" if asks else job.token if job.token in ("warn", "fail") else "muted"),
            Piece(right, "muted"),
        ]
    ]
    if note := job_note(job):
        lines.append([Piece(" " * lead), Piece(cut(note, max(columns - lead, 4), style), "muted")])
    return lines


def job_cost(job: JobView) -> str:
    """What a job has cost with all inside it, where somebody said."""
    return f"${job.total.cost_usd:.2f}" if job.total.cost_usd is not None else ""


def job_note(job: JobView) -> str:
    """What a job that goes on printed last, or asks."""
    return "" if job.is_over else job.last_line or job.question.strip().rpartition("\n")[2]


def job_age(job: JobView, now: int) -> str:
    """How long a job has run, or ran."""
    if job.started_at is None:
        return ""
    return duration(((job.ended_at if job.is_over else now) or now) / 1000 - job.started_at / 1000)


def person_row(person: Person, *, columns: int, names: int, now: int, style: Style) -> list[Piece]:
    """One of the team on one line; `names`: columns of the longest name."""
    age = duration((now - person.since) / 1000) if person.since is not None else ""
    word = padded(person.state, 8)
    lead = 2 + names + 1 + 8 + 1
    room = max(columns - lead - width(age) - 1, 4)
    return [
        Piece(f"{person.ascii if style.ascii else person.glyph} ", person.token),
        Piece(padded(cut(person.name, names, style), names) + " ", _name_look(person)),
        Piece(f"{word} ", person.token),
        Piece(padded(cut(person.doing, room, style), room), "" if person.state == "working" else "muted"),
        Piece(f" {age}", "muted"),
    ]


def _name_look(person: Person) -> str:
    """A member's name in the colour its team gave it; bold while it works."""
    return f"{TEAM_COLOUR}{person.colour or ''} {'bold' if person.state == 'working' else ''}"


def sign(glyph: str, plain: str, style: Style, turn: int | None = None) -> str:
    """The sign of a state; it turns where something is going on and the person looks at it."""
    if turn is not None:
        return ASCII_SPINNER[turn % 4] if style.ascii else SPINNER[turn % 4]
    return plain if style.ascii else glyph


def next_age_change(since: Sequence[int], now: int) -> int | None:
    """Milliseconds until one of these ages reads differently; None if none ever does.

    Those of one second change together, at its end: of a hundred jobs each would else have a moment of its own.
    """
    waits: list[int] = []
    for start in since:
        age = max(now - start, 0)
        step = 1_000 if age < 60_000 else 60_000 if age < 86_400_000 else 86_400_000
        waits.append(step - age % step)
    return -(-(now + min(waits)) // 1_000) * 1_000 - now if waits else None
