"""Getting about: panes, rows, tabs, filters, and one step back."""

from __future__ import annotations

from textual.widgets import Input

from taskyard.tui.detail import TABS
from taskyard.tui.facts_view import FactRows
from taskyard.tui.feed import Subject
from taskyard.tui.focusing import focus
from taskyard.tui.frame import Frame, OneLine
from taskyard.tui.graph_view import GraphView
from taskyard.tui.lists import Timed
from taskyard.tui.output_view import OutputView
from taskyard.tui.reading import Reading
from taskyard.tui.row_list import RowList
from taskyard.tui.screens import DetailScreen, MainScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from textual import events

    from taskyard.view.job_views import JobView
    from taskyard.view.people import Person
    from taskyard.view.task_views import TaskView


class Moving(Reading):
    """Where the person is, and where keys lead."""

    # -- where we are ------------------------------------------------------------------------

    @property
    def place(self) -> str:
        """What has the focus, as the table of keys calls it."""
        focused = self.front.focused
        if self.front.prompt.is_open:
            return self._before_prompt
        if isinstance(focused, Timed):
            return str(focused.id)
        return self.front.detail.place if focused is not None else "tasks"

    def _seen_detail(self) -> bool:
        return isinstance(self.front, DetailScreen) or self.main.is_wide

    def subject(self) -> Subject | None:
        """What keys act on: in the detail what it shows, in a list what is selected."""
        front = self.front
        if self.place in ("output", "details", "graph"):
            if self.place == "graph" and front.detail.graph.has_focus and front.detail.graph.cursor:
                return Subject("task", front.detail.graph.cursor)
            return front.detail.subject
        return self.main.subject()

    def task_here(self) -> TaskView | None:
        """The task that keys act on."""
        subject, snapshot = self.subject(), self.main.snapshot
        if subject is None or subject.kind != "task":
            return None
        return next((task for task in snapshot.tasks if task.id == subject.id), None)

    def job_here(self) -> JobView | None:
        """The job that keys act on: in an output, the one that prints it."""
        if self.place in ("output", "details") and self.front.detail.job is not None:
            return self.front.detail.job
        subject = self.subject()
        if subject is None or subject.kind != "job":
            return None
        return next((job for job in self.main.snapshot.jobs if job.id == subject.id), None)

    def person_here(self) -> Person | None:
        """The one of the team who is selected."""
        name = self.main.people.selected if self.place == "people" else None
        return next((one for one in self.main.snapshot.people if one.name == name), None)

    # -- panes -------------------------------------------------------------------------------

    def action_focus_pane(self, number: int) -> None:
        """To the tasks, the jobs or the detail."""
        if number == 3:
            self.open_detail()
            return
        while isinstance(self.screen, DetailScreen):
            self.pop_screen()
        self.go_to(self.main.tasks if number == 1 else self.main.jobs)

    def go_to(self, rows: Timed) -> None:
        """Let keys go to a list, and mean what is selected there, from the next one on."""
        self.main.active = str(rows.id)
        self.main.share_room()  # in few columns it may have been hidden
        focus(rows)

    def open_detail(self, subject: Subject | None = None) -> None:
        """Look at something, or at what is selected: beside the lists, or over them."""
        subject = subject or self.main.subject()
        if self.main.is_wide:
            self.main.detail.open(subject)
            if not self.is_typing():
                focus(self.main.detail.body)
        elif not isinstance(self.screen, DetailScreen) and subject is not None:
            screen = DetailScreen(style=self.style, now=self.now)
            screen.detail.open(subject)
            self.push_screen(screen)
            self.call_after_refresh(self._begin_detail, screen)
        self._see()

    def _begin_detail(self, screen: DetailScreen) -> None:
        screen.show(self.feed.snapshot)
        self.after_change()

    def _see(self) -> None:
        """The end of a job counts as seen once somebody opened it."""
        subject = self.subject() or self.main.subject()
        if subject is not None and subject.kind == "job":
            job = next((job for job in self.main.snapshot.jobs if job.id == subject.id), None)
            if job is not None and job.is_over:
                self.in_thread(lambda: self.feed.see(subject.id), lambda _: None)

    def action_open(self) -> None:
        """Open what is selected; on a line that leads somewhere, go there."""
        focused = self.front.focused
        if isinstance(focused, FactRows):
            self.jump(focused.leads_to)
        elif isinstance(focused, GraphView):
            self.jump(focused.cursor)
        elif isinstance(focused, OutputView):
            self.front.detail.ask_for_answer()
        elif focused is self.main.tasks and not self.main.tasks.items and self.main.snapshot.tasks:
            self.main.is_opened = True
            self.show_newest()
        else:
            self.open_detail()
            job = self.job_here()
            if job is not None and job.needs_input:
                self.call_after_refresh(lambda: self.front.detail.ask_for_answer())

    def jump(self, id: str) -> None:
        """To a task or a job, wherever it is."""
        if not id:
            return
        kind = "task" if id.isdecimal() else "job"
        name = "tasks" if kind == "task" else "jobs"
        self.main.active = name
        self.main.list_of(name).select(id)
        self.front.detail.open(Subject(kind, id))
        focus(self.front.detail.body)

    def action_step_back(self) -> None:
        """One step back: a line to type into, a filter, the detail; never out of the view."""
        front = self.front
        if front.prompt.is_open:
            front.prompt.cancel()
            self._refocus()
        elif front.detail.answer.line.has_focus:
            focus(front.detail.body)
        elif isinstance(self.screen, DetailScreen):
            self.pop_screen()
        elif self.place in ("output", "details", "graph"):
            focus(self.main.list_of(self.main.active))
        elif self.main.filters[self.main.active]:
            self.set_filter("")
        self.after_change()

    def _refocus(self) -> None:
        front = self.front
        if isinstance(front, MainScreen) and self._before_prompt not in ("output", "details", "graph"):
            focus(front.list_of(front.active))
        else:
            focus(front.detail.body)

    _before_prompt = "tasks"

    # -- rows --------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """One row on; at the end of a list, on to the next."""
        focused = self.front.focused
        if isinstance(focused, Timed):
            if not focused.move(by):
                self._to_neighbour(focused, by)
        elif isinstance(focused, RowList | OutputView):
            focused.move(by)
        elif isinstance(focused, GraphView):
            focused.walk(0, by)
        self.after_change()

    def _to_neighbour(self, rows: Timed, by: int) -> None:
        shown = [one for one in self.main.lists if one.display and one.items]
        if rows not in shown:
            return
        at = shown.index(rows) + by
        if 0 <= at < len(shown) and "jobs" not in (rows.id, shown[at].id):
            self.go_to(shown[at])

    def action_page(self, by: int) -> None:
        """One screen on."""
        focused = self.front.focused
        if isinstance(focused, RowList | OutputView):
            focused.move_page(by)
        elif isinstance(focused, GraphView):
            focused.scroll_page_down(animate=False) if by > 0 else focused.scroll_page_up(animate=False)

    def action_edge(self, by: int) -> None:
        """To the first or the last."""
        focused = self.front.focused
        if isinstance(focused, RowList | OutputView):
            focused.move_to_edge(by)
        elif isinstance(focused, GraphView):
            focused.scroll_end(animate=False) if by > 0 else focused.scroll_home(animate=False)

    def action_sideways(self, by: int) -> None:
        """To the left or the right."""
        focused = self.front.focused
        if isinstance(focused, GraphView):
            focused.walk(by, 0)
        elif isinstance(focused, OutputView):
            focused.move_sideways(by)

    def action_turn_tab(self, by: int) -> None:
        """Another tab of the detail."""
        if self._seen_detail():
            detail = self.front.detail
            detail.turn((detail.tab + by) % len(TABS))
            self.after_change()

    # -- filters -----------------------------------------------------------------------------

    def action_search(self) -> None:
        """Filter rows, or find text in an output."""
        self._before_prompt = self.place
        if self.place == "output":
            self.front.prompt.ask("find:", self._find_first, value=self.front.detail.output.found)
        elif self.place in ("tasks", "jobs", "people"):
            name = self.main.active
            self.front.prompt.ask(
                f"filter {name}:", lambda _: self._refocus(), value=self.main.filters[name], changed=self.set_filter
            )

    def set_filter(self, text: str) -> None:
        """Show only the rows that match."""
        if self.main.filters[self.main.active] != text and self.place not in ("output", "details", "graph"):
            self.main.filters[self.main.active] = text
            self.main.show(self.feed.snapshot)

    def _find_first(self, text: str) -> None:
        self._refocus()
        self.front.detail.output.forget_find()
        self.find_in_output(text, backwards=False)

    def action_find(self, by: int) -> None:
        """The next match, or the one before."""
        output = self.front.detail.output
        if self.place == "output" and output.found:
            self.find_in_output(output.found, backwards=by < 0)

    # -- what widgets tell -------------------------------------------------------------------

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        """Another row is selected: show it in detail, if that is the list being looked at."""
        if event.rows.id == self.main.active and not self.main.detail.retains:
            self.main.follow_selection()
        self.after_change()

    def on_row_list_opened(self, event: RowList.Opened) -> None:
        """A click on what is selected."""
        focus(event.rows)
        self.action_open()

    def on_graph_view_moved(self, event: GraphView.Moved) -> None:
        """The cursor of the graph is what keys act on."""
        self.main.tasks.select(event.task)
        self.after_change()

    def on_one_line_clicked(self, event: OneLine.Clicked) -> None:
        """A click on the pill leads to the jobs, one on what is new to the end of the output."""
        pill = self.front.snapshot.pill
        if event.line is self.front.footer_line and event.x <= len(pill.in_words()) + 4 and pill.in_words():
            self.action_focus_pane(2)
        elif event.line is self.front.detail.news:
            self.front.detail.output.follow(True)

    def on_frame_turned(self, event: Frame.Turned) -> None:
        """A tab was clicked."""
        self.front.detail.turn(event.tab)
        self.after_change()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Something else has the focus: frames and footer say so."""
        focused = event.widget
        if isinstance(focused, Timed) and focused.id is not None:
            self.main.active = focused.id
            self.main.follow_selection()
        self.main.share_room()
        self.front.detail.name_it()
        self.after_change()

    def is_typing(self) -> bool:
        """Whether keys go into a line."""
        return isinstance(self.focused, Input)
