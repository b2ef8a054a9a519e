"""The detail pane: one task or job with its Output, Details and Graph tabs.

    ┌ 3 b7k2 npm test ── Output │ Details │ Graph ┐
    │ follow ● wrap ○ time ○         1 204 lines  │

`Prompt` is a text input with a label, shown in place. `DetailRows` are the facts of the Details tab; rows with a link
can be followed. `GraphView` has a cursor that moves along the edges.
"""

from __future__ import annotations

import textwrap

from rich.segment import Segment
from textual.containers import Horizontal, Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

from taskyard.core.text import cut, size, width
from taskyard.ui.details import DetailData, DetailRow, job_detail_rows, task_detail_rows
from taskyard.ui.graph import Drawing, adjacent_task, draw_graph
from taskyard.ui.tui.feed import DetailTarget
from taskyard.ui.tui.frame import Frame, OneLine
from taskyard.ui.tui.keys import Piece, blank, folded, strip_of, style_of
from taskyard.ui.tui.output_view import OutputView
from taskyard.ui.tui.rows import RowList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

    from taskyard.core.text import Style
    from taskyard.ui.graph import Node
    from taskyard.ui.jobs import JobView
    from taskyard.ui.snapshot import Snapshot
    from taskyard.ui.tasks import TaskView
    from taskyard.ui.tui.output_view import OutputUpdate


def focus(widget: Widget) -> None:
    """Focus a widget at once: Textual's own `focus` is deferred, and fast typing would go elsewhere."""
    if widget.is_attached:
        widget.screen.set_focus(widget)


#: Most columns of a prompt's label.
_LONGEST = 40


class Prompt(Horizontal):
    """A text input with a label; hidden until `ask`."""

    DEFAULT_CSS = """
    Prompt { height: 1; display: none; }
    Prompt Input { height: 1; border: none; padding: 0; width: 1fr; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._label = OneLine()
        self.line = Input(compact=True)
        self.line.cursor_blink = False  # nothing is drawn while nothing happens
        self._then: Callable[[str], None] | None = None
        self._changed: Callable[[str], None] | None = None
        self._stays = False

    def compose(self) -> ComposeResult:
        """Yield the label and the input."""
        yield self._label
        yield self.line

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return bool(self.display)

    def ask(
        self,
        what: str,
        then: Callable[[str], None],
        *,
        value: str = "",
        changed: Callable[[str], None] | None = None,
        stays: bool = False,
        at_once: bool = True,
    ) -> None:
        """Show the prompt; `then` gets the line.

        Args:
            what: The label.
            then: Gets the typed text on Enter.
            value: The initial text.
            changed: Gets the text at every key.
            stays: Stay open after an answer.
            at_once: Focus the input now.
        """
        label = f" {cut(what, _LONGEST)} "
        self._label.styles.width = width(label)
        self._label.say([Piece(label, "warn bold" if stays else "accent bold")])
        self._then, self._changed, self._stays = then, changed, stays
        if not self.is_open or not stays:
            self.line.value = value
            self.line.cursor_position = len(value)
        self.display = True
        if at_once:
            focus(self.line)

    def cancel(self) -> None:
        """Close the prompt and reset what `changed` did, such as a filter."""
        if self._changed is not None:
            self._changed("")
        self.dismiss()

    def dismiss(self) -> None:
        """Hide the prompt."""
        self.display = False
        self._then = self._changed = None
        self.line.value = ""

    def on_input_changed(self, event: Input.Changed) -> None:
        """Pass the text to `changed` at every key."""
        event.stop()
        if self._changed is not None and self.is_open:
            self._changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass the text to `then` on Enter."""
        event.stop()
        then = self._then
        if self._stays:
            self.line.value = ""
        else:
            self.dismiss()
        if then is not None:
            then(event.value)


#: Columns of a row's name.
_NAME_WIDTH = 11


class DetailRows(RowList[tuple[int, DetailRow]]):
    """The rows of the Details tab; the selected one may link to a task or a job."""

    def __init__(self, *, id: str, style: Style) -> None:
        super().__init__(id=id, ascii=style.ascii, empty="Nothing is selected. Choose a task or a job.")
        self._style = style

    def tell(self, facts: Sequence[DetailRow]) -> None:
        """Show these rows."""
        self.show(list(enumerate(facts)))

    @property
    def link_id(self) -> str:
        """The id the selected row links to; "" if none."""
        return self.current[1].link_id if self.current is not None else ""

    def key_of(self, item: tuple[int, DetailRow]) -> str:
        """Return the index of the row as its id."""
        return str(item[0])

    def height_of(self, item: tuple[int, DetailRow]) -> int:
        """Return the number of lines its text needs."""
        return len(self._lines(item[1], self._columns()))

    def _lines(self, fact: DetailRow, columns: int) -> list[str]:
        value = fact.value.replace("─▶", "->").replace(" · ", ", ") if self._style.ascii else fact.value
        lead = 0 if not fact.name and not fact.link_id else _NAME_WIDTH
        room = max(columns - lead - (2 if fact.glyph else 0), 8)
        lines = textwrap.wrap(value, room, drop_whitespace=False, replace_whitespace=False) or [""]
        return [part for line in lines for part in folded(line, room)]  # textwrap counts characters, not cells

    def draw(self, item: tuple[int, DetailRow], columns: int) -> list[list[Piece]]:
        """Draw a name, a glyph and the text."""
        fact = item[1]
        lead = "" if not fact.name and not fact.link_id else f"{fact.name:<{_NAME_WIDTH}}"
        sign = f"{fact.ascii if self._style.ascii else fact.glyph} " if fact.glyph else ""
        drawn: list[list[Piece]] = []
        for number, line in enumerate(self._lines(fact, columns)):
            first = number == 0
            drawn.append(
                [
                    Piece(lead if first else " " * len(lead), "muted"),
                    Piece(sign if first else " " * len(sign), fact.token),
                    Piece(line, f"{fact.token} underline" if fact.link_id else fact.token),
                ]
            )
        return drawn

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the text for the new width."""
        items, self.items = self.items, ()
        self._ids, self._tops = [], [0]
        super().on_resize(event)
        self.show(items)


class GraphView(ScrollView, can_focus=True, inherit_bindings=False):
    """The dependency graph of a list, with a cursor."""

    DEFAULT_CSS = """
    GraphView {
        overflow-x: auto; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; height: 1fr;
    }
    """

    class Moved(Message):
        """The cursor is on another task."""

        def __init__(self, task: str) -> None:
            super().__init__()
            self.task = task

    def __init__(self, *, id: str, style: Style) -> None:
        super().__init__(id=id)
        self._style = style
        self._tasks: Sequence[TaskView] = ()
        self.drawing = Drawing()
        self.cursor = ""

    def tell(self, tasks: Sequence[TaskView]) -> None:
        """Draw these tasks, unless nothing changed."""
        if tasks == self._tasks:
            return
        self._tasks, before = tasks, self.drawing
        self.drawing = draw_graph(tasks, self._style)
        if self.drawing == before:
            return
        wide = max((width(line) for line in self.drawing.lines), default=0)
        self.virtual_size = Size(wide + 2, len(self.drawing.lines) + bool(self.drawing.left_out))
        self.refresh()

    def point(self, task_id: str) -> None:
        """Put the cursor on a task."""
        if task_id in self.drawing.nodes and task_id != self.cursor:
            self.cursor = task_id
            self._into_view()
            self.refresh()

    def walk(self, across: int, down: int) -> None:
        """Move the cursor along an edge, or up and down in a column."""
        to = adjacent_task(self.drawing, self.cursor, across, down)
        if to and to != self.cursor:
            self.point(to)
            self.post_message(self.Moved(to))

    def _into_view(self) -> None:
        node = self.drawing.nodes[self.cursor]
        self.scroll_to_region(Region(node.column, max(node.row - 1, 0), node.width + 1, 2), animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked task."""
        x, y = event.x + self.scroll_offset.x, event.y + self.scroll_offset.y
        for node in self.drawing.nodes.values():
            if node.row == y and node.column <= x < node.column + node.width:
                self.point(node.id)
                self.post_message(self.Moved(node.id))

    def render_line(self, y: int) -> Strip:
        """Render one visible line."""
        room, row = self.scrollable_content_region.width, y + self.scroll_offset.y
        if not self.drawing.lines:
            return strip_of([Piece(" There are no tasks to draw." if y == 0 else "", "muted")], room)
        if row == len(self.drawing.lines) and self.drawing.left_out:
            return strip_of([Piece(f" {self.drawing.left_out:,} more tasks are not drawn.", "muted")], room)
        if row >= len(self.drawing.lines):
            return blank(room)
        left = self.scroll_offset.x
        return self._line(row).crop(left, left + room).adjust_cell_length(room, style_of(""))

    def _line(self, row: int) -> Strip:
        """Render a line, its tasks in their colours."""
        text = self.drawing.lines[row]
        nodes = sorted((node for node in self.drawing.nodes.values() if node.row == row), key=lambda node: node.column)
        whole = Strip([Segment(text, style_of(""))])
        cuts = [place for node in nodes for place in (node.column, node.column + node.width)]
        parts = whole.divide([*cuts, max(whole.cell_length, *cuts, 1)])
        looks = [look for node in nodes for look in ("muted", self._look(node))] + ["muted"]
        return Strip.join([part.apply_style(style_of(look)) for part, look in zip(parts, looks)])

    def _look(self, node: Node) -> str:
        look = node.token  # "default" is no colour
        if node.id != self.cursor:
            return look
        return f"{look} bold reverse" if self.has_focus else f"{look} bold underline"


TABS = ("Output", "Details", "Graph")

#: Lines shown before a search match.
CONTEXT = 200


class DetailPane(Vertical):
    """Output, Details and Graph of what is selected."""

    class ReadRequested(Message):
        """Another output (or none) must be read, or details of a subject that are not in a snapshot."""

        def __init__(self, pane: DetailPane, *, output: str | None = None, subject: DetailTarget | None = None) -> None:
            super().__init__()
            self.pane, self.output, self.subject = pane, output, subject

    class Answered(Message):
        """Text was typed for a job."""

        def __init__(self, job: str, text: str) -> None:
            super().__init__()
            self.job, self.text = job, text

    def __init__(self, *, id: str, style: Style, now: Callable[[], int]) -> None:
        super().__init__(id=id)
        self.subject: DetailTarget | None = None
        self.tab = 0
        self.job: JobView | None = None  #: the job whose output is shown
        self._style, self._now = style, now
        self._snapshot: Snapshot | None = None
        self._known = DetailData()
        self._detail_item: object = None
        self._tabs = {"job": 0, "task": 1}
        self._output_of = ""
        self.frame = Frame("top", style=style)
        self.strip = OneLine(classes="framed")
        self.output = OutputView(id="output")
        self.facts = DetailRows(id="facts", style=style)
        self.graph = GraphView(id="graph", style=style)
        self.news = OneLine(id="news", classes="framed")
        self.answer = Prompt(id="answer")
        self._bottom = Frame("bottom", style=style)

    def compose(self) -> ComposeResult:
        """Yield the widgets, from top to bottom."""
        for widget in (self.output, self.facts, self.graph, self.answer):
            widget.add_class("framed")
        yield self.frame
        yield self.strip
        yield self.output
        yield self.facts
        yield self.graph
        yield self.news
        yield self.answer
        yield self._bottom

    def on_mount(self) -> None:
        """Show the state before anything is selected."""
        self.facts.display = self.graph.display = self.news.display = False
        self._turn()

    # -- contents ----------------------------------------------------------------------------

    @property
    def body(self) -> Widget:
        """The widget of the visible tab."""
        return (self.output, self.facts, self.graph)[self.tab]

    @property
    def place(self) -> str:
        """The name of the visible tab in the table of keys."""
        return ("output", "details", "graph")[self.tab]

    def open(self, subject: DetailTarget | None) -> None:
        """Show another task or job."""
        if subject == self.subject:
            return
        self.subject, self._known, self._detail_item = subject, DetailData(), None
        if subject is not None and self.tab != 2:
            self.tab = self._tabs[subject.kind]
        self._turn()
        if self._snapshot is not None:
            self.show(self._snapshot)

    def turn(self, tab: int) -> None:
        """Turn to a tab."""
        had_focus = self.body.has_focus
        self.tab = tab % len(TABS)
        if self.subject is not None and self.tab != 2:
            self._tabs[self.subject.kind] = self.tab
        self._turn()
        if had_focus:
            focus(self.body)

    def _turn(self) -> None:
        for number, widget in enumerate((self.output, self.facts, self.graph)):
            widget.display = number == self.tab
        self.strip.display = self.tab == 0
        self._update_graph()
        self.update_output_status()
        self.update_title()

    def show(self, snapshot: Snapshot) -> None:
        """Show a new snapshot."""
        self._snapshot = snapshot
        self._update_graph()
        self._choose_output(snapshot)
        self._update_details(snapshot)
        self._ask()
        self.update_title()

    def _update_graph(self) -> None:
        """Update the graph, only if it is visible."""
        if self.tab == 2 and self._snapshot is not None:
            self.graph.tell(self._snapshot.tasks)
            if self.subject is not None and self.subject.kind == "task":
                self.graph.point(self.subject.id)

    def _choose_output(self, snapshot: Snapshot) -> None:
        jobs = self._jobs(snapshot)
        self.job = jobs[0] if jobs else None
        shown = self.job.id if self.job is not None else ""
        if shown != self._output_of or (not shown and not self.output.note):
            self._output_of = shown
            self.output.clear("" if shown else self._no_output())
            self.post_message(self.ReadRequested(self, output=shown))

    def _no_output(self) -> str:
        if self.subject is None:
            return "Nothing is selected."
        return "No job was started for this task." if self.subject.kind == "task" else "This job is not listed now."

    def _jobs(self, snapshot: Snapshot) -> list[JobView]:
        """Return the jobs of what is shown, the one whose output is shown first."""
        if self.subject is None:
            return []
        if self.subject.kind == "job":
            return [job for job in snapshot.jobs if job.id == self.subject.id] or self._retained()
        name = f"{snapshot.list}/{self.subject.id}"
        return [job for job in snapshot.jobs if job.task == name]

    def _retained(self) -> list[JobView]:
        """Return the open, ended job that left the list meanwhile: dismissed elsewhere, or beyond the limit."""
        job, subject = self.job, self.subject
        is_open = job is not None and subject is not None and job.id == subject.id and job.is_over and self.is_read
        return [job] if job is not None and is_open else []

    @property
    def is_read(self) -> bool:
        """Whether the pane has the focus."""
        return self.body.has_focus or self.answer.line.has_focus

    @property
    def retains(self) -> bool:
        """Whether it shows a job that is no longer listed, because the user is reading it."""
        listed = () if self._snapshot is None else self._snapshot.jobs
        return any(all(one.id != job.id for one in listed) for job in self._retained())

    def shown_task(self) -> TaskView | None:
        """Return the task that is shown."""
        if self._snapshot is None or self.subject is None or self.subject.kind != "task":
            return None
        return next((task for task in self._snapshot.tasks if task.id == self.subject.id), None)

    # -- details -----------------------------------------------------------------------------

    def _update_details(self, snapshot: Snapshot) -> None:
        item = self.job if self.subject is not None and self.subject.kind == "job" else self.shown_task()
        if item is None:
            self.facts.tell(())
            return
        if item != self._detail_item:
            self._detail_item = item
            self.post_message(self.ReadRequested(self, subject=self.subject))
        self.facts.tell(self._facts(snapshot))

    def _facts(self, snapshot: Snapshot) -> list[DetailRow]:
        if self.subject is not None and self.subject.kind == "job":
            return job_detail_rows(self.job, self._known, now=self._now()) if self.job is not None else []
        task = self.shown_task()
        if task is None:
            return []
        tasks = {one.id: one for one in snapshot.tasks}
        return task_detail_rows(task, self._known, tasks=tasks, jobs=self._jobs(snapshot), now=self._now())

    def set_detail(self, subject: DetailTarget, known: DetailData) -> None:
        """Show details that were read for a subject."""
        if subject == self.subject and known != self._known and self._snapshot is not None:
            self._known = known
            self.facts.tell(self._facts(self._snapshot))

    def tick(self) -> None:
        """Update displayed times."""
        if self.tab == 1 and self._snapshot is not None:
            self.facts.tell(self._facts(self._snapshot))

    # -- output ------------------------------------------------------------------------------

    def hear(self, news: OutputUpdate) -> None:
        """Show what was read of an output."""
        if news.job != self._output_of:
            return
        if news.error:
            self.output.clear(news.error)
        elif news.is_first and not self.output.follows:  # the user scrolled elsewhere before it arrived
            self.output.add(news.window, at=self._now(), skipped=True)
        elif news.is_first:
            nothing = "It printed nothing." if news.is_over else "It has printed nothing so far."
            self.output.begin(news.window, note=nothing)
        else:
            self.output.add(news.window, at=self._now(), skipped=news.skipped)

    def on_output_view_changed(self) -> None:
        """Update the status lines when the output view changed."""
        self.update_output_status()

    def update_output_status(self) -> None:
        """Update the line above the output, and the one below it."""
        view, room = self.output, max(self.strip.size.width, 20)
        on, off = ("*", "o") if self._style.ascii else ("●", "○")
        pieces: list[Piece] = []
        for name, is_on in (("follow", view.follows), ("wrap", view.wraps), ("time", view.shows_times)):
            pieces += [Piece(f" {name} ", "muted"), Piece(on if is_on else off, "accent" if is_on else "muted")]
        taken = sum(width(piece.text) for piece in pieces)
        count = f"{len(view.kept.lines):,}".replace(",", " ") + (" line" if len(view.kept.lines) == 1 else " lines")
        right = count if view.kept.start == 0 else f"{count} of {size(view.kept.size)}"
        if view.found:
            right = f"/{view.found}  {right}"
        self.strip.say([*pieces, Piece(" " * max(room - taken - width(right) - 1, 1)), Piece(right, "muted")])
        new, more = view.kept.unseen, "+" if view.kept.is_more else ""
        shown = f"{new:,}".replace(",", " ")
        text = f"{'v' if self._style.ascii else '↓'} {shown}{more} new {'line' if new == 1 and not more else 'lines'}  "
        self.news.display = bool(self.tab == 0 and new and not view.follows)
        self.news.say([Piece(" " * max(room - width(text), 0)), Piece(text, "accent bold")])

    # -- answering ---------------------------------------------------------------------------

    def _ask(self) -> None:
        """Show the answer prompt if the job waits for input, else hide it."""
        job = self.job
        if job is not None and job.needs_input and not job.is_over:
            if not self.answer.is_open:
                self.ask_for_answer(at_once=False)
        elif self.answer.is_open and (job is None or not job.takes_input or not self.answer.line.has_focus):
            self.answer.dismiss()

    def ask_for_answer(self, *, at_once: bool = True) -> bool:
        """Open the answer prompt; return False if the job takes no input."""
        job = self.job
        if job is None or not (job.takes_input or job.needs_input):
            return False
        question = job.question.strip().rpartition("\n")[2] or job.last_line or "answer"
        self.answer.ask(
            f"! {question}" if job.needs_input else f"to {job.id}:", self._answered, stays=True, at_once=at_once
        )
        return True

    def _answered(self, text: str) -> None:
        if self.job is not None:
            self.post_message(self.Answered(self.job.id, text))
            focus(self.body)

    # -- its frame ---------------------------------------------------------------------------

    def update_title(self) -> None:
        """Update the title and the tabs."""
        title = "3 Detail"
        if self.subject is not None and self.subject.kind == "job" and self.job is not None:
            title = f"3 {self.job.id[:4]} {self.job.description}"
        elif (task := self.shown_task()) is not None:
            title = f"3 {task.id} {task.subject}"
        self.frame.update_title(title, lit=self.is_read, tabs=TABS, tab=self.tab)
