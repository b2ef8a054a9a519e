"""
A thread that reads on in one output as it grows, and tells of it at most ten times a second.

The kernel says when there is something; in between it sleeps. It begins with the end of the output, however large.
"""

from __future__ import annotations

import threading
import time

from taskyard.disk.follow import follow
from taskyard.errors import TaskyardError
from taskyard.live.output import Reader, Window
from taskyard.runtime.folder import JobFolder
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.disk.watch import Followed

#: Lines to begin with: several screens. Who scrolls back gets more.
FIRST_LINES = 2_000

#: Seconds between two tellings.
_EVERY = 0.1

#: Bytes that may be waiting after one window; with more the end of them is shown.
_FLOOD = 2_000_000

#: A look by itself, in seconds, should the kernel forget to tell.
_LONG = 5.0


class News(NamedTuple):
    """What there is, or what came."""

    job: str
    window: Window
    is_first: bool = False
    is_over: bool = False
    skipped: bool = False  #: more came than can be read: this is the end of it
    error: str = ""


class Tail:
    """One output, read on in a thread of its own until it is over or nobody looks any more."""

    def __init__(self, home: str, job_id: str, tell: Callable[[News], object]) -> None:
        self.job = job_id
        self._home, self._tell = home, tell
        self._is_closed = False
        self._followed: Followed | None = None
        self._thread = threading.Thread(target=self._run, name=f"taskyard-tail-{job_id}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Read no further."""
        self._is_closed = True
        if self._followed is not None:
            self._followed.wake()

    def _run(self) -> None:
        try:
            self._follow(Reader(self._home, self.job))
        except (TaskyardError, OSError) as error:
            self._say(News(self.job, Window(), is_first=True, is_over=True, error=str(error)))

    def _follow(self, reader: Reader) -> None:
        with follow(JobFolder(self._home, self.job).path) as self._followed:
            self._followed.changed()
            is_over = reader.is_over()
            window = reader.tail(FIRST_LINES)
            self._say(News(self.job, window, is_first=True, is_over=is_over))
            while not is_over and not self._is_closed:
                self._followed.wait(_LONG)
                time.sleep(_EVERY)  # what comes meanwhile is told together
                names = self._followed.changed()
                is_over = reader.is_over() if names is None or names - {"output"} or not names else False
                window = self._read_on(reader, window.end, is_over=is_over)

    def _read_on(self, reader: Reader, end: int, *, is_over: bool) -> Window:
        """What came since; of a flood, its end."""
        window, skipped = reader.after(end), False
        if not window.restarted and window.size - window.end > _FLOOD:
            window, skipped = reader.tail(FIRST_LINES), True
        while True:
            is_last = window.is_open or window.end >= window.size or (not window.lines and not window.restarted)
            if window.lines or window.restarted or (is_over and is_last):
                self._say(News(self.job, window, is_over=is_over and is_last, skipped=skipped))
            if is_last or skipped or self._is_closed:
                return window
            window = reader.after(window.end)

    def _say(self, news: News) -> None:
        if not self._is_closed:
            self._tell(news)
