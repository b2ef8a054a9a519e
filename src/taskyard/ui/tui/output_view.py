"""The Output tab: buffer, widget and tail thread for a job's output, and opening it in a pager.

`OutputBuffer` holds at most 5,000 lines, from anywhere in the output; while the view does not follow, its lines stay
and new ones are counted. `OutputView` draws it and never reads by itself: it requests what is missing (`Wanted`) and
gets it (`begin`, `add`, `prepend_window`). `OutputTail` is a thread that starts with the end of the output, however
large, and reports growth at most ten times a second; inotify wakes it. `read_in_pager` shows what `taskyard logs`
prints, so that no control sequence in it reaches the terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from itertools import accumulate

from rich.cells import cell_len
from textual.app import SuspendNotSupported
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from taskyard.core.text import size, width
from taskyard.core.values import NamedTuple
from taskyard.errors import TaskyardError
from taskyard.jobs.job_dir import JobPaths
from taskyard.storage.change_feed import subscribe
from taskyard.ui.ansi import Pen, Run, plain_text
from taskyard.ui.details import format_time
from taskyard.ui.output import MOST_LINES, OutputLine, OutputReader, OutputWindow
from taskyard.ui.tui.keys import Piece, blank, folded, strip_of, strip_of_runs, style_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.app import App

    from taskyard.storage.inotify import Subscription


#: Columns from one tab stop to the next.
_TAB_WIDTH = 8

#: How a gap is drawn: bright black.
_MUTED = Pen(fg=8)


class OutputBuffer:
    """The buffered lines of one output."""

    def __init__(self, most: int = MOST_LINES) -> None:
        self.lines: list[OutputLine] = []
        self.times: dict[int, int] = {}  #: arrival time by offset, of lines that arrived while the output was shown
        self.start = 0  #: the offset of the first buffered byte
        self.end = 0  #: offset to continue from
        self.size = 0  #: bytes printed in all
        self.unseen = 0  #: lines that arrived while the view did not follow
        self.is_more = False  #: whether there may be more than `unseen`
        self.is_cut = False  #: the latest output is not in the buffer
        self._most = most

    def begin(self, window: OutputWindow, *, from_start: bool = False) -> None:
        """Replace the buffer by this window; of too many lines keep the last, or the first with `from_start`."""
        self.lines = _buffer_lines(window)
        self.times.clear()
        self.start, self.end, self.size = window.start, window.end, window.size
        self.unseen, self.is_more, self.is_cut = 0, False, window.end < window.size and not window.is_open
        if from_start:
            self._shorten_back()
        else:
            self._shorten_front()

    def add(self, window: OutputWindow, *, at: int, follows: bool, skipped: bool = False) -> int:
        """Append new output and return how many lines are new. `skipped`: output before the window was left out."""
        if window.restarted or (skipped and follows):
            self.begin(window)
            return len(window.lines)
        self.size = window.size
        self.is_cut = self.is_cut or window.start > self.end  # output in between was not read here
        if self.is_cut or skipped:  # not following, and there is no room for it
            self.is_cut, self.is_more = True, self.is_more or skipped
            self.unseen += len(window.lines)
            return len(window.lines)
        again = 0
        while self.lines and self.lines[-1].offset >= window.start:
            self.lines.pop()
            again += 1
        new = max(len(window.lines) - again, 0)
        self.end = window.end
        self.lines += _buffer_lines(window)
        self.times.update((line.offset, at) for line in window.lines)
        if follows:
            self._shorten_front()
        else:
            self.unseen += new
            self._shorten_back()
        return new

    def prepend_window(self, window: OutputWindow) -> int:
        """Insert the output before `start`; return by how many lines everything moved down."""
        first = _buffer_lines(window)
        while self.lines and self.lines[0].offset < self.start:
            self.lines.pop(0)  # the note about a gap that was here
        self.lines[:0] = first
        self.start, self.size = window.start, max(self.size, window.size)
        self._shorten_back()
        return len(first)

    def place_of(self, offset: int) -> int:
        """Return the index of the line that begins at an offset, or of the first after it."""
        return next((at for at, line in enumerate(self.lines) if line.offset >= offset), max(len(self.lines) - 1, 0))

    def _shorten_front(self) -> None:
        if (more := len(self.lines) - self._most) > 0:
            for line in self.lines[:more]:
                self.times.pop(line.offset, None)
            del self.lines[:more]
            self.start = self.lines[0].offset

    def _shorten_back(self) -> None:
        if len(self.lines) > self._most:
            for line in self.lines[self._most :]:
                self.times.pop(line.offset, None)
            self.end = self.lines[self._most].offset
            del self.lines[self._most :]
            self.is_cut = True


def _buffer_lines(window: OutputWindow) -> list[OutputLine]:
    """Return the lines of a window, after a note about a gap if there is one."""
    return [*_gap_lines(window), *(_expand_tabs(line) for line in window.lines)]


def _expand_tabs(line: OutputLine) -> OutputLine:
    """Replace tabs by spaces: a terminal would count tab stops from its own edge, and past that of the pane."""
    if not any("\t" in run.text for run in line.runs):
        return line
    column, runs = 0, list[Run]()
    for run in line.runs:
        text = ""
        for part in re.split("(\t)", run.text):
            more = " " * (_TAB_WIDTH - column % _TAB_WIDTH) if part == "\t" else part
            text, column = text + more, column + width(more)
        runs.append(run._replace(text=text))
    return line._replace(runs=tuple(runs))


def _gap_lines(window: OutputWindow) -> list[OutputLine]:
    """Return the line that notes how much was dropped."""
    if not window.omitted:
        return []
    return [OutputLine(window.start - 1, (Run(f"… {size(window.omitted)} omitted …", _MUTED),))]


#: Columns of a time of day and the space after it.
_TIME_WIDTH = 9


class OutputView(ScrollView, can_focus=True, inherit_bindings=False):
    """The widget that shows a job's output."""

    DEFAULT_CSS = """
    OutputView { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; height: 1fr; }
    """

    class Wanted(Message):
        """Lines that are not in the buffer must be read."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what  #: "before", "after", "head" or "tail"

    class Changed(Message):
        """The lines, the count of new ones, or whether it follows has changed."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.kept = OutputBuffer()
        self.note = ""  #: shown if there is no output
        self.follows, self.wraps, self.shows_times = True, False, False
        self.found = ""  #: the search text
        self.found_at: int | None = None  #: the offset of the line with the current match
        self._tops: list[int] = [0]
        self._wide = 0
        self._left = 0  # columns scrolled to the right, where lines are cut
        self._asked = ""

    # -- the buffer --------------------------------------------------------------------------

    def clear(self, note: str = "") -> None:
        """Remove all lines; `note` is shown instead."""
        self.kept, self.note = OutputBuffer(), note
        self.follows, self.found, self.found_at, self._asked = True, "", None, ""
        self._left = 0
        self._lay_out()
        self.refresh()
        self.scroll_to(x=0, y=0, animate=False, force=True)
        self.post_message(self.Changed())

    def begin(self, window: OutputWindow, *, note: str = "", top: int | None = None) -> None:
        """Show this window: its end, or with the line at the offset `top` in view."""
        self.note, self._asked = note, ""
        self.kept.begin(window, from_start=top is not None)
        self.follows = top is None
        self._settle()
        if top is not None:
            self.found_at = top
            self._show_line(self.kept.place_of(top))

    def add(self, window: OutputWindow, *, at: int, skipped: bool = False) -> None:
        """Append new output."""
        before = len(self.kept.lines)
        self.kept.add(window, at=at, follows=self.follows, skipped=skipped)
        if self.follows and self.kept.is_cut:
            self.post_message(self.Wanted("tail"))
        elif self.follows or len(self.kept.lines) != before:
            self._settle()
        else:
            self.post_message(self.Changed())

    def append_window(self, window: OutputWindow) -> None:
        """Append the output after the buffer's end, when scrolling down within the output."""
        self._asked = ""
        self.kept.is_cut = False
        seen, top = self.kept.unseen, self.kept.lines[self.first_visible()].offset if self.kept.lines else 0
        self.kept.add(window, at=0, follows=True)
        self.kept.unseen = seen
        self.kept.is_cut = window.end < window.size and not window.is_open
        self._lay_out()
        self.scroll_to(y=self._tops[self.kept.place_of(top)], animate=False, force=True)
        self._settle()

    def prepend_window(self, window: OutputWindow) -> None:
        """Insert the output before the buffer; the visible lines stay in place."""
        self._asked = ""
        more = self.kept.prepend_window(window)
        self._lay_out()
        self.scroll_to(y=self.scroll_offset.y + self._tops[min(more, len(self._tops) - 1)], animate=False, force=True)
        self._settle()

    def _settle(self) -> None:
        self._lay_out()
        self.refresh()
        if self.follows:
            self.kept.unseen, self.kept.is_more = 0, False
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)
        self.call_after_refresh(self._place_scrollbar)
        self.post_message(self.Changed())

    def _place_scrollbar(self) -> None:
        """Set the position of a scrollbar that has just appeared: it starts at 0."""
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self.scroll_y

    def _lay_out(self) -> None:
        columns = self._columns()
        texts = [plain_text(line.runs) for line in self.kept.lines]
        self._wide = max(map(width, texts), default=0) + (_TIME_WIDTH if self.shows_times else 0)
        if self.wraps:
            self._tops = [0, *accumulate(len(folded(text, columns)) for text in texts)]
        else:
            self._tops = list(range(len(texts) + 1))
        self.virtual_size = Size(self.size.width, self._tops[-1])

    def _columns(self) -> int:
        return max(self.scrollable_content_region.width - 1 - (_TIME_WIDTH if self.shows_times else 0), 4)

    # -- moving ------------------------------------------------------------------------------

    def follow(self, wanted: bool) -> None:
        """Follow the end of the output as it grows, or stop following."""
        self.follows = wanted
        if wanted and self.kept.is_cut:
            self.post_message(self.Wanted("tail"))
        self._settle()

    def toggle_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.wraps = not self.wraps
        self._relayout()

    def toggle_times(self) -> None:
        """Show or hide arrival times."""
        self.shows_times = not self.shows_times
        self._relayout()

    def _relayout(self) -> None:
        top = self.first_visible()
        self._lay_out()
        self.scroll_to(x=0, y=self.max_scroll_y if self.follows else self._tops[top], animate=False, force=True)
        self.refresh()
        self.post_message(self.Changed())

    def move(self, by: int) -> None:
        """Move by some lines; moving up stops following."""
        if by < 0:
            self.follows = False
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, force=True)
        self._reached()

    def move_page(self, by: int) -> None:
        """Move by one screen."""
        self.move(by * max(self.size.height - 1, 1))

    def move_to_edge(self, by: int) -> None:
        """Move to the first line, or to the end."""
        if by > 0:
            self.follow(True)
        else:
            self.follows = False
            self.post_message(self.Wanted("head"))

    def clear_search(self) -> None:
        """Remove the search text and its highlights."""
        self.found, self.found_at = "", None
        self.refresh()
        self.post_message(self.Changed())

    def move_sideways(self, by: int) -> None:
        """Scroll by some columns, where lines are cut."""
        if not self.wraps:
            self._left = min(max(self._left + by * 8, 0), max(self._wide - self._columns(), 0))
            self.refresh()

    def _reached(self) -> None:
        """Request more lines at an end of the buffer."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        if self.scroll_offset.y <= 0 and self.kept.start > 0 and not self.follows:
            self._ask("before")
        elif at_end and self.kept.is_cut:
            self._ask("after")
        elif at_end and not self.follows:
            self.follow(True)
        self.post_message(self.Changed())

    def _ask(self, what: str) -> None:
        if self._asked != what:
            self._asked = what
            self.post_message(self.Wanted(what))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move up three lines."""
        event.stop()
        self.move(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """As a key would."""
        event.stop()
        self.move(3)

    def first_visible(self) -> int:
        """Return the index of the first visible line in the buffer."""
        return min(max(bisect_right(self._tops, self.scroll_offset.y) - 1, 0), max(len(self.kept.lines) - 1, 0))

    def _show_line(self, at: int) -> None:
        self.scroll_to(y=max(self._tops[at] - self.size.height // 3, 0), animate=False, force=True)
        self.refresh()

    # -- drawing -----------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Wrap lines for the new width."""
        self._relayout()

    def render_line(self, y: int) -> Strip:
        """Render one visible line."""
        room = self.scrollable_content_region.width
        row = y + self.scroll_offset.y
        if not self.kept.lines and y == 0 and self.note:
            return strip_of([Piece(f" {self.note}", "muted")], room)
        if row >= self._tops[-1]:
            return blank(room)
        at = bisect_right(self._tops, row) - 1
        columns, part = self._columns(), row - self._tops[at]
        start, end = self._cut(at, part, columns)
        body = self._drawn(at).crop(start, end).adjust_cell_length(columns, style_of(""))
        lead = strip_of([Piece(f" {self._time(at, part)}" if self.shows_times else " ", "muted")], room - columns)
        return Strip.join([lead, body])

    def _cut(self, at: int, part: int, columns: int) -> tuple[int, int]:
        """Return the visible cells of a line: one of its wrapped parts, or what is not scrolled past."""
        if not self.wraps:
            return self._left, self._left + columns
        parts = folded(plain_text(self.kept.lines[at].runs), columns)[: part + 1]
        end = sum(map(cell_len, parts))
        return end - cell_len(parts[-1]), end

    def _time(self, at: int, part: int) -> str:
        when = self.kept.times.get(self.kept.lines[at].offset) if part == 0 else None
        return f"{format_time(when)} " if when else " " * _TIME_WIDTH

    def _drawn(self, at: int) -> Strip:
        line = self.kept.lines[at]
        text = plain_text(line.runs)
        if not self.found or self.found.lower() not in text.lower():
            return strip_of_runs(line.runs)
        mark = "warn reverse" if line.offset == self.found_at else "reverse"
        pieces: list[Piece] = []
        at_char = 0
        for found in re.finditer(re.escape(self.found), text, re.IGNORECASE):
            pieces += [Piece(text[at_char : found.start()]), Piece(found[0], mark)]
            at_char = found.end()
        pieces.append(Piece(text[at_char:]))
        return strip_of(pieces, width(text))


#: Lines to begin with: several screens. Scrolling back reads more.
FIRST_LINES = 2_000

#: Seconds between two updates.
_UPDATE_INTERVAL = 0.1

#: If more bytes than this follow a window, only the end of the output is shown.
_SKIP_THRESHOLD = 2_000_000

#: Seconds between two reads without an event, in case one was lost.
_POLL_INTERVAL = 5.0


class OutputUpdate(NamedTuple):
    """What was read of an output."""

    job: str
    window: OutputWindow
    is_first: bool = False
    is_over: bool = False
    skipped: bool = False  #: too much arrived to read it all: this is the end of it
    error: str = ""


class OutputTail:
    """A thread that follows one output until the job ends or `close` is called."""

    def __init__(self, home: str, job_id: str, tell: Callable[[OutputUpdate], object]) -> None:
        self.job = job_id
        self._home, self._tell = home, tell
        self._is_closed = False
        self._followed: Subscription | None = None
        self._thread = threading.Thread(target=self._run, name=f"taskyard-tail-{job_id}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._is_closed = True
        if self._followed is not None:
            self._followed.wake()

    def _run(self) -> None:
        try:
            self._follow(OutputReader(self._home, self.job))
        except (TaskyardError, OSError) as error:
            self._say(OutputUpdate(self.job, OutputWindow(), is_first=True, is_over=True, error=str(error)))

    def _follow(self, reader: OutputReader) -> None:
        with subscribe(JobPaths(self._home, self.job).path) as self._followed:
            self._followed.changed()
            is_over = reader.is_over()
            window = reader.tail(FIRST_LINES)
            self._say(OutputUpdate(self.job, window, is_first=True, is_over=is_over))
            while not is_over and not self._is_closed:
                self._followed.wait(_POLL_INTERVAL)
                time.sleep(_UPDATE_INTERVAL)  # collect what arrives meanwhile into one update
                names = self._followed.changed()
                is_over = reader.is_over() if names is None or names - {"output"} or not names else False
                window = self._read_on(reader, window.end, is_over=is_over)

    def _read_on(self, reader: OutputReader, end: int, *, is_over: bool) -> OutputWindow:
        """Report new output; if it is too much, only its end."""
        window, skipped = reader.after(end), False
        if not window.restarted and window.size - window.end > _SKIP_THRESHOLD:
            window, skipped = reader.tail(FIRST_LINES), True
        while True:
            is_last = window.is_open or window.end >= window.size or (not window.lines and not window.restarted)
            if window.lines or window.restarted or (is_over and is_last):
                self._say(OutputUpdate(self.job, window, is_over=is_over and is_last, skipped=skipped))
            if is_last or skipped or self._is_closed:
                return window
            window = reader.after(window.end)

    def _say(self, news: OutputUpdate) -> None:
        if not self._is_closed:
            self._tell(news)


def read_in_pager(app: App[str], job_id: str) -> str:
    """Give the terminal to the pager until it exits; return an error message, or ""."""
    setting = os.environ.get("PAGER", "")
    try:
        words = shlex.split(setting) or ["less"]
    except ValueError as error:
        return f"PAGER is {setting!r}, which is not a command ({error})."
    env = {**os.environ, "FORCE_COLOR": "1", "LESS": os.environ.get("LESS", "-R")}
    try:
        with app.suspend():
            return _run_piped([sys.executable, "-m", "taskyard", "logs", job_id], words, env)
    except SuspendNotSupported:
        return "This terminal cannot be given to another program."


def _ignore_signal(number: int, frame: object) -> None:
    """Ignore the signal: it is meant for the program that has the terminal."""


def _run_piped(from_: list[str], into: list[str], env: dict[str, str]) -> str:
    logs = subprocess.Popen(from_, stdout=subprocess.PIPE, env=env, stdin=subprocess.DEVNULL, start_new_session=True)
    before = signal.signal(signal.SIGINT, _ignore_signal)  # Ctrl+C is for the pager: in less it ends a search
    try:
        subprocess.run(into, stdin=logs.stdout, env=env, check=False)
    except OSError as error:
        return f"{into[0]} cannot be started ({error.strerror}). Set PAGER to a program that can."
    finally:
        signal.signal(signal.SIGINT, before)
        if logs.stdout is not None:
            logs.stdout.close()
        logs.terminate()
        logs.wait()
    return ""
