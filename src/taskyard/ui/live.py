"""Live snapshots of task lists and jobs, kept up to date by one background thread.

    live = LiveFeed(yard)
    view = live.watch("release")
    stop = view.listen(lambda snapshot: …)

`LiveFeed` owns the thread, which does all reads except that of a first snapshot (`watch`). It combines `JobFeed`
(every job of this user and its last output line), `ListNamesFeed` (the names of all lists) and one `ListFeed` per
watched list (tasks, completion times, team members) into a `Snapshot` per `LiveView`.

Three sources trigger a refresh: file events (inotify; after a snapshot, further events are collected for `debounce`
seconds), acts of this process (at once), and, while something is unfinished, a poll every `poll_interval` seconds.
Only jobs whose folder changed are read again; the exit of a supervisor shows on its `control` pipe. Last output
lines are read at most ten times a second, however much a job prints. The thread is a daemon: it never delays the
exit of the program.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from contextlib import ExitStack

from taskyard import config
from taskyard.core.system import boottime, now_ms
from taskyard.core.text import escape_control
from taskyard.core.values import folder_name
from taskyard.errors import Damaged, NotFound, StoreAway, TaskyardError
from taskyard.jobs import query
from taskyard.jobs.job_dir import JobPaths, dismissed_folder, live_folder, supervisor_pid
from taskyard.jobs.model import is_job_id
from taskyard.storage.inotify import WaitThread, watcher
from taskyard.tasks.model import Listing
from taskyard.tasks.text import JUST_DONE_MS
from taskyard.ui.jobs import JobScope
from taskyard.ui.output import read_last_line
from taskyard.ui.snapshot import Snapshot, ViewInput, build_snapshot, timeline
from taskyard.ui.tasks import ViewCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from taskyard.agents.teams import MemberStatus
    from taskyard.jobs.model import Job
    from taskyard.storage.inotify import Subscription
    from taskyard.tasks.lists import Lists
    from taskyard.tasks.model import Change
    from taskyard.ui.snapshot import Timeline
    from taskyard.yard import Yard


if TYPE_CHECKING:
    Listener = Callable[[Snapshot], None]


class LiveView:
    """One watched list: its newest snapshot and the listeners for the next one."""

    def __init__(self, live: LiveFeed, name: str, feed: ListFeed) -> None:
        self.name = name
        self.feed = feed
        self.snapshot = Snapshot(name)  #: the newest
        self.is_stale = True  #: something other than its list or the jobs changed
        self.users = 0
        self._live = live
        self._memory = ViewCache()
        self._listeners: list[Listener] = []

    @property
    def yard(self) -> Yard:
        """The yard to use for acts on this list."""
        return self.feed.yard

    def is_due(self) -> bool:
        """Return whether elapsed time, or a change outside the list, requires another snapshot."""
        return self.is_stale or (self.snapshot.until is not None and now_ms() >= self.snapshot.until)

    def show(self, scene: ViewInput, *, same_tasks: bool = False, same_jobs: bool = False) -> None:
        """Build a snapshot, and notify listeners if it shows anything new."""
        self.is_stale = False
        before = self.snapshot
        self.snapshot = build_snapshot(scene, before, same_tasks=same_tasks, same_jobs=same_jobs, memory=self._memory)
        if self.snapshot._replace(until=before.until, done_since=before.done_since) == before:
            return
        for listener in list(self._listeners):
            self._tell(listener)

    def _tell(self, listener: Listener) -> None:
        try:
            listener(self.snapshot)
        except Exception as error:  # a listener that raises is removed; the others are still notified
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)
            sys.excepthook(type(error), error, error.__traceback__)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each new snapshot, in the thread that built it; return a function that unsubscribes."""
        self._listeners.append(listener)

        def end() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def look(self) -> None:
        """Request a refresh now."""
        self._live.ask()

    def see(self, job_id: str) -> None:
        """Mark a job's end as seen by the user, so that it is not flagged again."""
        self._live.see(job_id)

    @property
    def is_everywhere(self) -> bool:
        """Whether jobs of every project are shown."""
        return self._live.is_everywhere

    def show_all_projects(self, everywhere: bool) -> None:
        """Show jobs of every project, or only of this one."""
        self._live.show_all_projects(everywhere)

    def history(self, task_id: str) -> Sequence[Change]:
        """Return the changes of one task, oldest first."""
        return self.yard.tasks.log(task_id)

    def timeline(self) -> Timeline:
        """Return who did what when."""
        return self._live.timeline(self)

    def close(self) -> None:
        """Stop watching the list."""
        self._live.leave(self)


class ListFeed:
    """The tasks, completion times and team members of one list; used by one thread."""

    def __init__(self, yard: Yard, bell: threading.Event) -> None:
        """Subscribe to the list and its team. `bell` is set when there is something to read."""
        self.yard = yard
        self.tasks = Listing()
        self.done_at: dict[str, int] = {}
        self.members: Sequence[MemberStatus] = ()
        self.problem = ""  #: why the list cannot be read; "" if it can
        self.is_away = False  #: whether the reason is that its store is unreachable
        self._position: int | None = None
        self._team = watcher().follow(f"{yard.home}/teams", news=bell)
        self._hearing = ExitStack()  # changes in a database show in no folder
        self._hearing.enter_context(yard.teams.heard(self._team.ring))
        self._folder: Subscription | None = None
        self._bell = bell
        self._told = threading.Event()
        self._store_subscription: WaitThread | None = None
        if yard.lists.folder is not None:
            self._folder = watcher().follow(os.path.join(yard.lists.folder, yard.tasks.name), news=bell)
        else:
            self._store_subscription = WaitThread(yard.tasks.store.wait, self._notify)

    def _notify(self) -> None:
        self._told.set()
        self._bell.set()

    @property
    def followed(self) -> Iterable[Subscription]:
        """All subscriptions that set the wake-up event."""
        return (self._team, self._folder) if self._folder is not None else (self._team,)

    @property
    def is_unfinished(self) -> bool:
        """Whether any task is not done."""
        return any(not task.is_done for task in self.tasks)

    def look(self, *, is_poll: bool = False) -> bool:
        """Refresh everything and return whether anything changed. `is_poll`: not triggered by an event."""
        is_first = self._position is None
        has_news = self._has_news()
        if self._team.told() != set() or is_poll or is_first:
            members = self._read_members()
            team_changed, self.members = members != self.members, members
        else:
            team_changed = False
        if not has_news and not is_poll and not is_first:
            return team_changed
        return self._read() or team_changed or is_first

    def _has_news(self) -> bool:
        if self._folder is not None:
            return self._folder.changed() != set()
        if not self._told.is_set():
            return False
        self._told.clear()  # clear before reading: a change signalled from here on causes one more read
        return True

    @property
    def has_news(self) -> bool:
        """Whether anything changed since the last refresh."""
        is_told = self._folder is None and self._told.is_set()
        return is_told or any(followed.has_news for followed in self.followed)

    def _read(self) -> bool:
        before, was_wrong = self.tasks, self.problem
        self.is_away = False
        try:
            began = self.yard.tasks.store.position() if self._position is None else None
            self.tasks = self.yard.tasks.list()
            if began is not None:
                self._read_recent_log()
                self._position = began
            self._read_log()
            self.problem = ""
        except StoreAway as error:
            self.is_away = True
            self.problem = escape_control(str(self.yard.lists.away or error))
        except (TaskyardError, OSError) as error:
            self.problem = escape_control(str(error))
        return self.tasks is not before or self.problem != was_wrong

    def _read_recent_log(self) -> None:
        """Read when recently completed tasks were completed; for older ones the display does not depend on it."""
        recent = now_ms() - JUST_DONE_MS
        for task in self.tasks:
            if task.is_done and (task.updated_at or 0) > recent:
                self._note(self.yard.tasks.log(task.id))

    def _read_log(self) -> None:
        """Read completion times since the last position from the log: task files only have the last change."""
        news = self.yard.tasks.log(since=self._position or 0)
        self._note(news)
        if news:
            self._position = news[-1].id + 1

    def _note(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.aborted:
                continue
            for task_id, task in change.tasks.items():
                if task is None or not task.is_done:
                    self.done_at.pop(task_id, None)
                else:
                    self.done_at.setdefault(task_id, change.at)

    def _read_members(self) -> Sequence[MemberStatus]:
        try:
            return tuple(self.yard.teams.members(self.yard.tasks.name))
        except StoreAway:
            return self.members
        except (NotFound, Damaged, OSError, TaskyardError):
            return ()  # there is no team, or none that can be read: `taskyard team` reports why

    def close(self) -> None:
        """Close all subscriptions."""
        self._hearing.close()
        if self._store_subscription is not None:
            self._store_subscription.close()
        for followed in self.followed:
            followed.close()


class ListNamesFeed:
    """The names of all lists of a store; used by one thread."""

    def __init__(self, lists: Lists, bell: threading.Event) -> None:
        """Subscribe to the lists. `bell` is set when there may be another list."""
        self.names: tuple[str, ...] = ()
        self.problem = ""  #: why the names cannot be read; "" if they can
        self.is_away = False  #: whether the reason is that the store is unreachable
        self._lists = lists
        self._bell = bell
        self._told = threading.Event()
        self._store_subscription: WaitThread | None = None
        self.followed: Sequence[Subscription] = ()  #: all subscriptions that set the wake-up event
        if lists.folder is not None:
            self.followed = (watcher().follow(lists.folder, news=bell),)
        else:
            self._store_subscription = WaitThread(lists.wait, self._notify)

    def _notify(self) -> None:
        self._told.set()
        self._bell.set()

    @property
    def has_news(self) -> bool:
        """Whether anything changed since the last refresh."""
        return self._told.is_set() or any(followed.has_news for followed in self.followed)

    def look(self) -> bool:
        """Refresh the names and return whether anything changed."""
        if not self._needs_refresh():
            return False
        was = self.names, self.problem
        self.is_away = False
        try:
            self.names, self.problem = tuple(self._lists.names()), ""
        except StoreAway as error:
            self.is_away = True
            self.problem = escape_control(str(self._lists.away or error))
        except TaskyardError as error:
            self.problem = escape_control(str(error))
        return was != (self.names, self.problem)

    def _needs_refresh(self) -> bool:
        is_told = self._told.is_set()
        self._told.clear()  # clear before reading: a change signalled from here on causes one more read
        names = [followed.told() for followed in self.followed]
        return is_told or bool(self.problem) or not self.names or any(each != set() for each in names)

    def close(self) -> None:
        """Close all subscriptions."""
        if self._store_subscription is not None:
            self._store_subscription.close()
        for followed in self.followed:
            followed.close()


#: Ended jobs that are shown, the latest; `taskyard ps --all` lists the others.
MOST_ENDED = 200

#: Seconds between two reads of the jobs' last output lines: faster updates cannot be read anyway.
LINES_EVERY = 0.1

#: Files in a job's folder that do not affect its state: output, and the lock that a check for the supervisor opens.
_OUTPUT_FILES = frozenset({"output", "transcript.jsonl"})
_IGNORED_FILES = frozenset({"keeper.lock"})


class JobFeed:
    """All jobs of this user and their last output lines; used by one thread."""

    def __init__(self, home: str, bell: threading.Event) -> None:
        """Subscribe to the job folders. `bell` is set when there is something to read."""
        self.jobs: dict[str, Job] = {}
        self.last_lines: dict[str, str] = {}
        self.problems: dict[str, str] = {}  #: why a job cannot be read, by job id
        self._home = home
        self._bell = bell
        self._names = [watcher().follow(path, news=bell) for path in _watched_folders(home)]
        self._folders: dict[str, Subscription] = {}
        self._unread: set[str] = set()  # jobs whose last output line must be read
        self._lines_at = 0.0
        self._is_new = True

    @property
    def followed(self) -> Iterable[Subscription]:
        """All subscriptions that set the wake-up event."""
        return (*self._names, *self._folders.values())

    @property
    def is_busy(self) -> bool:
        """Whether any job has not ended."""
        return bool(self._folders)

    @property
    def lines_due(self) -> float | None:
        """Seconds until last output lines must be read; None if there are none to read."""
        return max(0.0, self._lines_at + LINES_EVERY - boottime()) if self._unread else None

    def look(self, *, is_poll: bool = False) -> bool:
        """Refresh everything and return whether anything changed.

        `is_poll`: not triggered by an event; also find jobs whose supervisor exited without an event.
        """
        changed = self._look_at(self._changed_jobs(is_poll=is_poll))
        if self._unread and self.lines_due == 0:
            changed |= self._read_lines()
        return changed

    def _changed_jobs(self, *, is_poll: bool) -> set[str]:
        names = [followed.told() for followed in self._names]
        wanted: set[str] = set()
        if self._is_new or None in names:
            self._is_new = False
            wanted |= self._newest() | set(self.jobs)
        wanted.update(*(some for some in names if some is not None))
        for job_id, folder in self._folders.items():
            news = folder.changed() if folder.has_news else frozenset[str]()
            if news is None or news - _OUTPUT_FILES - _IGNORED_FILES:
                wanted.add(job_id)
            if news is None or news & _OUTPUT_FILES:
                self._unread.add(job_id)
            if is_poll and supervisor_pid(JobPaths(self._home, job_id)) is None:
                wanted.add(job_id)
        return {name for name in wanted if is_job_id(name)}

    def _newest(self) -> set[str]:
        """Return the ids of running jobs and of those that ended last."""
        living = _job_ids_in(live_folder(self._home))
        found = [(_mtime(f"{self._home}/jobs/{name}"), name) for name in _job_ids_in(f"{self._home}/jobs")]
        found.sort(reverse=True)
        return {*living, *(name for _, name in found[: MOST_ENDED + len(living)])}

    def _look_at(self, names: Iterable[str]) -> bool:
        changed = False
        for name in names:
            job = self._read_job(name)
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
                self._folders[name] = watcher().follow(JobPaths(self._home, name).path, news=self._bell)
        return self._drop_old() or changed

    def _read_job(self, name: str) -> Job | None:
        try:
            job = query.read_job(self._home, name)
        except (TaskyardError, OSError) as error:
            if os.path.lexists(JobPaths(self._home, name).path):
                self.problems[name] = escape_control(str(error))
            return None
        self.problems.pop(name, None)
        return job if os.path.lexists(JobPaths(self._home, name).path) else None  # garbage-collected meanwhile

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
        if not os.path.lexists(JobPaths(self._home, name).path):
            self.problems.pop(name, None)

    def _unfollow(self, name: str) -> None:
        if (folder := self._folders.pop(name, None)) is not None:
            folder.close()

    def _read_lines(self) -> bool:
        self._lines_at = boottime()
        unread, self._unread = self._unread, set()
        changed = False
        for name in unread & self.jobs.keys():
            line = read_last_line(self._home, name)
            if self.last_lines.get(name, "") != line:
                self.last_lines[name] = line
                changed = True
        return changed

    def close(self) -> None:
        """Close all subscriptions."""
        for followed in self.followed:
            followed.close()
        self._names, self._folders = [], {}


def _watched_folders(home: str) -> tuple[str, ...]:
    """Return the folders whose entries are the ids of jobs that were created, ended or dismissed."""
    return (f"{home}/jobs", live_folder(home), dismissed_folder(home))


def _job_ids_in(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if is_job_id(name)]
    except OSError:
        return []  # it does not exist yet


def _mtime(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0  # garbage-collected meanwhile; sorts last, so it displaces no other job


#: Sleep while nothing is unfinished, in seconds.
_IDLE_SLEEP = 3600.0

#: Seconds between two polls where the kernel does not report changes (no inotify).
_FALLBACK_POLL = 1.0


class LiveFeed:
    """All watched lists and jobs of this process."""

    def __init__(self, yard: Yard, *, everywhere: bool = False) -> None:
        """Set up without reading anything.

        Args:
            yard: Its list is watched if no other is named; the caller keeps ownership.
            everywhere: Show jobs of every project, not only those started in this one.
        """
        self._yard = yard
        self._settings = yard.settings
        self._bell = threading.Event()
        self._lock = threading.RLock()  # feeds are read by the thread and by callers of `watch`
        self._jobs: JobFeed | None = None
        self._views: dict[str, LiveView] = {}
        self._lists: ListNamesFeed | None = None
        self._seen: frozenset[str] = frozenset()
        self._project = config.current_project()
        self._scope = JobScope("" if everywhere else self._project)
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._refresh_requested = False
        self._shown_at = 0.0
        self._looked_at = boottime()

    def watch(self, name: str | None = None) -> LiveView:
        """Return the view of a list, with its first snapshot built; all watchers of a list share one view.

        Raises:
            UsageError: The name is not a valid list name.
        """
        with self._lock:
            own = self._yard.tasks.name
            folder = folder_name("a list", name) if name is not None else own
            if folder not in self._views:
                self._begin()
                yard = self._yard if folder == own else self._yard.beside(folder)
                self._views[folder] = LiveView(self, folder, ListFeed(yard, self._bell))
                self._round(is_poll=True)
            view = self._views[folder]
            view.users += 1
            return view

    def _begin(self) -> None:
        if self._thread is not None:
            return
        self._jobs = JobFeed(self._yard.home, self._bell)
        self._lists = ListNamesFeed(self._yard.lists, self._bell)
        watcher().listen()
        self._thread = threading.Thread(target=self._run, name="taskyard-live", daemon=True)
        self._thread.start()

    # -- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed:
            if not self._has_news():
                self._bell.wait(self._patience())
                self._bell.clear()
            rest = self._shown_at + self._settings.debounce - boottime()
            if rest > 0 and not self._is_closed:
                time.sleep(rest)
            try:
                with self._lock:
                    if not self._is_closed:
                        self._round(is_poll=boottime() - self._looked_at >= self._settings.poll_interval)
            except Exception as error:  # a defect of Taskyard: report it, but keep the display updating
                sys.excepthook(type(error), error, error.__traceback__)
                time.sleep(_FALLBACK_POLL)

    def _has_news(self) -> bool:
        """Whether a change arrived during the last round: the shared event may have been cleared for it already."""
        with self._lock:
            told = any(view.feed.has_news for view in self._views.values())
            told = told or (self._lists is not None and self._lists.has_news)
            return told or self._refresh_requested or any(followed.has_news for followed in self._followed())

    def _followed(self) -> Iterator[Subscription]:
        if self._lists is not None:
            yield from self._lists.followed
        if self._jobs is not None:
            yield from self._jobs.followed
        for view in self._views.values():
            yield from view.feed.followed

    def _patience(self) -> float:
        """Return how long to sleep if nothing happens, in seconds."""
        with self._lock:
            jobs, views = self._jobs, list(self._views.values())
            waits = [_IDLE_SLEEP]
            if jobs is not None and jobs.lines_due is not None:
                waits.append(jobs.lines_due)
            if (jobs is not None and jobs.is_busy) or any(view.feed.is_unfinished for view in views):
                waits.append(self._looked_at + self._settings.poll_interval - boottime())
            if any(followed.at is None for followed in self._followed()):
                waits.append(_FALLBACK_POLL)
            now = now_ms()
            waits += [(view.snapshot.until - now) / 1000 for view in views if view.snapshot.until is not None]
            return max(0.0, min(waits))

    def _round(self, *, is_poll: bool) -> None:
        """Refresh what changed and notify listeners."""
        with self._yard.lists.hurried():  # an unreachable store is shown as such, without waiting for it
            self._refresh_all(is_poll=is_poll)

    def _refresh_all(self, *, is_poll: bool) -> None:
        if self._jobs is None or self._lists is None:
            return
        is_poll, self._refresh_requested = is_poll or self._refresh_requested, False
        if is_poll:
            self._looked_at = boottime()
        if self._lists.look():
            for view in self._views.values():
                view.is_stale = True
        jobs_changed = self._jobs.look(is_poll=is_poll)
        for view in list(self._views.values()):
            list_changed = view.feed.look(is_poll=is_poll)
            is_due = view.is_due()
            if list_changed or jobs_changed or is_due:
                view.show(
                    self._scene(view),
                    same_tasks=not list_changed and not is_due,
                    same_jobs=not jobs_changed and not is_due,
                )
                self._shown_at = boottime()

    def _scene(self, view: LiveView) -> ViewInput:
        jobs, lists, feed = self._jobs, self._lists, view.feed
        assert jobs is not None and lists is not None  # a view exists only after `_begin`
        scoped = self._scope.of(jobs.jobs.values())
        return ViewInput(
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
        """Request a refresh now."""
        self._refresh_requested = True
        self._bell.set()

    @property
    def is_everywhere(self) -> bool:
        """Whether jobs of every project are shown."""
        return not self._scope.project

    def show_all_projects(self, everywhere: bool) -> None:
        """Show the jobs of every project, or only those of this one."""
        with self._lock:
            self._scope = JobScope("" if everywhere else self._project)
            for view in self._views.values():
                view.is_stale = True
        self.ask()

    def see(self, job_id: str) -> None:
        """Mark a job's end as seen by the user."""
        with self._lock:
            if job_id in self._seen:
                return
            self._seen |= {job_id}
            for view in self._views.values():
                view.is_stale = True
        self.ask()

    def timeline(self, view: LiveView) -> Timeline:
        """Return who did what when, on the list of `view` and in jobs."""
        with self._lock:
            jobs = self._scope.of(self._jobs.jobs.values()).jobs if self._jobs is not None else ()
        return timeline(view.yard.tasks.log(), jobs, now=now_ms())

    def leave(self, view: LiveView) -> None:
        """Remove one watcher; after the last one the list is no longer read."""
        with self._lock:
            view.users -= 1
            if view.users > 0 or self._views.get(view.name) is not view:
                return
            del self._views[view.name]
            view.feed.close()
            if view.yard is not self._yard:
                view.yard.close()

    def close(self) -> None:
        """Stop the thread and close all feeds."""
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

    def __enter__(self) -> LiveFeed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
