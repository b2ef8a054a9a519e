"""
What happened to the jobs of a home, told by the kernel.

One queue of file events, which says only what matters: a name among the living that comes or goes, or whose keeper
closed it by dying; a record or facts that were replaced; an event that was appended; a notice that was put into a box.
That a job prints is nothing to us.
"""

from __future__ import annotations

import os
import select

from taskyard.disk import inotify
from taskyard.disk.files import make_private_folder
from taskyard.disk.inotify import Inotify
from taskyard.runtime import outboxes
from taskyard.runtime.event_stream import journal_of
from taskyard.runtime.folder import JobFolder, living_folder
from taskyard.runtime.ids import is_job_id
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_COMES_OR_GOES = inotify.CREATE | inotify.DELETE | inotify.MOVED_TO | inotify.CLOSE_WRITE


class News(NamedTuple):
    """What to look at."""

    jobs: frozenset[str] = frozenset()  #: began, ended, or their keepers died
    changed: frozenset[str] = frozenset()  #: something else of them
    is_asked: bool = False  #: somebody woke us
    is_overrun: bool = False  #: too much happened: look at everything


class Watching:
    """The file events of one home, for one thread; `wake` is for the others."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._queue = Inotify()
        self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._jobs: dict[str, int] = {}
        self._boxes: dict[str, int] = {}
        events = journal_of(home).folder
        for folder in (f"{home}/jobs", living_folder(home), events, outboxes.folder_of(home)):
            make_private_folder(folder)
        self._living = self._queue.add(living_folder(home), _COMES_OR_GOES)
        self._queue.add(events, inotify.CREATE | inotify.MODIFY)
        self._outbox = self._queue.add(outboxes.folder_of(home), inotify.CREATE)
        self._follow_boxes()

    def follow(self, living: Iterable[str]) -> None:
        """Hear of these jobs' records from now on, and of no others'."""
        wanted = set(living)
        for job_id in wanted - self._jobs.keys():
            try:
                self._jobs[job_id] = self._queue.add(JobFolder(self._home, job_id).path, inotify.MOVED_TO)
            except OSError:
                continue  # gone by now; or no more watches to be had: its beginning and end are heard all the same
        for job_id in self._jobs.keys() - wanted:
            self._queue.remove(self._jobs.pop(job_id))

    def wait(self, seconds: float) -> News:
        """Sleep until something happened, at most so long; what it was."""
        select.select([self._queue.fd, self._wake[0]], [], [], max(seconds, 0.0))
        is_asked = self._is_woken()
        by_number = {number: job_id for job_id, number in self._jobs.items()}
        jobs: set[str] = set()
        changed: set[str] = set()
        is_overrun = False
        for number, mask, name in self._queue.read():
            is_overrun = is_overrun or bool(mask & inotify.OVERFLOW)
            if number == self._living and is_job_id(name):
                jobs.add(name)
            elif number == self._outbox:
                self._follow_boxes()
            elif number in by_number:
                changed.add(by_number[number])
        return News(frozenset(jobs), frozenset(changed), is_asked, is_overrun)

    def wake(self) -> None:
        """End the wait, from another thread."""
        try:
            os.write(self._wake[1], b"\0")
        except (BlockingIOError, OSError):
            pass  # it is awake already, or gone

    def close(self) -> None:
        """Hear nothing any more."""
        self._queue.close()

    def _follow_boxes(self) -> None:
        """Hear of every box that is there."""
        for box in outboxes.boxes(self._home):
            if box.path not in self._boxes:
                try:
                    self._boxes[box.path] = self._queue.add(f"{box.path}/new", inotify.MOVED_TO)
                except OSError:
                    continue

    def _is_woken(self) -> bool:
        try:
            return bool(os.read(self._wake[0], 4096))
        except BlockingIOError:
            return False
