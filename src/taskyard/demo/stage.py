"""What is seen of the demo: on a terminal a table that redraws, elsewhere one line for each event."""

from __future__ import annotations

import os
import sys

from taskyard.clock import now_ms
from taskyard.view.glyphs import painted
from taskyard.view.ordering import arranged
from taskyard.view.text import cut, task_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasklist.model import Change, Task
    from taskyard.view.glyphs import Style

#: How an act reads: `ada completes #3 Compile the sources`.
VERBS = {"start": "starts", "complete": "completes", "lease_lost": "lost"}


class Stage:
    """Says what happens, as it happens."""

    def __init__(self, say: Callable[[str], None], style: Style) -> None:
        self._say = say
        self._style = style
        self._began = now_ms()

    def show(self, change: Change, tasks: Sequence[Task]) -> None:
        """Something happened on the list."""
        if line := told(change):
            if change.act.cause == "lease_lost":
                self.mark(line, tasks)
            else:
                self._news(line, tasks)

    def mark(self, line: str, tasks: Sequence[Task]) -> None:
        """Something that nobody should miss."""
        self._news(line, tasks)

    def end(self, tasks: Sequence[Task]) -> None:
        """The table, for the last time."""
        for line in table(tasks, self._style, columns=100):
            self._say(line)

    def _news(self, line: str, tasks: Sequence[Task]) -> None:
        del tasks
        self._say(self._timed(line))

    def _timed(self, line: str) -> str:
        return f"{(now_ms() - self._began) / 1000:5.2f}  {line}"


class Screen(Stage):
    """The same on a terminal: the table stays where it is, and changes; what nobody should miss stays below it."""

    def __init__(self, style: Style, width: int) -> None:
        super().__init__(lambda _: None, style)
        self._width = width
        self._marked: list[str] = []
        self._drawn = 0

    def mark(self, line: str, tasks: Sequence[Task]) -> None:
        """Keep the line in sight."""
        self._marked.append(self._timed(line))
        self._draw([*self._table(tasks), ""])

    def end(self, tasks: Sequence[Task]) -> None:
        """Leave the finished table standing."""
        self._draw(self._table(tasks))

    def _news(self, line: str, tasks: Sequence[Task]) -> None:
        self._draw([*self._table(tasks), cut(self._timed(line), self._width, self._style)])

    def _table(self, tasks: Sequence[Task]) -> list[str]:
        marked = [painted(cut(line, self._width, self._style), "warn", self._style) for line in self._marked]
        return [*table(tasks, self._style, columns=self._width), "", *marked]

    def _draw(self, lines: Sequence[str]) -> None:
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stdout.write(f"{up}\r\x1b[J" + "".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        self._drawn = len(lines)


def told(change: Change) -> str:
    """An entry of the log as a sentence; empty if it is not worth one."""
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
