"""
Every job of this user, kept in memory and up to date.

The kernel tells which folders changed, and only those jobs are looked at again; that a keeper died shows on its
`control` pipe. What a job printed last is read at most ten times a second, however much it prints.
"""

from __future__ import annotations

import os

from taskyard.clock import elapsed
from taskyard.disk.watch import watcher
from taskyard.errors import TaskyardError
from taskyard.live.last_line import last_line
from taskyard.runtime import looking
from taskyard.runtime.folder import JobFolder, dismissed_folder, living_folder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import keeper_of
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

    from taskyard.disk.watch import Followed
    from taskyard.runtime.model import Job

#: Of those that are over, the latest are shown; `taskyard ps --all` has the others.
MOST_ENDED = 200

#: Seconds between two looks at what jobs printed last: more often no eye can follow.
LINES_EVERY = 0.1

#: Files in a job's folder that say nothing of its state: its output grows, and who asks for its keeper opens the lock.
_OUTPUT = frozenset({"output", "transcript.jsonl"})
_NO_NEWS = frozenset({"keeper.lock"})


class JobFeed:
    """All jobs; used by one thread."""

    def __init__(self, home: str, bell: threading.Event) -> None:
        """`bell` rings when there is something to look at."""
        self.jobs: dict[str, Job] = {}
        self.last_lines: dict[str, str] = {}
        self.problems: dict[str, str] = {}  #: what cannot be read, in words, by job
        self._home = home
        self._bell = bell
        self._names = [watcher().follow(path, news=bell) for path in _told_in(home)]
        self._folders: dict[str, Followed] = {}
        self._unread: set[str] = set()  # what these printed last is to be read
        self._lines_at = 0.0
        self._is_new = True

    @property
    def followed(self) -> Iterable[Followed]:
        """Everything whose changes ring the bell."""
        return (*self._names, *self._folders.values())

    @property
    def is_busy(self) -> bool:
        """Whether a job is not over."""
        return bool(self._folders)

    @property
    def lines_due(self) -> float | None:
        """In how many seconds last lines want to be read; None: none does."""
        return max(0.0, self._lines_at + LINES_EVERY - elapsed()) if self._unread else None

    def look(self, *, by_itself: bool = False) -> bool:
        """Bring everything up to date; whether anything changed.

        `by_itself`: no event said so: whoever died unheard is found now.
        """
        changed = self._look_at(self._to_look_at(by_itself=by_itself))
        if self._unread and self.lines_due == 0:
            changed |= self._read_lines()
        return changed

    def _to_look_at(self, *, by_itself: bool) -> set[str]:
        names = [followed.told() for followed in self._names]
        wanted: set[str] = set()
        if self._is_new or None in names:
            self._is_new = False
            wanted |= self._newest() | set(self.jobs)
        wanted.update(*(some for some in names if some is not None))
        for job_id, folder in self._folders.items():
            news = folder.changed() if folder.has_news else frozenset[str]()
            if news is None or news - _OUTPUT - _NO_NEWS:
                wanted.add(job_id)
            if news is None or news & _OUTPUT:
                self._unread.add(job_id)
            if by_itself and keeper_of(JobFolder(self._home, job_id)) is None:
                wanted.add(job_id)
        return {name for name in wanted if is_job_id(name)}

    def _newest(self) -> set[str]:
        """The living, and those that ended last."""
        living = _names_in(living_folder(self._home))
        found = [(_changed_at(f"{self._home}/jobs/{name}"), name) for name in _names_in(f"{self._home}/jobs")]
        found.sort(reverse=True)
        return {*living, *(name for _, name in found[: MOST_ENDED + len(living)])}

    def _look_at(self, names: Iterable[str]) -> bool:
        changed = False
        for name in names:
            job = self._one(name)
            if self.jobs.get(name) != job:
                changed = True
                self._unread.add(name)
            if job is None:
                self._forget(name)
                continue
            self.jobs[name] = job
            if job.is_final:
                self._unfollow(name)
            elif name not in self._folders:
                self._folders[name] = watcher().follow(JobFolder(self._home, name).path, news=self._bell)
        return self._drop_old() or changed

    def _one(self, name: str) -> Job | None:
        try:
            job = looking.look(self._home, name)
        except (TaskyardError, OSError) as error:
            if os.path.lexists(JobFolder(self._home, name).path):
                self.problems[name] = safe(str(error))
            return None
        self.problems.pop(name, None)
        return job if os.path.lexists(JobFolder(self._home, name).path) else None  # collected by now

    def _drop_old(self) -> bool:
        over = [job for job in self.jobs.values() if job.is_final]
        if len(over) <= MOST_ENDED:
            return False
        over.sort(key=lambda job: job.end_time or 0)
        for job in over[:-MOST_ENDED]:
            self._forget(job.id)
        return True

    def _forget(self, name: str) -> None:
        self._unfollow(name)
        self.jobs.pop(name, None)
        self.last_lines.pop(name, None)
        self._unread.discard(name)
        if not os.path.lexists(JobFolder(self._home, name).path):
            self.problems.pop(name, None)

    def _unfollow(self, name: str) -> None:
        if (folder := self._folders.pop(name, None)) is not None:
            folder.close()

    def _read_lines(self) -> bool:
        self._lines_at = elapsed()
        unread, self._unread = self._unread, set()
        changed = False
        for name in unread & self.jobs.keys():
            line = last_line(self._home, name)
            if self.last_lines.get(name, "") != line:
                self.last_lines[name] = line
                changed = True
        return changed

    def close(self) -> None:
        """Follow nothing any longer."""
        for followed in self.followed:
            followed.close()
        self._names, self._folders = [], {}


def _told_in(home: str) -> tuple[str, ...]:
    """Folders whose entries are the ids of jobs that came, ended or were dismissed."""
    return (f"{home}/jobs", living_folder(home), dismissed_folder(home))


def _names_in(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if is_job_id(name)]
    except OSError:
        return []  # there is none yet


def _changed_at(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0  # collected by now; that hides no other
