"""
Words for people: durations, sizes, texts cut to fit, rows of a list.

Everything that came from outside passes `safe` before it reaches a terminal: a subject can neither move the
cursor nor colour the screen nor reverse what is read.
"""

from __future__ import annotations

from taskyard.harmless import safe as safe
from taskyard.tasklist.extras import due_of, set_priority_of
from taskyard.view.glyphs import TASK_LOOKS, Style, glyph, painted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.view.ordering import Row

#: Narrower than this a subject says nothing; the row then runs over the edge instead.
NARROWEST_SUBJECT = 12


def duration(seconds: float) -> str:
    """`8s`, `3m`, `1h 04m`, `2d`.

    >>> [duration(n) for n in (0.4, 59.9, 200, 3_840, 200_000)]
    ['0s', '59s', '3m', '1h 04m', '2d']
    """
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3_600:
        return f"{whole // 60}m"
    if whole < 86_400:
        return f"{whole // 3_600}h {whole // 60 % 60:02d}m"
    return f"{whole // 86_400}d"


def size(count: int) -> str:
    """`812 B`, `4.1 kB`, `32 MB`, `1.5 GB`.

    >>> [size(n) for n in (812, 4_096, 32_000_000, 1_500_000_000, 10_000_000_000)]
    ['812 B', '4.1 kB', '32 MB', '1.5 GB', '10 GB']
    """
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"


def width(text: str) -> int:
    """How many columns `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    columns = 0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            columns += 2
        elif unicodedata.category(char) not in ("Mn", "Me", "Cf"):
            columns += 1
    return columns


def cut(text: str, columns: int, style: Style = Style()) -> str:  # noqa: B008  (immutable)
    """`text`, if need be shortened to `columns` with `…` at its end."""
    if width(text) <= columns:
        return text
    mark = "..." if style.ascii else "…"
    room = columns - len(mark)
    if room <= 0:
        return mark[: max(0, columns)]
    end, used = 0, 0
    for char in text:
        used += width(char)
        if used > room:
            break
        end += 1
    return text[:end].rstrip() + mark


def padded(text: str, columns: int) -> str:
    """`text` with spaces up to `columns`."""
    return text + " " * (columns - width(text))


def task_rows(rows: Sequence[Row], *, now: int, columns: int = 80, style: Style = Style()) -> list[str]:  # noqa: B008
    """One line per task: `◐ 12  Migrate the schema   @ada   3m`, `◌ 13  Switch readers   waits for 12`.

    `P1` is a priority that was set, `due 2027-01-01` when it should be done, `@ada` has it, `→ada` shall have it.
    """
    if not rows:
        return []
    ids = max(len(row.task.id) for row in rows)
    owners = max(width(_owner(row, style)) for row in rows)
    notes = [_note(row, now) for row in rows]
    # glyph, space, id, two spaces; the right side begins two spaces after the subject
    taken = ids + 4 + (owners + 2 if owners else 0) + max((len(note) + 2 for note in notes if note), default=0)
    subjects = [cut(safe(row.task.subject), max(NARROWEST_SUBJECT, columns - taken), style) for row in rows]
    widest = max(map(width, subjects))
    lines: list[str] = []
    for row, subject, note in zip(rows, subjects, notes):
        right = f"{padded(_owner(row, style), owners)}  {note}" if owners else note
        line = f"{row.task.id:>{ids}}  {padded(subject, widest)}  {right}".rstrip()
        token = "muted" if row.state in ("done", "blocked") else "default"
        lines.append(f"{glyph(TASK_LOOKS[row.state], style)} {painted(line, token, style)}")
    return lines


def done_line(count: int, style: Style = Style()) -> str:  # noqa: B008
    """`✓ 8 done   (--all shows them)`; empty if there are none."""
    if not count:
        return ""
    return f"{glyph(TASK_LOOKS['done'], style)} {painted(f'{count} done   (--all shows them)', 'muted', style)}"


def _owner(row: Row, style: Style) -> str:
    task = row.task
    return owner_mark(safe(task.owner), is_assigned=task.is_assigned, style=style) if task.owner else ""


def owner_mark(owner: str, *, is_assigned: bool, style: Style = Style()) -> str:  # noqa: B008
    """`@ada` has claimed it, `→ada` is to do it and has not claimed it."""
    return f"{'->' if style.ascii else '→'}{owner}" if is_assigned else f"@{owner}"


def urgency(priority: int | None, due: str | None) -> str:
    """`P1  due 2027-01-01`, as far as they are set."""
    return "  ".join(filter(None, [f"P{priority}" if priority is not None else "", f"due {due}" if due else ""]))


def waits_note(waits_for: Sequence[str]) -> str:
    """`waits for 12, 13`, the first three by name; empty if it waits for nobody."""
    first, more = ", ".join(waits_for[:3]), len(waits_for) - 3
    return f"waits for {first}" + (f" and {more} more" if more > 0 else "") if waits_for else ""


def _note(row: Row, now: int) -> str:
    task = row.task
    marks = "" if row.state == "done" else urgency(set_priority_of(task), due_of(task))
    return "  ".join(filter(None, [_state_note(row, now), marks]))


def _state_note(row: Row, now: int) -> str:
    if row.state == "blocked":
        return waits_note(row.waits_for)
    if row.state in ("doing", "done") and row.since is not None:
        return f"{duration((now - row.since) / 1000):>3}  {row.held_up}".rstrip()
    if row.held_up:
        return row.held_up
    return "set aside" if row.task.is_held else ""
