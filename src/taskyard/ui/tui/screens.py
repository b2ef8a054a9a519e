"""The two screens of the terminal view: the main screen, and the detail over it on narrow terminals.

100 columns and more    tasks over background jobs, the detail beside them
60 to 99                the lists alone; the detail opens over them
fewer                   one list; the status summary counts the jobs
fewer than 16 lines     without the header
"""

from __future__ import annotations

from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from taskyard.tasks.text import hidden_states_line
from taskyard.ui.jobs import JobView
from taskyard.ui.snapshot import AgentView, Snapshot
from taskyard.ui.tasks import TaskView
from taskyard.ui.tui.detail import DetailPane, Prompt, focus
from taskyard.ui.tui.feed import DetailTarget
from taskyard.ui.tui.frame import Frame, OneLine, header
from taskyard.ui.tui.keys import Piece
from taskyard.ui.tui.rows import AgentRows, JobRows, TaskRows, agent_text, filter_rows, job_text, task_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from taskyard.core.text import Style
    from taskyard.ui.tui.rows import TimedRows

WIDE, NARROW, LOW = 100, 60, 16

#: Most lines of the list of agents; the others by scrolling.
_MOST_AGENTS = 5

#: Lines reserved before agents get any: four frames, the footer, two lines of each other list.
_LINES_WITHOUT_AGENTS = 9

_NO_TASKS = "No tasks yet. Press a to add one, or say `taskyard task add SUBJECT` anywhere."
_NO_JOBS = "Nothing runs in the background. Press r to run a command, or say `taskyard run -d -- COMMAND` anywhere."


class YardScreen(Screen[None]):
    """A header, a body, and a footer that the prompt replaces."""

    DEFAULT_CSS = """
    YardScreen { layout: vertical; }
    #bottom { height: 1; overflow: hidden; }
    .framed { border-left: solid ansi_bright_black; border-right: solid ansi_bright_black; }
    YardScreen.ascii .framed { border-left: ascii ansi_bright_black; border-right: ascii ansi_bright_black; }
    """

    def __init__(self, *, style: Style, now: Callable[[], int]) -> None:
        super().__init__(classes="ascii" if style.ascii else "")
        self.style, self.now = style, now
        self.snapshot = Snapshot()
        self.header_line = OneLine(id="header")
        self.footer_line = OneLine(id="footer")
        self.prompt = Prompt(id="prompt")
        self.detail = DetailPane(id="detail", style=style, now=now)

    def show(self, snapshot: Snapshot) -> None:
        """Show a new snapshot."""
        self.snapshot = snapshot
        self.detail.show(snapshot)
        self.update_header()

    def update_header(self) -> None:
        """Update the list name, the headline and the clock."""
        self.header_line.display = self.size.height >= LOW
        self.header_line.say(header(self.snapshot, self.size.width, self.now(), self.style))

    def tick(self) -> None:
        """Update displayed times."""
        self.update_header()
        self.detail.tick()

    def moments(self) -> list[int]:
        """Return the start times (epoch ms) of all displayed ages."""
        return []


class DetailScreen(YardScreen):
    """The detail pane over the lists, where there is no room beside them."""

    def compose(self) -> ComposeResult:
        """Yield the widgets, from top to bottom."""
        yield self.header_line
        yield self.detail
        yield Vertical(self.prompt, self.footer_line, id="bottom")

    def on_mount(self) -> None:
        """Focus the detail pane."""
        focus(self.detail.body)


class MainScreen(YardScreen):
    """Tasks, agents and background jobs, and the detail if there is room."""

    DEFAULT_CSS = """
    MainScreen #body { height: 1fr; }
    MainScreen #lists { width: 1fr; }
    MainScreen #detail { width: 1fr; }
    """

    def __init__(self, *, style: Style, now: Callable[[], int], task_rows: int = 10) -> None:
        super().__init__(style=style, now=now)
        self._task_rows = task_rows
        self.filters: dict[str, str] = {"tasks": "", "jobs": "", "people": ""}
        self.turns = 0  #: steps of the spinner so far
        self.active = "tasks"  #: the list that had the focus last
        self.shows_done = False  #: the user wants to see tasks that are all done
        self.tasks = TaskRows(id="tasks", style=style, now=now, empty=_NO_TASKS)
        self.people = AgentRows(id="people", style=style, now=now)
        self.jobs = JobRows(id="jobs", style=style, now=now, empty=_NO_JOBS)
        self.hidden_line = OneLine(id="hidden", classes="framed")
        self.lists: tuple[TimedRows, ...] = (self.tasks, self.people, self.jobs)  #: from top to bottom
        self.tasks_frame = Frame("top", style=style)
        self.people_frame = Frame("middle", style=style)
        self.jobs_frame = Frame("middle", style=style)
        self.bottom_frame = Frame("bottom", style=style)

    def compose(self) -> ComposeResult:
        """Yield the lists on the left, the detail on the right."""
        for rows in (self.tasks, self.people, self.jobs):
            rows.add_class("framed")
        yield self.header_line
        with Horizontal(id="body"):
            with Vertical(id="lists"):
                yield self.tasks_frame
                yield self.tasks
                yield self.hidden_line
                yield self.people_frame
                yield self.people
                yield self.jobs_frame
                yield self.jobs
                yield self.bottom_frame
            yield self.detail
        yield Vertical(self.prompt, self.footer_line, id="bottom")

    def on_mount(self) -> None:
        """Focus the tasks."""
        focus(self.tasks)
        self.watch(self.tasks, "scroll_y", self._update_hidden_line)

    @property
    def is_wide(self) -> bool:
        """Whether there is room for the detail beside the lists."""
        return self.size.width >= WIDE

    def list_of(self, name: str) -> TimedRows:
        """Return a list by its name."""
        return {"tasks": self.tasks, "people": self.people, "jobs": self.jobs}[name]

    # -- contents ----------------------------------------------------------------------------

    def show(self, snapshot: Snapshot) -> None:
        """Show a new snapshot: rows by id, so that only what changed is drawn."""
        if snapshot.is_panel_shown:
            self.shows_done = False
        self.snapshot = snapshot
        is_shown = snapshot.is_panel_shown or self.shows_done
        self.tasks.empty = self._no_tasks(snapshot)
        tasks = filter_rows(snapshot.tasks, task_text, self.filters["tasks"]) if is_shown else ()
        people = filter_rows(snapshot.people, agent_text, self.filters["people"])
        jobs = filter_rows(snapshot.jobs, job_text, self.filters["jobs"])
        self.tasks.show(tasks)
        self.people.show(people)
        self.jobs.empty = "No job matches the filter." if self.filters["jobs"] else _NO_JOBS
        self.jobs.show(jobs)
        self.layout_lists()
        super().show(snapshot)

    def _no_tasks(self, snapshot: Snapshot) -> str:
        if self.filters["tasks"]:
            return "No task matches the filter. Press esc to see all."
        if snapshot.tasks:
            many = f"All {len(snapshot.tasks)} tasks are done" if len(snapshot.tasks) > 1 else "The task is done"
            return f"{many}. Press enter to see them, a to add one."
        return _NO_TASKS

    def subject(self) -> DetailTarget | None:
        """Return what is selected in the list that had the focus last."""
        item = self.list_of(self.active).current
        if isinstance(item, TaskView):
            return DetailTarget("task", item.id)
        if isinstance(item, JobView):
            return DetailTarget("job", item.id)
        if isinstance(item, AgentView):
            return DetailTarget("job", item.job) if item.job else DetailTarget("task", item.task) if item.task else None
        return None

    def follow_selection(self) -> None:
        """Show what is selected in the detail, if there is room."""
        if self.is_wide:
            self.detail.open(self.subject())

    # -- layout ------------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Adapt the layout to the new size."""
        self.layout_lists()
        self.update_header()

    def layout_lists(self) -> None:
        """Assign lines to each list."""
        columns, is_tiny = self.size.width, self.size.width < NARROW
        self.detail.display = self.is_wide
        shows_jobs = not is_tiny or self.active == "jobs"
        shows_tasks = not is_tiny or self.active != "jobs"
        free = self.size.height - (self.size.height >= LOW) - _LINES_WITHOUT_AGENTS
        people = min(self.people.lines, _MOST_AGENTS, max(free, 0)) if shows_tasks else 0
        for widget, is_shown in (
            (self.tasks, shows_tasks),
            (self.people_frame, people),
            (self.people, people),
            (self.jobs, shows_jobs),
            (self.jobs_frame, shows_jobs and shows_tasks),
        ):
            widget.display = bool(is_shown)
        inner = (columns // 2 if self.is_wide else columns) - 2
        room = self.size.height - (self.size.height >= LOW) - 1 - 2 - bool(shows_jobs) - (people + 1 if people else 0)
        self._layout_tasks(room, inner, has_jobs=shows_jobs)
        self.people.styles.height = people
        for rows in self.lists:
            if rows.is_active != (rows.id == self.active):
                rows.is_active = rows.id == self.active
                rows.redraw_selected()
        self._update_titles(is_tiny=is_tiny, shows_tasks=shows_tasks)
        self._update_hidden_line()

    def _layout_tasks(self, room: int, columns: int, *, has_jobs: bool) -> None:
        """Assign lines to the tasks: about ten, and never so many that no job is visible."""
        needed = self.tasks.lines or self.tasks.empty_lines(columns)
        if not has_jobs:
            most = room
        else:
            jobs = self.jobs.lines or self.jobs.empty_lines(columns)
            most = room - min(jobs, max(room // 3, 3))
            most = min(most, self._task_rows + 1) if self._task_rows else most
        self.hidden_line.display = needed > most and self.tasks.display
        lines = min(needed, max(most - 1, 1) if needed > most else most)
        self.tasks.styles.height = "1fr" if not has_jobs and not self.hidden_line.display else max(lines, 1)

    def _update_titles(self, *, is_tiny: bool, shows_tasks: bool) -> None:
        def title(number: str, name: str, key: str) -> str:
            return f"{number}{name}" + (f" /{self.filters[key]}" if self.filters[key] else "")

        first = title("1 ", "Tasks", "tasks") if shows_tasks else title("2 ", "Background", "jobs")
        self.tasks_frame.update_title(first, lit=self.tasks.has_focus or (not shows_tasks and self.jobs.has_focus))
        self.people_frame.update_title(title("", "Team", "people"), lit=self.people.has_focus)
        self.jobs_frame.update_title(title("2 ", "Background", "jobs") + self._elsewhere(), lit=self.jobs.has_focus)

    def _elsewhere(self) -> str:
        """Return the note about jobs of other projects that are not shown."""
        count = self.snapshot.elsewhere
        return f" (+{count} in other projects)" if count else ""

    def _update_hidden_line(self) -> None:
        if self.hidden_line.display:
            states = [task.state for task in self.tasks.hidden() if isinstance(task, TaskView)]
            words = hidden_states_line(states)
            self.hidden_line.say([Piece(f" {words.replace('…', '...') if self.style.ascii else words}", "muted")])

    # -- time --------------------------------------------------------------------------------

    def tick(self) -> None:
        """Update displayed ages."""
        for rows in self.lists:
            rows.tick()
        super().tick()

    def advance_spinner(self) -> None:
        """Advance the spinner by one step, on the focused row."""
        self.turns += 1
        for rows in self.lists:
            if rows.has_focus:
                rows.turn = self.turns
                rows.redraw_selected()

    @property
    def has_spinner(self) -> bool:
        """Whether the focused row is in progress."""
        item = next((rows.current for rows in self.lists if rows.has_focus), None)
        if isinstance(item, TaskView):
            return item.state == "doing"
        return isinstance(item, JobView) and item.state == "running" and item.is_progressing

    def moments(self) -> list[int]:
        """Return the start times (epoch ms) of all displayed ages."""
        tasks = [task.since for task in self.snapshot.tasks if task.since is not None] if self.tasks.items else []
        jobs = [job.started_at for job in self.snapshot.jobs if job.started_at is not None and not job.is_over]
        return [*tasks, *jobs]
