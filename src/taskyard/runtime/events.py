"""
The stream of events, read: from its beginning or from any id, then as it grows.

    for event in yard.events(since=last):                 what is there
    for event in yard.events(since=last, follow=True):    and what comes
    async for event in yard.events(follow=True):          the same, in a program with an event loop

Nothing is polled: the kernel tells of every write to the stream, and of keepers that die without a word, whose jobs
are then closed by the follower itself (`deaths`). What was not written whole is passed over and counted. Events that
are no longer kept are never skipped in silence: `EventsGone` says so.
"""

from __future__ import annotations

import os
from functools import partial

from taskyard.clock import now_ms
from taskyard.disk.files import storage_error
from taskyard.disk.follow import follow
from taskyard.disk.journal import parsed
from taskyard.errors import BadValue, EventsGone, JobNotFound
from taskyard.runtime.event_stream import journal_of
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.looking import look
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from taskyard.disk.watch import Followed

#: Every kind of event there is.
SUBTYPES = ("task_started", "task_progress", "task_notification")

#: One sleep of those who follow, in seconds.
_LONG = 3600.0

#: A keeper writes a job's end right after it told of it; one that is stopped is not waited for longer, in seconds.
_PATIENCE = 1.0

#: An end that was told longer ago, in milliseconds, is written by now or never will be.
_FRESH = 10_000


class Event(NamedTuple):
    """Something that happened to a job."""

    id: int  #: its place in the stream; larger is later
    at: int  #: epoch ms
    subtype: str  #: task_started, task_progress, task_notification
    task_id: str  #: the job
    data: Mapping[str, object]  #: the message as claude-agent-sdk's parser takes it

    @property
    def is_end(self) -> bool:
        """Whether it says that its job is over."""
        return self.subtype == "task_notification"


class Events:
    """Events of one user's jobs, in order; `for` and `async for` go on where the last one stopped."""

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
            since: The id of the last event that is known, or 0; if not given, all that are kept.
            follow: Stay for those that come.
            job: Only those of one job; whoever follows stays until it is over.
            debounce: Seconds in which a burst gathers.

        Raises:
            EventsGone: some events after `since` are no longer kept, or the stream never came that far.
            BadValue: it cannot be an id.
            JobNotFound: there is no such job.
        """
        self.unreadable = 0  #: what was passed over so far, since it was not written whole
        self._home = home
        self._follows = follow
        self._debounce = debounce
        self._job = None if job is None else look(home, job).id
        self._journal = journal_of(home)
        self._followed: Followed | None = None
        self._is_closed = False
        bases = self._journal.segments()
        if since is not None and since < 0:
            raise BadValue("since", since, "the id of an event, or 0")
        self.position = since if since is not None else min(bases, default=0)  #: the id to go on from
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
        """Pass over everything that is there; where to go on from."""
        self.position = self._end(self._journal.segments())
        return self.position

    def close(self) -> None:
        """Let whoever waits for more, in any thread, come to its end."""
        self._is_closed = True
        if self._followed is not None:
            self._followed.wake()

    def _steps(self) -> Iterator[Event | Callable[[], object]]:
        """Each event, and in between what must be waited for."""
        if not self._follows:
            yield from self._fresh()
            return
        from taskyard.runtime.deaths import Deaths

        with follow(self._journal.folder) as followed, Deaths(self._home, self._job) as deaths:
            self._followed = followed
            begun = self._end(self._journal.segments())  # who began before then, and lives, is watched already
            while True:
                followed.changed()
                if self._is_closed:  # asked after the news was emptied: the call to end is news
                    return
                is_over = self._job is not None and look(self._home, self._job).is_final
                for event in self._fresh():
                    if event.subtype == "task_started" and event.id > begun:
                        deaths.watch(event.task_id)
                    if is_early(self._home, event):
                        yield partial(until_ended, self._home, event)
                    yield event
                    is_over = is_over or (self._job is not None and event.is_end)
                if is_over:
                    return
                yield partial(followed.wait, _LONG, debounce=self._debounce)

    def _fresh(self) -> Iterator[Event]:
        """What came since last asked."""
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
                continue  # the one we came from
            self.position = place + 1
            event = None if line is None else _decoded(self.position, line)
            if event is None:
                self.unreadable += 1
            elif self._job in (None, event.task_id):
                yield event

    def _base(self, bases: Sequence[int]) -> int:
        """Which of the segments to go on in.

        Raises:
            EventsGone: none of them.
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


def is_early(home: str, event: Event) -> bool:
    """Whether a job's end was told so recently that others may not see it yet."""
    folder = JobFolder(home, event.task_id)
    is_fresh = event.is_end and now_ms() - event.at < _FRESH
    return is_fresh and os.path.lexists(folder.lock) and not os.path.lexists(folder.end)


def until_ended(home: str, event: Event) -> None:
    """See that whoever hears of an end finds it, too."""
    from taskyard.runtime.waiting import wait

    try:
        wait(home, event.task_id, _PATIENCE)
    except JobNotFound:
        pass  # gc was quicker


def to_json(event: Event) -> dict[str, object]:
    """An event for programs: the message, with its id and time."""
    return {"id": event.id, "at": event.at, **event.data}


def _decoded(event_id: int, line: bytes) -> Event | None:
    data = parsed(line) or {}
    at, subtype, task_id = data.pop("at", None), data.get("subtype"), data.get("task_id")
    data.pop("id", None)  # ours is its place
    if not isinstance(at, int) or not isinstance(subtype, str) or not is_job_id(task_id):
        return None
    return Event(event_id, at, subtype, task_id, data)
