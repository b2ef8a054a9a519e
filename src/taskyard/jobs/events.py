"""
Read the event log: from its beginning or from any id, then as it grows.

    for event in yard.events(since=last):                 what is there
    for event in yard.events(since=last, follow=True):    and what comes
    async for event in yard.events(follow=True):          the same, in a program with an event loop

Following needs no polling: inotify reports every write to the log, and the kernel reports killed
supervisors (`recovery.SupervisorWatcher`), whose jobs the follower then recovers. Incomplete entries are
skipped and counted. Events that are no longer kept are never skipped silently: `EventsGone` is raised.
"""

from __future__ import annotations

import os
from functools import partial

from taskyard.core.files import storage_error
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple
from taskyard.errors import BadValue, EventsGone, JobNotFound
from taskyard.jobs.event_log import open_journal
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import is_job_id
from taskyard.jobs.query import read_job
from taskyard.storage.change_feed import subscribe
from taskyard.storage.journal import parse_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from taskyard.storage.inotify import Subscription

#: All event subtypes.
SUBTYPES = ("task_started", "task_progress", "task_notification")

#: Seconds of one sleep while following.
_WAIT_SLICE = 3600.0

#: Seconds to wait for a job's end after its event: a supervisor writes it right after, unless it is stopped.
_END_TIMEOUT = 1.0

#: Milliseconds after which an end that was logged is written or never will be.
_RECENT_MS = 10_000


class Event(NamedTuple):
    """Something that happened to a job."""

    id: int  #: its position in the log; larger is later
    at: int  #: epoch ms
    subtype: str  #: task_started, task_progress, task_notification
    task_id: str  #: the job
    data: Mapping[str, object]  #: the message for claude-agent-sdk's parser

    @property
    def is_end(self) -> bool:
        """Whether it states that its job has ended."""
        return self.subtype == "task_notification"


class Events:
    """Events of one user's jobs, in order; `for` and `async for` continue where the last one stopped."""

    def __init__(
        self,
        home: str,
        since: int | None = None,
        *,
        follow: bool = False,
        job: str | None = None,
        debounce: float = 0.01,
    ) -> None:
        """Find where to begin.

        Args:
            home: `$TASKYARD_HOME`.
            since: The id of the last known event, or 0; by default, all that are kept.
            follow: Wait for new events.
            job: Only events of one job; following ends when the job has ended.
            debounce: Seconds in which a burst is collected.

        Raises:
            EventsGone: some events after `since` are no longer kept, or the log never reached that id.
            BadValue: `since` cannot be an id.
            JobNotFound: there is no such job.
        """
        self.unreadable = 0  #: entries skipped so far, since they were incomplete
        self._home = home
        self._follows = follow
        self._debounce = debounce
        self._job = None if job is None else read_job(home, job).id
        self._journal = open_journal(home)
        self._followed: Subscription | None = None
        self._is_closed = False
        bases = self._journal.segments()
        if since is not None and since < 0:
            raise BadValue("since", since, "the id of an event, or 0")
        self.position = since if since is not None else min(bases, default=0)  #: the id to continue from
        self._base(bases)

    def __iter__(self) -> Iterator[Event]:
        for step in self._steps():
            if isinstance(step, Event):
                yield step
            else:
                step()

    async def __aiter__(self) -> AsyncIterator[Event]:
        import asyncio

        steps = self._steps()
        try:
            for step in steps:
                if isinstance(step, Event):
                    yield step
                else:
                    await asyncio.to_thread(step)
        finally:
            self.close()  # a thread may still wait

    def skip(self) -> int:
        """Skip all existing events; return the id to continue from."""
        self.position = self._end(self._journal.segments())
        return self.position

    def close(self) -> None:
        """End every wait for more events, in any thread."""
        self._is_closed = True
        if self._followed is not None:
            self._followed.wake()

    def _steps(self) -> Iterator[Event | Callable[[], object]]:
        """Yield each event, and in between the calls that wait."""
        if not self._follows:
            yield from self._fresh()
            return
        from taskyard.jobs.recovery import SupervisorWatcher

        with subscribe(self._journal.folder) as followed, SupervisorWatcher(self._home, self._job) as deaths:
            self._followed = followed
            begun = self._end(self._journal.segments())  # running jobs that started before are watched already
            while True:
                followed.changed()
                if self._is_closed:  # checked after reading the changes: `close` wakes us as a change
                    return
                is_over = self._job is not None and read_job(self._home, self._job).is_final
                for event in self._fresh():
                    if event.subtype == "task_started" and event.id > begun:
                        deaths.watch(event.task_id)
                    if is_end_pending(self._home, event):
                        yield partial(wait_for_end, self._home, event)
                    yield event
                    is_over = is_over or (self._job is not None and event.is_end)
                if is_over:
                    return
                yield partial(followed.wait, _WAIT_SLICE, debounce=self._debounce)

    def _fresh(self) -> Iterator[Event]:
        """Yield the events since the last call."""
        while not self._is_closed:
            bases = self._journal.segments()
            base = self._base(bases)
            try:
                yield from self._in_segment(base)
            except FileNotFoundError:
                if bases:
                    raise self._gone(self._journal.segments()) from None
            if not bases or base == bases[-1]:
                return
            self.position = self._journal.following(base)

    def _in_segment(self, base: int) -> Iterator[Event]:
        for place, line in self._journal.lines(base, self.position - base):
            if place < self.position:
                continue  # the event we continue from
            self.position = place + 1
            event = None if line is None else _decode(self.position, line)
            if event is None:
                self.unreadable += 1
            elif self._job in (None, event.task_id):
                yield event

    def _base(self, bases: Sequence[int]) -> int:
        """Return the segment to continue in.

        Raises:
            EventsGone: no segment contains the position.
        """
        base = max((base for base in bases if base <= self.position), default=0)
        is_known = bool(bases) and bases[0] <= self.position < self._journal.following(base)
        if not (is_known or (not bases and self.position == 0)):
            raise self._gone(bases)
        if bases and base == bases[-1] and self.position > self._end(bases):
            raise self._gone(bases)
        return base

    def _gone(self, bases: Sequence[int]) -> EventsGone:
        return EventsGone(self.position, first=min(bases, default=0), last=self._end(bases))

    def _end(self, bases: Sequence[int]) -> int:
        path = self._journal.path(max(bases, default=0))
        try:
            return max(bases, default=0) + os.stat(path).st_size
        except FileNotFoundError:
            return max(bases, default=0)
        except OSError as error:
            raise storage_error(path, error) from error


def is_end_pending(home: str, event: Event) -> bool:
    """Return whether a job's end was logged so recently that it may not be written yet."""
    folder = JobPaths(home, event.task_id)
    is_fresh = event.is_end and now_ms() - event.at < _RECENT_MS
    return is_fresh and os.path.lexists(folder.lock) and not os.path.lexists(folder.end)


def wait_for_end(home: str, event: Event) -> None:
    """Wait until a logged end is written, so that readers of the event find it."""
    from taskyard.jobs.wait import wait

    try:
        wait(home, event.task_id, _END_TIMEOUT)
    except JobNotFound:
        pass  # gc was faster


def to_json(event: Event) -> dict[str, object]:
    """Return an event for programs: the message, with its id and time."""
    return {"id": event.id, "at": event.at, **event.data}


def _decode(event_id: int, line: bytes) -> Event | None:
    data = parse_entry(line) or {}
    at, subtype, task_id = data.pop("at", None), data.get("subtype"), data.get("task_id")
    data.pop("id", None)  # the id is its position
    if not isinstance(at, int) or not isinstance(subtype, str) or not is_job_id(task_id):
        return None
    return Event(event_id, at, subtype, task_id, data)
