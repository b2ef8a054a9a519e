"""
One task or job in detail: its output, everything about it, and where it stands in the graph.

    ┌ 3 b7k2 npm test ── Output │ Details │ Graph ┐
    │ follow ● wrap ○ time ○         1 204 lines  │
"""

from __future__ import annotations

from textual.containers import Vertical
from textual.message import Message

from taskyard.tui.facts_view import FactRows
from taskyard.tui.feed import Subject
from taskyard.tui.focusing import focus
from taskyard.tui.frame import Frame, OneLine
from taskyard.tui.graph_view import GraphView
from taskyard.tui.output_view import OutputView
from taskyard.tui.paint import Piece
from taskyard.tui.prompt import Prompt
from taskyard.view.details import Known, job_facts, task_facts
from taskyard.view.text import size, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.widget import Widget

    from taskyard.tui.tail import News
    from taskyard.view.details import Fact
    from taskyard.view.glyphs import Style
    from taskyard.view.job_views import JobView
    from taskyard.view.snapshot import Snapshot
    from taskyard.view.task_views import TaskView

TABS = ("Output", "Details", "Graph")

#: Lines a find shows before what it found.
CONTEXT = 200


class DetailPane(Vertical):
    """Output, Details, Graph of what is selected."""

    class Reads(Message):
        """Another output is to be read, or none; or what a snapshot does not say of a subject."""

        def __init__(self, pane: DetailPane, *, output: str | None = None, subject: Subject | None = None) -> None:
            super().__init__()
            self.pane, self.output, self.subject = pane, output, subject

    class Answered(Message):
        """Something was typed for a job."""

        def __init__(self, job: str, text: str) -> None:
            super().__init__()
            self.job, self.text = job, text

    def __init__(self, *, id: str, style: Style, now: Callable[[], int]) -> None:
        super().__init__(id=id)
        self.subject: Subject | None = None
        self.tab = 0
        self.job: JobView | None = None  #: whose output is shown
        self._style, self._now = style, now
        self._snapshot: Snapshot | None = None
        self._known = Known()
        self._known_of: object = None
        self._tabs = {"job": 0, "task": 1}
        self._output_of = ""
        self.frame = Frame("top", style=style)
        self.strip = OneLine(classes="framed")
        self.output = OutputView(id="output")
        self.facts = FactRows(id="facts", style=style)
        self.graph = GraphView(id="graph", style=style)
        self.news = OneLine(id="news", classes="framed")
        self.answer = Prompt(id="answer")
        self._bottom = Frame("bottom", style=style)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
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
        """Before anything is selected."""
        self.facts.display = self.graph.display = self.news.display = False
        self._turn()

    # -- what is shown -----------------------------------------------------------------------

    @property
    def body(self) -> Widget:
        """The tab that is seen."""
        return (self.output, self.facts, self.graph)[self.tab]

    @property
    def place(self) -> str:
        """Its name in the table of keys."""
        return ("output", "details", "graph")[self.tab]

    def open(self, subject: Subject | None) -> None:
        """Show something else."""
        if subject == self.subject:
            return
        self.subject, self._known, self._known_of = subject, Known(), None
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
        self._tell_graph()
        self.tell_output()
        self.name_it()

    def show(self, snapshot: Snapshot) -> None:
        """A new snapshot."""
        self._snapshot = snapshot
        self._tell_graph()
        self._choose_output(snapshot)
        self._tell_facts(snapshot)
        self._ask()
        self.name_it()

    def _tell_graph(self) -> None:
        """Drawn only where it is seen."""
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
            self.post_message(self.Reads(self, output=shown))

    def _no_output(self) -> str:
        if self.subject is None:
            return "Nothing is selected."
        return "No job was started for this task." if self.subject.kind == "task" else "This job is not listed now."

    def _jobs(self, snapshot: Snapshot) -> list[JobView]:
        """The jobs of what is shown, the one whose output is meant first."""
        if self.subject is None:
            return []
        if self.subject.kind == "job":
            return [job for job in snapshot.jobs if job.id == self.subject.id] or self._retained()
        name = f"{snapshot.list}/{self.subject.id}"
        return [job for job in snapshot.jobs if job.task == name]

    def _retained(self) -> list[JobView]:
        """The ended job that is open and left the list meanwhile: dismissed elsewhere, or one of too many."""
        job, subject = self.job, self.subject
        is_open = job is not None and subject is not None and job.id == subject.id and job.is_over and self.is_read
        return [job] if job is not None and is_open else []

    @property
    def is_read(self) -> bool:
        """Whether keys go to what is shown, not to a list beside it."""
        return self.body.has_focus or self.answer.line.has_focus

    @property
    def retains(self) -> bool:
        """Whether it shows a job that is in no list any more, because somebody reads it."""
        listed = () if self._snapshot is None else self._snapshot.jobs
        return any(all(one.id != job.id for one in listed) for job in self._retained())

    def shown_task(self) -> TaskView | None:
        """The task that is shown."""
        if self._snapshot is None or self.subject is None or self.subject.kind != "task":
            return None
        return next((task for task in self._snapshot.tasks if task.id == self.subject.id), None)

    # -- details -----------------------------------------------------------------------------

    def _tell_facts(self, snapshot: Snapshot) -> None:
        item = self.job if self.subject is not None and self.subject.kind == "job" else self.shown_task()
        if item is None:
            self.facts.tell(())
            return
        if item != self._known_of:
            self._known_of = item
            self.post_message(self.Reads(self, subject=self.subject))
        self.facts.tell(self._facts(snapshot))

    def _facts(self, snapshot: Snapshot) -> list[Fact]:
        if self.subject is not None and self.subject.kind == "job":
            return job_facts(self.job, self._known, now=self._now()) if self.job is not None else []
        task = self.shown_task()
        if task is None:
            return []
        tasks = {one.id: one for one in snapshot.tasks}
        return task_facts(task, self._known, tasks=tasks, jobs=self._jobs(snapshot), now=self._now())

    def learn(self, subject: Subject, known: Known) -> None:
        """What was read of a subject."""
        if subject == self.subject and known != self._known and self._snapshot is not None:
            self._known = known
            self.facts.tell(self._facts(self._snapshot))

    def tick(self) -> None:
        """Time has passed."""
        if self.tab == 1 and self._snapshot is not None:
            self.facts.tell(self._facts(self._snapshot))

    # -- output ------------------------------------------------------------------------------

    def hear(self, news: News) -> None:
        """What was read of an output."""
        if news.job != self._output_of:
            return
        if news.error:
            self.output.clear(news.error)
        elif news.is_first and not self.output.follows:  # the person went elsewhere before it came
            self.output.add(news.window, at=self._now(), skipped=True)
        elif news.is_first:
            nothing = "It printed nothing." if news.is_over else "It has printed nothing so far."
            self.output.begin(news.window, note=nothing)
        else:
            self.output.add(news.window, at=self._now(), skipped=news.skipped)

    def on_output_view_changed(self) -> None:
        """Lines came, or it follows no longer."""
        self.tell_output()

    def tell_output(self) -> None:
        """The line above the output, and the one below it."""
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
        """A line for an answer, where a job waits for one."""
        job = self.job
        if job is not None and job.needs_input and not job.is_over:
            if not self.answer.is_open:
                self.ask_for_answer(at_once=False)
        elif self.answer.is_open and (job is None or not job.takes_input or not self.answer.line.has_focus):
            self.answer.dismiss()

    def ask_for_answer(self, *, at_once: bool = True) -> bool:
        """Let the person type into the job; False if it takes no input."""
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

    def name_it(self) -> None:
        """The title and the tabs."""
        title = "3 Detail"
        if self.subject is not None and self.subject.kind == "job" and self.job is not None:
            title = f"3 {self.job.id[:4]} {self.job.description}"
        elif (task := self.shown_task()) is not None:
            title = f"3 {task.id} {task.subject}"
        self.frame.name_it(title, lit=self.is_read, tabs=TABS, tab=self.tab)
