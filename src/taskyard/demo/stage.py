"""What is seen of the demo: on a terminal a table that redraws, elsewhere one line for each event."""

from __future__ import annotations

import os
import sys

from taskyard.clock import now_ms
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output import Output
from taskyard.runtime.output_text import for_terminal
from taskyard.view.glyphs import painted
from taskyard.view.job_text import JobRow, job_rows
from taskyard.view.ordering import arranged
from taskyard.view.text import cut, safe, task_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.model import Job
    from taskyard.tasklist.model import Change, Task
    from taskyard.view.glyphs import Style

#: How an act reads: `ada completes #3 Compile the sources`.
VERBS = {"start": "starts", "complete": "completes", "lease_lost": "lost"}

#: Jobs that are shown at once: a worker has one.
_MOST_JOBS = 4


class Stage:
    """Says what happens, as it happens."""

    def __init__(self, say: Callable[[str], None], style: Style) -> None:
        self._say = say
        self._style = style
        self._began = now_ms()

    def look(self, tasks: Sequence[Task], jobs: Jobs) -> None:
        """Everything as it is now."""

    def show(self, change: Change) -> None:
        """Something happened on the list."""
        if line := told(change):
            if change.act.cause in ("complete", "start"):
                self._news(line)
            else:
                self.mark(line)

    def mark(self, line: str) -> None:
        """Something that nobody should miss."""
        self._news(line)

    def end(self, tasks: Sequence[Task]) -> None:
        """The table, for the last time."""
        for line in table(tasks, self._style, columns=100):
            self._say(line)

    def _news(self, line: str) -> None:
        self._say(self._timed(line))

    def _timed(self, line: str) -> str:
        return f"{(now_ms() - self._began) / 1000:5.2f}  {line}"


class Screen(Stage):
    """The same on a terminal: tasks and jobs stay where they are, and change; what nobody should miss stays below."""

    def __init__(self, style: Style, width: int) -> None:
        super().__init__(lambda _: None, style)
        self._width = width
        self._marked: list[str] = []
        self._last = ""
        self._tasks: list[str] = []
        self._jobs: list[str] = []
        self._drawn = 0

    def look(self, tasks: Sequence[Task], jobs: Jobs) -> None:
        """Draw what may have changed: the tasks, and what the jobs printed last."""
        self._tasks = table(tasks, self._style, columns=self._width)
        rows = [JobRow(job, 0, _last_line(jobs.home, job)) for job in jobs.list()[:_MOST_JOBS]]
        self._jobs = job_rows(rows, now=now_ms(), columns=self._width, style=self._style)
        self._draw([*self._table(), self._last])

    def mark(self, line: str) -> None:
        """Keep the line in sight."""
        self._marked.append(self._timed(line))
        self._draw([*self._table(), self._last])

    def end(self, tasks: Sequence[Task]) -> None:
        """Leave the finished table standing."""
        self._tasks, self._jobs = table(tasks, self._style, columns=self._width), []
        self._draw([*self._tasks, "", *self._marks()])

    def _news(self, line: str) -> None:
        self._last = cut(self._timed(line), self._width, self._style)
        self._draw([*self._table(), self._last])

    def _table(self) -> list[str]:
        idle = [""] * (_MOST_JOBS - len(self._jobs))  # so that nothing jumps
        return [*self._tasks, "", *self._jobs, *idle, "", *self._marks()]

    def _marks(self) -> list[str]:
        return [painted(cut(line, self._width, self._style), "warn", self._style) for line in self._marked]

    def _draw(self, lines: Sequence[str]) -> None:
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stdout.write(f"{up}\r\x1b[J" + "".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        self._drawn = len(lines)


def _last_line(home: str, job: Job) -> str:
    return safe(for_terminal(Output(JobFolder(home, job.id)).last_line()))


def told(change: Change) -> str:
    """An entry of the log as a sentence; empty if it is not worth one."""
    if change.act.cause == "update" and not change.aborted:
        news = [str(task.metadata.get("news") or "") for task in change.tasks.values() if task is not None]
        return f"{change.act.by} is told, and tries again: {news[0]}" if any(news) else ""
    verb = VERBS.get(change.act.cause)
    if verb is None or change.aborted:
        return ""
    named = ", ".join(f"#{task_id} {task.subject}" for task_id, task in change.tasks.items() if task is not None)
    if change.act.cause == "lease_lost":
        return f"{named} comes back to the pool: {change.act.by} is gone"
    results = [str(task.metadata.get("result", "")) for task in change.tasks.values() if task is not None]
    return f"{change.act.by} {verb} {named}" + (f": {results[0]}" if verb == "completes" else "")


def table(tasks: Sequence[Task], style: Style, *, columns: int) -> list[str]:
    """The plan in its own order, each task with its state."""
    now = now_ms()
    rows = sorted(arranged(tasks, now=now), key=lambda row: int(row.task.id))
    return task_rows(rows, now=now, columns=columns, style=style)


def fits(lines_needed: int) -> bool:
    """Whether the terminal is tall enough for a table that redraws."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines > lines_needed
    except (OSError, ValueError, AttributeError):
        return False
