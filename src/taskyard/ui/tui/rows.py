"""Rows of tasks, jobs and agents in the terminal view: drawing, list widgets and filters.

    ◐ 12 Migrate the schema          @ada     3m
    ◐ b7k2  npm test             running     38s
            × keeps unknown columns 12ms
    ▶ ada  working  Migrating the schema      3m

`task_row`, `job_row` and `agent_row` are pure. `RowList` is a list of rows by id with a selection: only changed rows
are redrawn, and the selection stays with its row. `filter_rows` filters: `importer`, or `!done` for all others.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Generic, TypeVar

from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from taskyard.core.text import Style, cut, duration, padded, width
from taskyard.tasks.text import format_urgency, owner_mark
from taskyard.ui.jobs import JobView
from taskyard.ui.snapshot import AgentView
from taskyard.ui.tasks import TaskView
from taskyard.ui.tui.keys import TEAM_COLOUR, Piece, blank, strip_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events


#: Columns of a shortened job id, and the width from which the whole id is shown.
_SHORT_ID, _ROOM_FOR_ID = 4, 64

#: Shown on the focused row while it is in progress.
SPINNER = ("◐", "◓", "◑", "◒")
ASCII_SPINNER = ("*", "+", "x", "+")

#: Columns of a job's state, and of an age: "needs input", "1h 04m".
_STATE_WIDTH, _AGE_WIDTH = 11, 6


def task_row(task: TaskView, *, columns: int, ids: int, now: int, style: Style, turn: int | None = None) -> list[Piece]:
    """Draw a task on one line. `ids`: columns of the longest id; `turn`: spinner step, if the row has the focus."""
    quiet = "muted" if task.state in ("done", "blocked") else ""
    left = f"{task.id:>{ids}} "
    subject = task.doing or task.subject
    right = _task_right(task, now, style)
    room = max(columns - 2 - len(left) - width(right) - 1, 4)
    return [
        Piece(f"{state_glyph(task.glyph, task.ascii, style, turn if task.state == 'doing' else None)} ", task.token),
        Piece(left, quiet or ("bold" if task.is_mine else "")),
        Piece(padded(cut(subject, room, style), room), quiet or ("accent" if turn is not None and task.doing else "")),
        Piece(f" {right}" if right else "", quiet or "muted"),
    ]


def _task_right(task: TaskView, now: int, style: Style) -> str:
    owner = owner_mark(cut(task.owner, 12), is_assigned=task.is_assigned, style=style) if task.owner else ""
    marks = "" if task.state == "done" else format_urgency(task.priority, task.due)
    age = (
        f"{duration((now - task.since) / 1000):>{_AGE_WIDTH}}"
        if task.since is not None and task.state != "ready"
        else ""
    )
    return "  ".join(part for part in (task.note, marks, owner) if part) + (age and f" {age}")


def job_row(
    job: JobView, *, columns: int, now: int, style: Style, costs: int = 0, turn: int | None = None, asks: str = ""
) -> list[list[Piece]]:
    """Draw a job on one line, or on two with its last output line.

    `costs`: columns of the highest cost; `asks`: text shown instead of its state.
    """
    shown = job.id if columns >= _ROOM_FOR_ID else job.id[:_SHORT_ID]
    branch = "  " * (job.depth - 1) + ("- " if style.ascii else "└ ") if job.depth else ""
    word = asks or ("foreground" if job.is_foreground and job.word == "running" else job.word)
    state = padded(cut(word, max(_STATE_WIDTH, len(asks))), _STATE_WIDTH)
    right = f"{f' {job_cost(job):>{costs}}' if costs else ''} {job_age(job, now):>{_AGE_WIDTH}}"
    lead = 2 + len(shown) + 2
    room = max(columns - lead - width(state) - width(right) - 1, 4)
    live = "muted" if job.is_over and not job.is_unseen else ""
    running = job.state == "running" and job.is_progressing
    lines = [
        [
            Piece(f"{state_glyph(job.glyph, job.ascii, style, turn if running else None)} ", job.token),
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
    """Return the reported cost of a job with all jobs inside it; "" if unknown."""
    return f"${job.total.cost_usd:.2f}" if job.total.cost_usd is not None else ""


def job_note(job: JobView) -> str:
    """Return the last output line or the question of a job that has not ended."""
    return "" if job.is_over else job.last_line or job.question.strip().rpartition("\n")[2]


def job_age(job: JobView, now: int) -> str:
    """Return how long a job has run."""
    if job.started_at is None:
        return ""
    return duration(((job.ended_at if job.is_over else now) or now) / 1000 - job.started_at / 1000)


def agent_row(person: AgentView, *, columns: int, names: int, now: int, style: Style) -> list[Piece]:
    """Draw a team member on one line; `names`: columns of the longest name."""
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


def _name_look(person: AgentView) -> str:
    """Return the look of a member's name: its team colour, bold while it works."""
    return f"{TEAM_COLOUR}{person.colour or ''} {'bold' if person.state == 'working' else ''}"


def state_glyph(glyph: str, plain: str, style: Style, turn: int | None = None) -> str:
    """Return the glyph of a state; the spinner if `turn` is given."""
    if turn is not None:
        return ASCII_SPINNER[turn % 4] if style.ascii else SPINNER[turn % 4]
    return plain if style.ascii else glyph


def next_age_change(since: Sequence[int], now: int) -> int | None:
    """Return milliseconds until one of these ages is displayed differently; None if there are none.

    Rounded up to a full second, so that ages change together: otherwise each of a hundred jobs would cause a redraw.
    """
    waits: list[int] = []
    for start in since:
        age = max(now - start, 0)
        step = 1_000 if age < 60_000 else 60_000 if age < 86_400_000 else 86_400_000
        waits.append(step - age % step)
    return -(-(now + min(waits)) // 1_000) * 1_000 - now if waits else None


Item = TypeVar("Item")

#: Beside the selected row.
_MARK, _ASCII_MARK = "›", ">"


class RowList(ScrollView, Generic[Item], can_focus=True, inherit_bindings=False):
    """A scrollable list of rows with a selection; subclasses define how a row is drawn."""

    DEFAULT_CSS = """
    RowList { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; height: 1fr; }
    """

    class Moved(Message):
        """Another row is selected."""

        def __init__(self, rows: RowList[Item]) -> None:
            super().__init__()
            self.rows = rows

    class Opened(Message):
        """The selected row was clicked."""

        def __init__(self, rows: RowList[Item]) -> None:
            super().__init__()
            self.rows = rows

    def __init__(self, *, id: str, ascii: bool = False, empty: str = "") -> None:
        super().__init__(id=id)
        self.items: Sequence[Item] = ()
        self.empty = empty  #: shown if there are no rows
        self.selected: str | None = None
        self.is_active = False  #: its selection is shown in the detail
        self.redrawn = 0  #: number of rows redrawn so far
        self._mark = _ASCII_MARK if ascii else _MARK
        self._ids: list[str] = []
        self._tops: list[int] = [0]
        self._drawn: dict[str, list[list[Piece]]] = {}

    # -- for subclasses ----------------------------------------------------------------------

    def key_of(self, item: Item) -> str:
        """Return the id of a row."""
        raise NotImplementedError

    def height_of(self, item: Item) -> int:
        """Return the number of lines of a row."""
        return 1

    def draw(self, item: Item, columns: int) -> list[list[Piece]]:
        """Return a row's lines."""
        raise NotImplementedError

    # -- rows --------------------------------------------------------------------------------

    @property
    def lines(self) -> int:
        """Number of lines of all rows."""
        return self._tops[-1]

    @property
    def current(self) -> Item | None:
        """The selected item."""
        at = self._at()
        return self.items[at] if at is not None else None

    def show(self, items: Sequence[Item]) -> None:
        """Show these rows; only those that differ are redrawn."""
        before, self.items = self.items, items
        ids = [self.key_of(item) for item in items]
        tops = [0, *accumulate(self.height_of(item) for item in items)]
        if ids == self._ids and tops == self._tops:
            for at, (old, new) in enumerate(zip(before, items)):
                if old is not new and old != new:
                    self._redraw(at)
            return
        self._rearrange(before, ids, tops)

    def _rearrange(self, before: Sequence[Item], ids: list[str], tops: list[int]) -> None:
        """Redraw from the first row that was added, removed or moved; the selected one keeps its place on screen."""
        old_at = self._at()
        on_screen = self._tops[old_at] - self.scroll_offset.y if old_at is not None else 0
        old_ids, old_tops = self._ids, self._tops
        self._ids, self._tops = ids, tops
        if self.selected not in self._places():
            near = min(old_at or 0, len(ids) - 1)
            self._select(ids[near] if ids else None)
        self.virtual_size = Size(self.size.width, tops[-1])
        if (at := self._at()) is not None and self.is_attached and old_at is not None:
            wanted = self.scroll_offset.y if on_screen < 0 else tops[at] - on_screen
            if wanted != self.scroll_offset.y:
                self.scroll_to(y=max(0, wanted), animate=False, force=True)
        first = next((n for n, pair in enumerate(zip(old_ids, ids)) if pair[0] != pair[1]), min(len(ids), len(old_ids)))
        same = [n for n in range(first) if before[n] is not self.items[n] and before[n] != self.items[n]]
        for n in same:
            self._redraw(n)
        start = min(old_tops[first], tops[first], next((t for t, u in zip(old_tops, tops) if t != u), tops[first]))
        self.redrawn += max(len(ids), len(old_ids)) - first
        self.refresh_lines(start, max(old_tops[-1], tops[-1], self.size.height) - start + 1)

    def _redraw(self, at: int) -> None:
        self.redrawn += 1
        self.refresh_lines(self._tops[at], self._tops[at + 1] - self._tops[at])

    def tick(self) -> None:
        """Redraw visible rows whose text changed with time."""
        for at in self._visible():
            item = self.items[at]
            if self.draw(item, self._columns()) != self._drawn.get(self._ids[at]):
                self._redraw(at)

    def redraw_selected(self) -> None:
        """Redraw the selected row."""
        if (at := self._at()) is not None:
            self._redraw(at)

    def hidden(self) -> list[Item]:
        """Return the rows that do not fit, above and below the visible ones."""
        seen = self._visible()
        return [*self.items[: seen.start], *self.items[seen.stop :]]

    def _visible(self) -> range:
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        first = max(bisect_right(self._tops, top) - 1, 0)
        return range(first, min(bisect_right(self._tops, max(bottom - 1, 0)), len(self.items)))

    # -- selection ---------------------------------------------------------------------------

    def _places(self) -> frozenset[str]:
        return frozenset(self._ids)

    def _at(self) -> int | None:
        try:
            return self._ids.index(self.selected) if self.selected is not None else None
        except ValueError:
            return None

    def _select(self, id: str | None) -> None:
        if id != self.selected:
            self.redraw_selected()
            self.selected = id
            self.redraw_selected()
            self.post_message(self.Moved(self))

    def select(self, id: str) -> bool:
        """Select a row by its id; return False if there is none."""
        if id not in self._ids:
            return False
        self._select(id)
        self._into_view()
        return True

    def move(self, by: int) -> bool:
        """Select the row `by` rows on; return False at the end."""
        at = self._at()
        if not self._ids or at is None:
            return False
        to = min(max(at + by, 0), len(self._ids) - 1)
        self._select(self._ids[to])
        self._into_view()
        return to != at

    def move_page(self, by: int) -> None:
        """Move by one screen."""
        self.move(by * max(len(self._visible()) - 1, 1))

    def move_to_edge(self, by: int) -> None:
        """Move to the first or the last row."""
        self.move(by * len(self._ids))

    def _into_view(self) -> None:
        at = self._at()
        if at is None:
            return
        top, bottom = self._tops[at], self._tops[at + 1]
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True)
        elif bottom > self.scroll_offset.y + self.size.height:
            self.scroll_to(y=bottom - self.size.height, animate=False, force=True)

    # -- drawing -----------------------------------------------------------------------------

    def _columns(self) -> int:
        return max(self.scrollable_content_region.width - 2, 4)  # the mark on the left, a space on the right

    def render_line(self, y: int) -> Strip:
        """Render one visible line."""
        width = self.scrollable_content_region.width
        line = y + self.scroll_offset.y
        if not self.items:
            words = _wrap(self.empty, max(width - 2, 4))
            return strip_of([Piece(f" {words[line]}" if line < len(words) else "", "muted")], width)
        if line >= self.lines:
            return blank(width)
        at = bisect_right(self._tops, line) - 1
        item, id = self.items[at], self._ids[at]
        pieces = self._drawn[id] = self.draw(item, self._columns())
        within = line - self._tops[at]
        is_selected = id == self.selected
        is_marked = is_selected and within == 0 and (self.has_focus or self.is_active)
        mark = Piece(self._mark if is_marked else " ", "accent bold")
        shown = pieces[within] if within < len(pieces) else []
        return strip_of([mark, *shown], width, "reverse" if is_selected and self.has_focus else "")

    def empty_lines(self, width: int) -> int:
        """Return the number of lines of the text for an empty list."""
        return len(_wrap(self.empty, max(width - 2, 4)))

    def on_resize(self, event: events.Resize) -> None:
        """Redraw every row for the new width."""
        self.virtual_size = Size(event.size.width, self.lines)
        self._drawn.clear()
        self._into_view()

    def on_click(self, event: events.Click) -> None:
        """Select the clicked row; if it is selected already, open it."""
        line = event.y + self.scroll_offset.y
        if 0 <= line < self.lines:
            id = self._ids[bisect_right(self._tops, line) - 1]
            if id == self.selected:
                self.post_message(self.Opened(self))
            self._select(id)


def _wrap(text: str, columns: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, columns) or [""]


#: Most columns of an agent's name.
_LONGEST_NAME = 16


class TimedRows(RowList[JobView | TaskView | AgentView]):
    """Base of the three lists: a clock, a style, and the spinner of the focused row."""

    def __init__(self, *, id: str, style: Style, now: Callable[[], int], empty: str = "") -> None:
        super().__init__(id=id, ascii=style.ascii, empty=empty)
        self.style = style
        self.now = now
        self.turn = 0

    def spinner_step(self, id: str) -> int | None:
        """Return the spinner step if the row has the focus, else None."""
        return self.turn if self.has_focus and id == self.selected else None


class TaskRows(TimedRows):
    """Tasks, in the order of the snapshot."""

    def __init__(self, *, id: str, style: Style, now: Callable[[], int], empty: str = "") -> None:
        super().__init__(id=id, style=style, now=now, empty=empty)
        self._ids_wide = 1

    def show(self, items: Sequence[JobView | TaskView | AgentView]) -> None:
        """Show these tasks; the id column fits the longest id."""
        wide = max((len(self.key_of(item)) for item in items), default=1)
        if wide != self._ids_wide:
            self._ids_wide = wide
            self.refresh()
        super().show(items)

    def key_of(self, item: JobView | TaskView | AgentView) -> str:
        """Return the task's id."""
        assert isinstance(item, TaskView)
        return item.id

    def draw(self, item: JobView | TaskView | AgentView, columns: int) -> list[list[Piece]]:
        """Draw one line."""
        assert isinstance(item, TaskView)
        turn = self.spinner_step(item.id) if item.state == "doing" else None
        return [task_row(item, columns=columns, ids=self._ids_wide, now=self.now(), style=self.style, turn=turn)]


class JobRows(TimedRows):
    """Jobs, in the order of the snapshot."""

    def __init__(self, *, id: str, style: Style, now: Callable[[], int], empty: str = "") -> None:
        super().__init__(id=id, style=style, now=now, empty=empty)
        self._costs_wide = 0
        self.asks: dict[str, str] = {}  #: text shown instead of a job's state, by id

    def key_of(self, item: JobView | TaskView | AgentView) -> str:
        """Return the job's id."""
        assert isinstance(item, JobView)
        return item.id

    def height_of(self, item: JobView | TaskView | AgentView) -> int:
        """Return two lines if it has a note, else one."""
        assert isinstance(item, JobView)
        return 2 if job_note(item) else 1

    def draw(self, item: JobView | TaskView | AgentView, columns: int) -> list[list[Piece]]:
        """Draw a line, and its note."""
        assert isinstance(item, JobView)
        turn, asks = self.spinner_step(item.id), self.asks.get(item.id, "")
        return job_row(
            item, columns=columns, now=self.now(), style=self.style, costs=self._costs_wide, turn=turn, asks=asks
        )

    def show(self, items: Sequence[JobView | TaskView | AgentView]) -> None:
        """Show these jobs; the cost column fits the highest cost."""
        wide = max((len(job_cost(item)) for item in items if isinstance(item, JobView)), default=0)
        if wide != self._costs_wide:
            self._costs_wide = wide
            self.refresh()
        super().show(items)


class AgentRows(TimedRows):
    """The agents of the team."""

    def key_of(self, item: JobView | TaskView | AgentView) -> str:
        """Return the agent's name."""
        assert isinstance(item, AgentView)
        return item.name

    def draw(self, item: JobView | TaskView | AgentView, columns: int) -> list[list[Piece]]:
        """Draw one line."""
        assert isinstance(item, AgentView)
        names = min(max((len(self.key_of(one)) for one in self.items), default=1), _LONGEST_NAME)
        return [agent_row(item, columns=columns, names=names, now=self.now(), style=self.style)]


Matched = TypeVar("Matched")


def filter_rows(items: Sequence[Matched], text: Callable[[Matched], str], filter_: str) -> Sequence[Matched]:
    """Return the items that pass a filter."""
    return [item for item in items if matches(text(item), filter_)] if filter_ else items


def matches(text: str, filter_: str) -> bool:
    """Return whether a text passes a filter; case-insensitive, `!` negates it.

    >>> matches("12 Migrate @ada", "ADA"), matches("12 Migrate @ada", "!ada"), matches("x", "")
    (True, False, True)
    """
    wanted = filter_.strip().lower()
    if wanted.startswith("!"):
        return not wanted[1:] or wanted[1:] not in text.lower()
    return wanted in text.lower()


def task_text(task: TaskView) -> str:
    """Return the text of a task that filters search."""
    return f"{task.id} {task.subject} {task.word} {task.note} {' '.join(task.labels)} @{task.owner or ''}"


def job_text(job: JobView) -> str:
    """Return the text of a job that filters search."""
    return f"{job.id} {job.description} {job.kind} {job.word} {job.command} {job.last_line} @{job.agent or ''}"


def agent_text(person: AgentView) -> str:
    """Return the text of an agent that filters search."""
    return f"{person.name} {person.state} {person.doing}"
