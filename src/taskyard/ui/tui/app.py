"""The Textual app of `taskyard tui`: live updates, navigation, actions and exit.

Four layers, each a subclass of the previous one: `SnapshotApp` draws new snapshots and growing outputs and runs slow
work in threads; `NavigationApp` moves between panes, rows, tabs and filters; `ActionApp` acts on tasks, jobs and
agents, and prompts for missing input in place; `YardApp` adds key bindings, command palette, signals and exit.
`ForegroundJob` is the one job in the foreground of the view, and the key that moves it to the background.
Over 1,000 lines because all key bindings of one screen act on the same state.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import replace
from functools import partial
from typing import TypeVar

from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.driver import Driver
from textual.message import Message
from textual.theme import BUILTIN_THEMES
from textual.widgets import Input

from taskyard.config import Settings
from taskyard.core.system import boottime, now_ms
from taskyard.core.text import Style, escape_control
from taskyard.core.values import PERSON
from taskyard.errors import TaskyardError
from taskyard.jobs.environment import is_background_disabled
from taskyard.ui.jobs import Key, background_key
from taskyard.ui.live import LiveFeed
from taskyard.ui.output import OutputReader
from taskyard.ui.tui import actions
from taskyard.ui.tui import keys as tui_keys
from taskyard.ui.tui.detail import CONTEXT, TABS, DetailPane, DetailRows, GraphView, focus
from taskyard.ui.tui.feed import DetailTarget, load_detail
from taskyard.ui.tui.frame import Frame, OneLine, footer
from taskyard.ui.tui.keys import KEYS, HelpScreen, format_keys
from taskyard.ui.tui.output_view import OutputTail, OutputUpdate, OutputView, read_in_pager
from taskyard.ui.tui.rows import RowList, TimedRows, next_age_change
from taskyard.ui.tui.screens import WIDE, DetailScreen, MainScreen, YardScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from textual import events
    from textual.screen import Screen
    from textual.timer import Timer

    from taskyard.jobs.model import Job
    from taskyard.ui.jobs import JobView
    from taskyard.ui.output import OutputWindow
    from taskyard.ui.snapshot import AgentView, Snapshot
    from taskyard.ui.tasks import TaskView
    from taskyard.ui.tui.feed import Feed
    from taskyard.yard import Yard


Result = TypeVar("Result")

#: Seconds between two redraws for new snapshots, and between two steps of the spinner.
_DRAW_EVERY = 0.1
SPIN_EVERY = 0.25

#: Seconds a selection must rest before its output is read, so that scrolling through a list reads none.
_SELECTION_DELAY = 0.05

#: Lines read at once when scrolling back.
_MORE_LINES = 1_000


class NewSnapshot(Message):
    """A newer snapshot is available; pending messages of this kind are merged into one."""

    def can_replace(self, message: Message) -> bool:
        """Replace older messages of this kind."""
        return isinstance(message, NewSnapshot)


class OutputReceived(Message):
    """A part of an output was read."""

    def __init__(self, pane: DetailPane, news: OutputUpdate) -> None:
        super().__init__()
        self.pane, self.news = pane, news


class SnapshotApp(App[str]):
    """The base app: draws snapshots and outputs as they change."""

    def __init__(self, feed: Feed, *, style: Style | None = None, now: Callable[[], int] = now_ms, task_rows: int = 10):
        super().__init__(ansi_color=True)  # set here because it decides how NO_COLOR is respected
        self.feed = feed
        self.style = style if style is not None else Style(colour=True)
        self.now = now
        self.main = MainScreen(style=self.style, now=now, task_rows=task_rows)
        self.drawings = 0  #: number of snapshots drawn
        self._tails: dict[DetailPane, OutputTail] = {}
        self._resting: dict[DetailPane, Timer] = {}
        self._told: tuple[str, ...] = ()
        self._drawn_at = -1.0
        self._later: Timer | None = None
        self._ticker: Timer | None = None
        self._silence: Callable[[], None] | None = None

    # -- snapshots ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Subscribe to snapshots and show the current one."""
        self._silence = self.feed.listen(self._heard)
        self.show_newest()

    def _heard(self, _: Snapshot) -> None:
        self.post_message(NewSnapshot())

    def end(self) -> None:
        """Unsubscribe and close all output tails."""
        if self._silence is not None:
            self._silence()
        for tail in self._tails.values():
            tail.close()

    def on_new_snapshot(self) -> None:
        """Redraw, at most ten times a second."""
        rest = self._drawn_at + _DRAW_EVERY - boottime()
        if rest <= 0:
            self.show_newest()
        elif self._later is None:
            self._later = self.set_timer(rest, self.show_newest)

    def show_newest(self) -> None:
        """Draw the newest snapshot; only what changed is redrawn."""
        self._later, self._drawn_at = None, boottime()
        self.drawings += 1
        snapshot = self.feed.snapshot
        for problem in snapshot.problems:
            if problem not in self._told:
                self.notify(escape_control(problem), severity="warning", markup=False, timeout=8)
        self._told = snapshot.problems
        for screen in self.yard_screens():
            screen.show(snapshot)
        self.after_change()

    def after_change(self) -> None:
        """Update the footer and schedule the next change by time alone."""
        if self.screen_stack:  # else the app is closing
            self.update_footer()
        self.schedule_tick()

    def update_footer(self) -> None:
        """Update the footer; implemented by the subclass that has the keys."""
        raise NotImplementedError

    def yard_screens(self) -> Iterator[YardScreen]:
        """Yield the yard screens of the stack, from the bottom."""
        for screen in self.screen_stack:
            if isinstance(screen, YardScreen):
                yield screen

    @property
    def front(self) -> YardScreen:
        """The topmost yard screen, ignoring modal screens over it."""
        return next(reversed(list(self.yard_screens())), self.main)

    # -- time --------------------------------------------------------------------------------

    def schedule_tick(self) -> None:
        """Set the one timer: for the spinner, or for the next moment at which a displayed time changes."""
        if self._ticker is not None:
            self._ticker.stop()
        if not self.screen_stack:
            return
        if isinstance(self.screen, MainScreen) and self.screen.has_spinner:
            self._ticker = self.set_timer(SPIN_EVERY, self._spin)
            return
        now = self.now()
        waits = [60_000 - now % 60_000, next_age_change(self.main.moments(), now) or 60_000]
        if isinstance(self.screen, DetailScreen):
            waits.append(1_000 if self.screen.detail.tab == 1 else 60_000)
        self._ticker = self.set_timer(min(waits) / 1000 + 0.005, self._tick)

    def _spin(self) -> None:
        self.main.advance_spinner()
        if self.main.turns % round(1 / SPIN_EVERY) == 0:
            self._tick()
        else:
            self.schedule_tick()

    def _tick(self) -> None:
        for screen in self.yard_screens():
            screen.tick()
        self.after_change()

    # -- other threads -----------------------------------------------------------------------

    def in_thread(self, work: Callable[[], Result], then: Callable[[Result], None], *, group: str = "") -> None:
        """Run `work` in a thread and pass its result to `then` in the app's thread; a group runs one at a time."""

        def run() -> None:
            try:
                found = work()
            except TaskyardError as error:
                self._from_thread(self.show_error, str(error))
            except OSError as error:
                self._from_thread(self.show_error, error.strerror or str(error))
            else:
                self._from_thread(then, found)

        self.run_worker(run, thread=True, group=group or "acts", exclusive=bool(group), exit_on_error=False)

    def _from_thread(self, do: Callable[[Result], None], what: Result) -> None:
        with contextlib.suppress(RuntimeError):  # the view is closed: the result is discarded
            self.call_from_thread(do, what)

    def say(self, text: str) -> None:
        """Show a success message."""
        self.notify(escape_control(text, lines=True), markup=False, timeout=4)

    def show_error(self, text: str) -> None:
        """Show an error message, in the wording of the command line."""
        self.notify(f"Error: {escape_control(text, lines=True)}", severity="error", markup=False, timeout=8)

    # -- outputs -----------------------------------------------------------------------------

    def on_detail_pane_read_requested(self, event: DetailPane.ReadRequested) -> None:
        """Load the details or the output that a pane requested."""
        pane = event.pane
        if event.subject is not None:
            subject: DetailTarget = event.subject
            self.in_thread(
                lambda: load_detail(self.feed, subject, self.now()),
                lambda known: pane.set_detail(subject, known),
                group=f"known {pane.screen.id}",
            )
        if event.output is not None:
            if (tail := self._tails.pop(pane, None)) is not None:
                tail.close()
            if (resting := self._resting.pop(pane, None)) is not None:
                resting.stop()
            if event.output:
                job = event.output
                self._resting[pane] = self.set_timer(_SELECTION_DELAY, lambda: self._read_on(pane, job))

    def _read_on(self, pane: DetailPane, job: str) -> None:
        if (tail := self._tails.pop(pane, None)) is not None:
            tail.close()
        if pane.is_attached:
            self._tails[pane] = OutputTail(
                self.feed.yard.home, job, lambda news: self.post_message(OutputReceived(pane, news))
            )

    def on_output_received(self, event: OutputReceived) -> None:
        """Pass lines that were read to their pane."""
        if event.pane.is_attached:
            event.pane.hear(event.news)

    def on_output_view_wanted(self, event: OutputView.Wanted) -> None:
        """Read lines that are not in the buffer."""
        pane = self.front.detail
        view, job = pane.output, pane.job
        if job is None:
            return
        if event.what == "tail":
            self._read_on(pane, job.id)
            return
        reader, kept = OutputReader(self.feed.yard.home, job.id), view.kept
        wishes: dict[str, tuple[Callable[[], OutputWindow], Callable[[OutputWindow], None]]] = {
            "before": (lambda: reader.before(kept.start, _MORE_LINES), view.prepend_window),
            "after": (lambda: reader.after(kept.end), view.append_window),
            "head": (lambda: reader.after(0), lambda window: view.begin(window, top=window.start)),
        }
        work, then = wishes[event.what]
        self.in_thread(work, lambda window: then(window) if self._is_shown(pane, job.id) else None, group="output")

    @staticmethod
    def _is_shown(pane: DetailPane, job_id: str) -> bool:
        """Return whether the result is still wanted."""
        return pane.is_attached and pane.job is not None and pane.job.id == job_id

    def find_in_output(self, text: str, backwards: bool) -> None:
        """Show the next line that contains `text`, searching the whole file and not only the buffer."""
        pane = self.front.detail
        view, job = pane.output, pane.job
        if job is None or not text:
            return
        reader = OutputReader(self.feed.yard.home, job.id)
        is_first = view.found_at is None or view.found != text
        start = self._start_of_search(view, backwards, is_first=is_first)
        view.found = text

        def look() -> tuple[int, OutputWindow] | None:
            found = reader.find(text, start, backwards=backwards)
            if found is None and is_first:
                found = reader.find(text, start, backwards=not backwards)
            if found is None:
                return None
            before = reader.before(found, CONTEXT).start if found else 0
            return found, reader.after(before)

        def show(found: tuple[int, OutputWindow] | None) -> None:
            if not self._is_shown(pane, job.id) or view.found != text:
                return  # another job or search text was chosen meanwhile
            if found is None:
                where = " in this output" if is_first else " above" if backwards else " below"
                self.notify(f"No {'' if is_first else 'more '}{escape_control(text)!r}{where}.", markup=False)
                view.refresh()
                return
            view.begin(found[1], top=found[0])

        self.in_thread(look, show, group="output")

    def _start_of_search(self, view: OutputView, backwards: bool, *, is_first: bool) -> int:
        """Return where to start: at the first visible line, or after or before the last match."""
        lines = view.kept.lines
        if is_first or view.found_at is None:
            return lines[view.first_visible()].offset if lines else 0
        if backwards:
            return view.found_at
        after = view.kept.place_of(view.found_at) + 1
        return lines[after].offset if after < len(lines) else view.kept.end


class NavigationApp(SnapshotApp):
    """Focus, selection and movement."""

    # -- where we are ------------------------------------------------------------------------

    @property
    def place(self) -> str:
        """The focused pane, by its name in the table of keys."""
        focused = self.front.focused
        if self.front.prompt.is_open:
            return self._before_prompt
        if isinstance(focused, TimedRows):
            return str(focused.id)
        return self.front.detail.place if focused is not None else "tasks"

    def _is_detail_visible(self) -> bool:
        return isinstance(self.front, DetailScreen) or self.main.is_wide

    def subject(self) -> DetailTarget | None:
        """Return what keys act on: in the detail pane what it shows, in a list what is selected."""
        front = self.front
        if self.place in ("output", "details", "graph"):
            if self.place == "graph" and front.detail.graph.has_focus and front.detail.graph.cursor:
                return DetailTarget("task", front.detail.graph.cursor)
            return front.detail.subject
        return self.main.subject()

    def selected_task(self) -> TaskView | None:
        """Return the task that keys act on."""
        subject, snapshot = self.subject(), self.main.snapshot
        if subject is None or subject.kind != "task":
            return None
        return next((task for task in snapshot.tasks if task.id == subject.id), None)

    def selected_job(self) -> JobView | None:
        """Return the job that keys act on: in an output, the job that printed it."""
        if self.place in ("output", "details") and self.front.detail.job is not None:
            return self.front.detail.job
        subject = self.subject()
        if subject is None or subject.kind != "job":
            return None
        return next((job for job in self.main.snapshot.jobs if job.id == subject.id), None)

    def selected_agent(self) -> AgentView | None:
        """Return the selected team member."""
        name = self.main.people.selected if self.place == "people" else None
        return next((one for one in self.main.snapshot.people if one.name == name), None)

    # -- panes -------------------------------------------------------------------------------

    def action_focus_pane(self, number: int) -> None:
        """Focus the tasks (1), the jobs (2) or the detail (3)."""
        if number == 3:
            self.open_detail()
            return
        while isinstance(self.screen, DetailScreen):
            self.pop_screen()
        self.focus_list(self.main.tasks if number == 1 else self.main.jobs)

    def focus_list(self, rows: TimedRows) -> None:
        """Focus a list and make its selection what keys act on, from the next key on."""
        self.main.active = str(rows.id)
        self.main.layout_lists()  # on a narrow screen it may have been hidden
        focus(rows)

    def open_detail(self, subject: DetailTarget | None = None) -> None:
        """Open `subject`, or what is selected, in the detail pane: beside the lists, or over them."""
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
        self._mark_seen()

    def _begin_detail(self, screen: DetailScreen) -> None:
        screen.show(self.feed.snapshot)
        self.after_change()

    def _mark_seen(self) -> None:
        """Mark the end of a job as seen once the user opened it."""
        subject = self.subject() or self.main.subject()
        if subject is not None and subject.kind == "job":
            job = next((job for job in self.main.snapshot.jobs if job.id == subject.id), None)
            if job is not None and job.is_over:
                self.in_thread(lambda: self.feed.see(subject.id), lambda _: None)

    def action_open(self) -> None:
        """Open what is selected; on a row with a link, follow it."""
        focused = self.front.focused
        if isinstance(focused, DetailRows):
            self.jump(focused.link_id)
        elif isinstance(focused, GraphView):
            self.jump(focused.cursor)
        elif isinstance(focused, OutputView):
            self.front.detail.ask_for_answer()
        elif focused is self.main.tasks and not self.main.tasks.items and self.main.snapshot.tasks:
            self.main.shows_done = True
            self.show_newest()
        else:
            self.open_detail()
            job = self.selected_job()
            if job is not None and job.needs_input:
                self.call_after_refresh(lambda: self.front.detail.ask_for_answer())

    def jump(self, id: str) -> None:
        """Open a task or a job by id, whichever list it is in."""
        if not id:
            return
        kind = "task" if id.isdecimal() else "job"
        name = "tasks" if kind == "task" else "jobs"
        self.main.active = name
        self.main.list_of(name).select(id)
        self.front.detail.open(DetailTarget(kind, id))
        focus(self.front.detail.body)

    def action_step_back(self) -> None:
        """Go one step back: close a prompt, clear a filter, leave the detail; never leave the view."""
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
        """Move by one row; at the end of a list, go to the next one."""
        focused = self.front.focused
        if isinstance(focused, TimedRows):
            if not focused.move(by):
                self._focus_neighbour(focused, by)
        elif isinstance(focused, RowList | OutputView):
            focused.move(by)
        elif isinstance(focused, GraphView):
            focused.walk(0, by)
        self.after_change()

    def _focus_neighbour(self, rows: TimedRows, by: int) -> None:
        shown = [one for one in self.main.lists if one.display and one.items]
        if rows not in shown:
            return
        at = shown.index(rows) + by
        if 0 <= at < len(shown) and "jobs" not in (rows.id, shown[at].id):
            self.focus_list(shown[at])

    def action_page(self, by: int) -> None:
        """Move by one screen."""
        focused = self.front.focused
        if isinstance(focused, RowList | OutputView):
            focused.move_page(by)
        elif isinstance(focused, GraphView):
            focused.scroll_page_down(animate=False) if by > 0 else focused.scroll_page_up(animate=False)

    def action_edge(self, by: int) -> None:
        """Move to the first or the last row."""
        focused = self.front.focused
        if isinstance(focused, RowList | OutputView):
            focused.move_to_edge(by)
        elif isinstance(focused, GraphView):
            focused.scroll_end(animate=False) if by > 0 else focused.scroll_home(animate=False)

    def action_sideways(self, by: int) -> None:
        """Move to the left or the right."""
        focused = self.front.focused
        if isinstance(focused, GraphView):
            focused.walk(by, 0)
        elif isinstance(focused, OutputView):
            focused.move_sideways(by)

    def action_turn_tab(self, by: int) -> None:
        """Turn to another tab of the detail."""
        if self._is_detail_visible():
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
        self.front.detail.output.clear_search()
        self.find_in_output(text, backwards=False)

    def action_find(self, by: int) -> None:
        """Find the next match, or the previous one."""
        output = self.front.detail.output
        if self.place == "output" and output.found:
            self.find_in_output(output.found, backwards=by < 0)

    # -- messages from widgets ---------------------------------------------------------------

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        """Show the newly selected row in the detail, if its list is the active one."""
        if event.rows.id == self.main.active and not self.main.detail.retains:
            self.main.follow_selection()
        self.after_change()

    def on_row_list_opened(self, event: RowList.Opened) -> None:
        """Open the selected row after a click on it."""
        focus(event.rows)
        self.action_open()

    def on_graph_view_moved(self, event: GraphView.Moved) -> None:
        """Make the task under the graph's cursor what keys act on."""
        self.main.tasks.select(event.task)
        self.after_change()

    def on_one_line_clicked(self, event: OneLine.Clicked) -> None:
        """Go to the jobs on a click on the status summary, to the end of the output on one on the new-lines note."""
        pill = self.front.snapshot.pill
        if event.line is self.front.footer_line and event.x <= len(pill.in_words()) + 4 and pill.in_words():
            self.action_focus_pane(2)
        elif event.line is self.front.detail.news:
            self.front.detail.output.follow(True)

    def on_frame_tab_clicked(self, event: Frame.TabClicked) -> None:
        """Turn to the clicked tab."""
        self.front.detail.turn(event.tab)
        self.after_change()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Update the frames and the footer for the new focus."""
        focused = event.widget
        if isinstance(focused, TimedRows) and focused.id is not None:
            self.main.active = focused.id
            self.main.follow_selection()
        self.main.layout_lists()
        self.front.detail.update_title()
        self.after_change()

    def is_typing(self) -> bool:
        """Return whether keys go into a text input."""
        return isinstance(self.focused, Input)


#: Textual's names of keys pressed with Ctrl that are not alphabetic.
_CTRL_KEY_NAMES = {"]": "right_square_bracket", "^": "circumflex_accent", "_": "underscore"}


class ForegroundJob:
    """The job in the foreground of the view, if any; at most one."""

    HINT_AFTER = 2.0  #: seconds until the key is shown

    def __init__(self, setting: str = "") -> None:
        """Choose the key. `setting` is `background_key`."""
        self.key: Key | None = background_key(setting) if not is_background_disabled() else None
        self.job: str | None = None
        self._since = 0.0

    @property
    def binding(self) -> str:
        """The key, in Textual's notation."""
        letter = self.key.name[-1].lower() if self.key is not None else "b"
        return f"ctrl+{_CTRL_KEY_NAMES.get(letter, letter)}"

    def begin(self, job_id: str) -> None:
        """Make a job the foreground job."""
        self.job, self._since = job_id, boottime()

    def end(self) -> None:
        """Have no foreground job."""
        self.job = None

    def look(self, snapshot: Snapshot) -> None:
        """Forget the job if it ended or was moved to the background elsewhere."""
        found = next((job for job in snapshot.jobs if job.id == self.job), None)
        if found is not None and not found.is_foreground:
            self.end()

    @property
    def hint(self) -> str:
        """Which key moves the job to the background, once it has run for `HINT_AFTER` seconds."""
        if self.job is None or self.key is None or boottime() - self._since < self.HINT_AFTER:
            return ""
        return f"{self.key.name} moves it to the background"


#: Seconds within which a second press of the stop key confirms.
STOP_WITHIN = 2.0


class ActionApp(NavigationApp):
    """Keys that act on tasks, jobs and agents."""

    me: str | None = None  #: the agent name of the user; asked for once if it is not set
    keymap: dict[str, str]
    foreground: ForegroundJob

    # -- tasks -------------------------------------------------------------------------------

    def ask(self, what: str, then: Callable[[str], None]) -> None:
        """Prompt for a line; an empty one is ignored."""
        self._before_prompt = self.place

        def given(text: str) -> None:
            self._refocus()
            if text.strip():
                then(text.strip())

        self.front.prompt.ask(what, given)

    def _run_on_task(self, act: Callable[[str], str]) -> None:
        task = self.selected_task()
        if task is None:
            self.show_error("No task is selected.")
            return
        self.in_thread(lambda: act(task.id), self.say)

    def action_add(self) -> None:
        """Add a task."""
        self.ask("new task:", lambda subject: self.in_thread(lambda: actions.add(self.feed.yard, subject), self.say))

    def action_claim(self) -> None:
        """Claim the task; prompt for the user's name if it is unknown."""
        task = self.selected_task()
        if task is None or self.me is not None:
            self._run_on_task(lambda task_id: actions.claim(self.feed.yard, task_id, self.me or PERSON))
            return

        def named(name: str) -> None:
            self.me = name
            self.in_thread(lambda: actions.claim(self.feed.yard, task.id, name), self.say)

        self.ask("your name:", named)

    def action_start(self) -> None:
        """Mark the task in progress."""
        self._run_on_task(lambda task_id: actions.start(self.feed.yard, task_id, self.me))

    def action_done(self) -> None:
        """Mark the task completed."""
        self._run_on_task(lambda task_id: actions.done(self.feed.yard, task_id, self.me))

    def action_release(self) -> None:
        """Release the task."""
        self._run_on_task(lambda task_id: actions.release(self.feed.yard, task_id, self.me))

    def action_block(self) -> None:
        """Prompt for the tasks that block this one."""
        task = self.selected_task()
        if task is None:
            self.show_error("No task is selected.")
            return
        self.ask(
            f"#{task.id} waits for:",
            lambda ids: self.in_thread(lambda: actions.block(self.feed.yard, task.id, ids), self.say),
        )

    def action_mail(self) -> None:
        """Send a message to the selected agent, the task's owner, or the agent that started the job."""
        to = self._recipient()
        if to is None:
            self.show_error("The selection has no agent that could get mail.")
            return
        self.ask(
            f"mail to {to}:",
            lambda text: self.in_thread(lambda: actions.mail(self.feed.yard, to, text, self.me), self.say),
        )

    def _recipient(self) -> str | None:
        person, task, job = self.selected_agent(), self.selected_task(), self.selected_job()
        if person is not None:
            return person.name
        if task is not None and task.owner:
            return task.owner
        of_job = next((one.name for one in self.main.snapshot.people if job is not None and one.job == job.id), None)
        return of_job or (job.agent if job is not None else None)

    # -- jobs --------------------------------------------------------------------------------

    def action_run(self) -> None:
        """Run a command in the foreground of the view."""
        self.ask("run:", self._run)

    def _run(self, command: str) -> None:
        before = self.foreground.job
        columns = max(self.main.size.width // (2 if self.main.is_wide else 1) - 4, 20)
        window = (max(self.main.size.height - 6, 5), columns)

        def work() -> Job:
            jobs = self.feed.yard.jobs
            if before is not None:
                actions.to_background_if_alive(jobs, before)
            return actions.run(jobs, command, window)

        self.in_thread(work, self._started)

    def _started(self, job: Job) -> None:
        self.foreground.begin(job.id)
        self.set_timer(self.foreground.HINT_AFTER, self.update_footer)
        self.show_newest()
        self.call_after_refresh(self._watch, job.id, 50)

    def _watch(self, job_id: str, patience: int) -> None:
        """Show the output of a job that was just started, as soon as it is listed."""
        if self.main.jobs.select(job_id):
            self.main.active = "jobs"
            self.main.follow_selection()
            if not self.is_typing():
                self.open_detail()
        elif patience:
            self.set_timer(0.1, partial(self._watch, job_id, patience - 1))

    def action_to_background(self) -> None:
        """Move the foreground job to the background."""
        job = self.foreground.job
        if job is None or self.foreground.key is None:
            return

        def told(text: str) -> None:
            self.foreground.end()
            self.say(text)
            self.update_footer()

        self.in_thread(lambda: actions.to_background(self.feed.yard.jobs, job), told)

    def action_stop(self) -> None:
        """Stop a job: the first press asks for confirmation, a second within two seconds stops it."""
        job = self.selected_job()
        if job is None or job.is_over:
            self.show_error("No running job is selected." if job is None else f"Job {job.id} is over.")
            return
        rows = self.main.jobs
        if job.id in rows.asks:
            self._withdraw(job.id)
            self.in_thread(lambda: actions.stop(self.feed.yard.jobs, job.id), self.say)
            return
        rows.asks = {job.id: f"{format_keys(self.keymap.get('stop', 'x').split(',')[0])} again to stop"}
        rows.tick()
        self.update_footer()
        self.set_timer(STOP_WITHIN, partial(self._withdraw, job.id))

    def _withdraw(self, job_id: str) -> None:
        if self.main.jobs.asks.pop(job_id, None) is not None:
            self.main.jobs.tick()
            self.update_footer()

    def action_pause(self) -> None:
        """Pause or resume a job."""
        job = self.selected_job()
        if job is None or job.is_over:
            self.show_error("No running job is selected.")
            return
        is_paused = job.is_paused
        self.in_thread(lambda: actions.pause_or_resume(self.feed.yard.jobs, job.id, is_paused=is_paused), self.say)

    def action_dismiss(self) -> None:
        """Dismiss an ended job from every view."""
        job = self.selected_job()
        if job is None or not job.is_over:
            self.show_error("No ended job is selected.")
            return

        def close(said: str) -> None:
            self.say(said)
            if self.front.detail.is_read and self.front.detail.subject == DetailTarget("job", job.id):
                self.action_step_back()

        self.in_thread(lambda: actions.dismiss(self.feed.yard.jobs, job.id), close)

    def action_everywhere(self) -> None:
        """Show the jobs of every project, or only of this one."""
        everywhere = not self.feed.is_everywhere
        self.feed.show_all_projects(everywhere)
        self.say("Jobs of every project." if everywhere else "Jobs of this project.")

    def on_detail_pane_answered(self, event: DetailPane.Answered) -> None:
        """Send typed text to a job's input."""
        self.in_thread(lambda: actions.answer(self.feed.yard.jobs, event.job, event.text), self.say)

    # -- output ------------------------------------------------------------------------------

    def action_follow(self) -> None:
        """Toggle following the output."""
        if self.place == "output":
            view = self.front.detail.output
            view.follow(not view.follows)

    def action_wrap(self) -> None:
        """Toggle wrapping of long lines."""
        if self.place == "output":
            self.front.detail.output.toggle_wrap()

    def action_times(self) -> None:
        """Toggle the arrival times of lines."""
        if self.place == "output":
            self.front.detail.output.toggle_times()

    def action_copy(self) -> None:
        """Copy the path of an output, or an id."""
        job, subject, person = self.selected_job(), self.subject(), self.selected_agent()
        text = job.output if job is not None and self.place == "output" else subject.id if subject else ""
        text = person.name if person is not None else text
        if text:
            self.copy_to_clipboard(text)
            self.say(f"Copied: {text}")

    def action_pager(self) -> None:
        """Open the output in the user's pager."""
        job = self.selected_job()
        if job is None:
            self.show_error("No job is selected.")
        elif problem := read_in_pager(self, job.id):
            self.show_error(problem)


#: The terminal's own named colours: correct on dark and on light backgrounds.
_THEME = replace(BUILTIN_THEMES["ansi-dark"], name="taskyard", accent="ansi_blue")

#: Signals that end the view: it is terminated, or the terminal is closed.
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)

#: Actions that still work while text is being typed.
_WHILE_TYPING = ("step_back", "quit")


class YardApp(ActionApp):
    """The terminal view."""

    TITLE = "taskyard"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS = [  # noqa: RUF012  (Textual's own shape)
        Binding(row.keys or "ctrl+b", row.action, row.about, show=False, id=row.id, priority=row.id == "palette")
        for row in KEYS
    ]
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    Toast { background: ansi_default; border: solid ansi_blue; padding: 0 1; width: auto; max-width: 60; }
    Toast.-error { border: solid ansi_red; }
    SearchIcon { display: none; }
    #footer, #header { height: 1; }
    """

    def __init__(
        self,
        feed: Feed,
        *,
        settings: Settings | None = None,
        style: Style | None = None,
        now: Callable[[], int] = now_ms,
        keymap: Mapping[str, str] | None = None,
        me: str | None = None,
    ) -> None:
        settings = settings if settings is not None else Settings()
        super().__init__(feed, style=style, now=now, task_rows=settings.task_rows)
        self.me = me
        self.foreground = ForegroundJob(settings.background_key)
        self.keymap = {**(keymap or {}), "to_background": self.foreground.binding}
        self.register_theme(_THEME)
        self.theme = "taskyard"
        self.set_keymap(self.keymap)

    def get_default_screen(self) -> Screen[None]:
        """Return the main screen."""
        return self.main

    def on_mount(self) -> None:
        """Show the current snapshot, subscribe to new ones, and handle stop signals."""
        self.begin()
        if not self.is_headless:
            for number in _STOP_SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self._exit_on_signal, number)

    @on(Driver.SignalResume)
    def redraw_all(self) -> None:
        """Redraw everything after another program had the terminal."""
        self.refresh(layout=True)

    def on_unmount(self) -> None:
        """Unsubscribe."""
        self.end()

    def show_newest(self) -> None:
        """Update the foreground job and draw the newest snapshot."""
        self.foreground.look(self.feed.snapshot)
        super().show_newest()

    def on_resize(self, event: events.Resize) -> None:
        """Move the detail beside the lists if there is room; if not, over them when it has the focus."""
        detail, is_wide = self.main.detail, event.size.width >= WIDE
        if is_wide and isinstance(self.screen, DetailScreen):
            subject = self.screen.detail.subject
            self.pop_screen()
            detail.open(subject)
        is_inside = self.screen is self.main and detail.body.has_focus
        self.call_after_refresh(self._resized, detail.subject if is_inside and not is_wide else None)

    def _resized(self, subject: DetailTarget | None) -> None:
        if subject is not None:
            self.open_detail(subject)
        self.main.follow_selection()
        self.after_change()

    def on_descendant_blur(self) -> None:
        """Focus a list if the focused widget was hidden for lack of room or rows."""
        self.call_after_refresh(self._keep_focus)

    def _keep_focus(self) -> None:
        if self.is_running and self.screen is self.main and self.main.focused is None:
            rows = self.main.list_of(self.main.active)
            self.focus_list(rows if rows.display else self.main.tasks)

    # -- keys --------------------------------------------------------------------------------

    def update_footer(self) -> None:
        """Show the status summary, hints and the keys that work now."""
        front = self.front
        asks = next(iter(self.main.jobs.asks.values()), "") if not isinstance(front, MainScreen) else ""
        place = "typing" if front.detail.answer.line.has_focus else self.place
        extra = asks or self.foreground.hint
        line = footer(front.snapshot.pill, place, self.keymap, front.size.width, kind=self._kind(), extra=extra)
        front.footer_line.say(line)

    def _kind(self) -> str:
        subject = self.front.detail.subject
        return subject.kind if subject is not None else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable key actions while text is being typed."""
        if self.is_typing() and action in {row.action.partition("(")[0] for row in KEYS}:
            return action in _WHILE_TYPING
        if action == "to_background":
            return self.foreground.job is not None and self.foreground.key is not None
        return True

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield every action with its key, for the command palette."""
        for row in KEYS:
            if row.id in ("palette", "up", "down", "left", "right"):
                continue
            keys = format_keys(self.keymap.get(row.id, row.keys))
            yield SystemCommand(f"{row.full} ({keys})", row.about, self._doing(row.action))

    def _doing(self, action: str) -> Callable[[], None]:
        def do() -> None:
            self.call_later(self.run_action, action)

        return do

    def action_help(self) -> None:
        """Show the keys that work here."""
        self.push_screen(HelpScreen(self.place, self.keymap, self._kind()))

    # -- leaving -----------------------------------------------------------------------------

    async def action_quit(self) -> None:
        """Leave the view: a foreground job is moved to the background, and all jobs keep running."""
        job = self.foreground.job
        if job is None:
            self.exit(self.farewell())
            return
        self.in_thread(
            lambda: actions.to_background_if_alive(self.feed.yard.jobs, job),
            lambda text: self.exit(self.farewell(text)),
        )

    def _exit_on_signal(self, number: int) -> None:
        """Exit on a signal and restore the terminal; a second signal ends the process at once."""
        for one in _STOP_SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(one)
        self.exit(return_code=128 + number)  # a foreground job moves to the background once no view is attached to it

    def farewell(self, first: str = "") -> str:
        """Return the message printed after leaving."""
        running = [job for job in self.main.snapshot.jobs if not job.is_over]
        if not running:
            return first
        many = f"{len(running)} jobs keep running" if len(running) > 1 else f"{running[0].id} keeps running"
        return f"{first} {many}. See `taskyard ps`, or `taskyard tui` again.".strip()


def run_tui(yard: Yard, style: Style, *, no_colour: bool = False) -> tuple[str, int]:
    """Show the view until the user leaves; return the message to print and the exit code (not 0 if the view failed).

    Raises:
        BadValue: `[keys]` in config.toml has an invalid id or key.
    """
    keys = tui_keys.load_keymap()
    if no_colour or not style.colour:
        os.environ["NO_COLOR"] = "1"  # how Textual learns it
    with LiveFeed(yard) as live:
        app = YardApp(live.watch(), settings=yard.settings, style=style, keymap=keys, me=yard.agent)
        said = app.run() or ""
        return said, app.return_code or 0
