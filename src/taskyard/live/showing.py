"""
Snapshots of lists and jobs, for whoever listens: one thread reads, nobody else does.

    live = Live(yard)
    view = live.watch("release")
    stop = view.listen(lambda snapshot: …)

Three layers tell of changes: file events (a burst gathers for `debounce` seconds after the first of it was shown), what
this process does itself, at once; and while something is unfinished a look by itself every `poll_interval` seconds.
Nothing of it delays the end of the program.
"""

from __future__ import annotations

import sys
import threading
import time

from taskyard import paths
from taskyard.clock import elapsed, now_ms
from taskyard.disk.watch import watcher
from taskyard.live.job_feed import JobFeed
from taskyard.live.list_feed import ListFeed
from taskyard.live.names_feed import NamesFeed
from taskyard.live.watched import View
from taskyard.names import folder_name
from taskyard.view.job_scope import Scope
from taskyard.view.snapshot import Scene
from taskyard.view.timeline import timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.app import Yard
    from taskyard.disk.watch import Followed
    from taskyard.view.timeline import Timeline

#: One sleep while nothing is unfinished, in seconds.
_LONG = 3600.0

#: Where the kernel does not tell of changes, a look each second.
_BLIND_LOOK = 1.0


class Live:
    """Everything that is looked at in this process."""

    def __init__(self, yard: Yard, *, everywhere: bool = False) -> None:
        """Nothing is read yet. `yard` is whose list is watched if no other is named; it stays the caller's.

        `everywhere`: jobs of every project are shown, not only those started in this one.
        """
        self._yard = yard
        self._settings = yard.settings
        self._bell = threading.Event()
        self._lock = threading.RLock()  # readers of feeds: the thread, and whoever watches one more
        self._jobs: JobFeed | None = None
        self._views: dict[str, View] = {}
        self._lists: NamesFeed | None = None
        self._seen: frozenset[str] = frozenset()
        self._project = paths.current_project()
        self._scope = Scope("" if everywhere else self._project)
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_asked = False
        self._shown_at = 0.0
        self._looked_at = elapsed()

    def watch(self, name: str | None = None) -> View:
        """A list, kept in view; its first snapshot is there. Several who watch one share it.

        Raises:
            UsageError: no list can have such a name.
        """
        with self._lock:
            own = self._yard.tasks.name
            folder = folder_name("a list", name) if name is not None else own
            if folder not in self._views:
                self._begin()
                yard = self._yard if folder == own else self._yard.beside(folder)
                self._views[folder] = View(self, folder, ListFeed(yard, self._bell))
                self._round(by_itself=True)
            view = self._views[folder]
            view.users += 1
            return view

    def _begin(self) -> None:
        if self._thread is not None:
            return
        self._jobs = JobFeed(self._yard.home, self._bell)
        self._lists = NamesFeed(self._yard.lists, self._bell)
        watcher().listen()
        self._thread = threading.Thread(target=self._run, name="taskyard-live", daemon=True)
        self._thread.start()

    # -- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed:
            if not self._has_news():
                self._bell.wait(self._patience())
                self._bell.clear()
            rest = self._shown_at + self._settings.debounce - elapsed()
            if rest > 0 and not self._is_closed:
                time.sleep(rest)
            try:
                with self._lock:
                    if not self._is_closed:
                        self._round(by_itself=elapsed() - self._looked_at >= self._settings.poll_interval)
            except Exception as error:  # a defect of ours: it is told, and what is shown must not stand still for it
                sys.excepthook(type(error), error, error.__traceback__)
                time.sleep(_BLIND_LOOK)

    def _has_news(self) -> bool:
        """Whether something came while the last round looked: of a bell that many share, one may have heard it."""
        with self._lock:
            told = any(view.feed.has_news for view in self._views.values())
            told = told or (self._lists is not None and self._lists.has_news)
            return told or self._is_asked or any(followed.has_news for followed in self._followed())

    def _followed(self) -> Iterator[Followed]:
        if self._lists is not None:
            yield from self._lists.followed
        if self._jobs is not None:
            yield from self._jobs.followed
        for view in self._views.values():
            yield from view.feed.followed

    def _patience(self) -> float:
        """How long to sleep, if nothing happens."""
        with self._lock:
            jobs, views = self._jobs, list(self._views.values())
            waits = [_LONG]
            if jobs is not None and jobs.lines_due is not None:
                waits.append(jobs.lines_due)
            if (jobs is not None and jobs.is_busy) or any(view.feed.is_unfinished for view in views):
                waits.append(self._looked_at + self._settings.poll_interval - elapsed())
            if any(followed.at is None for followed in self._followed()):
                waits.append(_BLIND_LOOK)
            now = now_ms()
            waits += [(view.snapshot.until - now) / 1000 for view in views if view.snapshot.until is not None]
            return max(0.0, min(waits))

    def _round(self, *, by_itself: bool) -> None:
        """Look at what changed, and tell whoever listens."""
        with self._yard.lists.hurried():  # what is away is shown as that
            self._look_round(by_itself=by_itself)

    def _look_round(self, *, by_itself: bool) -> None:
        if self._jobs is None or self._lists is None:
            return
        by_itself, self._is_asked = by_itself or self._is_asked, False
        if by_itself:
            self._looked_at = elapsed()
        if self._lists.look():
            for view in self._views.values():
                view.is_stale = True
        jobs_changed = self._jobs.look(by_itself=by_itself)
        for view in list(self._views.values()):
            list_changed = view.feed.look(by_itself=by_itself)
            is_due = view.is_due()
            if list_changed or jobs_changed or is_due:
                view.show(
                    self._scene(view),
                    same_tasks=not list_changed and not is_due,
                    same_jobs=not jobs_changed and not is_due,
                )
                self._shown_at = elapsed()

    def _scene(self, view: View) -> Scene:
        jobs, lists, feed = self._jobs, self._lists, view.feed
        assert jobs is not None and lists is not None  # whoever is viewed has begun
        scoped = self._scope.of(jobs.jobs.values())
        return Scene(
            feed.yard.tasks.name,
            feed.tasks,
            feed.tasks.damaged,
            feed.done_at,
            tuple(scoped.jobs),
            jobs.last_lines,
            feed.members,
            self._yard.agent,
            now_ms(),
            view.snapshot.done_since,
            self._seen,
            tuple(dict.fromkeys(filter(None, (lists.problem, feed.problem, *jobs.problems.values())))),
            lists.is_away or feed.is_away,
            lists.names,
            scoped.elsewhere,
        )

    # -- for views ---------------------------------------------------------------------------

    def ask(self) -> None:
        """Look again now."""
        self._is_asked = True
        self._bell.set()

    @property
    def is_everywhere(self) -> bool:
        """Whether jobs of every project are shown."""
        return not self._scope.project

    def show_everywhere(self, everywhere: bool) -> None:
        """Show the jobs of every project, or only those of this one."""
        with self._lock:
            self._scope = Scope("" if everywhere else self._project)
            for view in self._views.values():
                view.is_stale = True
        self.ask()

    def see(self, job_id: str) -> None:
        """Somebody looked at the end of a job."""
        with self._lock:
            if job_id in self._seen:
                return
            self._seen |= {job_id}
            for view in self._views.values():
                view.is_stale = True
        self.ask()

    def timeline(self, view: View) -> Timeline:
        """Who did what when, on the list of `view` and in jobs."""
        with self._lock:
            jobs = self._scope.of(self._jobs.jobs.values()).jobs if self._jobs is not None else ()
        return timeline(view.yard.tasks.log(), jobs, now=now_ms())

    def leave(self, view: View) -> None:
        """One watcher less; with the last the list is no longer looked at."""
        with self._lock:
            view.users -= 1
            if view.users > 0 or self._views.get(view.name) is not view:
                return
            del self._views[view.name]
            view.feed.close()
            if view.yard is not self._yard:
                view.yard.close()

    def close(self) -> None:
        """Look at nothing any more."""
        with self._lock:
            self._is_closed = True
            for view in list(self._views.values()):
                view.users = 1
                self.leave(view)
            for followed in (*self._followed(),):
                followed.close()
            if self._jobs is not None:
                self._jobs.close()
            if self._lists is not None:
                self._lists.close()
        self._bell.set()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
