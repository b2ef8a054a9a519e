"""The relay process of a home: publishes its jobs to the database and serves requests for them.

One process per home, elected by a kernel lock (`ensure_running`), alive while a job runs in this home or
something has not been uploaded. It sleeps until inotify or LISTEN wakes it, then uploads changes (`uploader`)
and carries out requests (`handler`). It also renews the leases of live jobs and the names of live instances.

The inotify queue covers only what matters: live job names created or removed, or closed by the exit of their
supervisor; replaced records or facts; appended events; new notices in an outbox. Job output is not watched.

All its state can be rebuilt, so it may be killed at any moment: the next relay, started by the next process
that starts or lists a job, continues.
"""

from __future__ import annotations

import os
import select
import signal
import time

from taskyard.core.files import make_private_folder
from taskyard.core.system import boottime, this_host
from taskyard.core.values import NamedTuple
from taskyard.errors import Busy, StoreAway, TaskyardError
from taskyard.jobs import outbox
from taskyard.jobs.event_log import open_journal
from taskyard.jobs.helper_process import append_log
from taskyard.jobs.job_dir import JobPaths, live_folder, supervisor_pid
from taskyard.jobs.model import is_job_id
from taskyard.jobs.notice_payload import box_name
from taskyard.postgres.relay.ensure_running import RUNNING_BYTE, lock_entry, lock_path
from taskyard.postgres.relay.handler import RequestHandler
from taskyard.postgres.relay.uploader import LOG, Uploader
from taskyard.storage import inotify, process_registry
from taskyard.storage.inotify import Inotify
from taskyard.storage.locks import RangeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.config import Settings
    from taskyard.postgres.connection import Database
    from taskyard.postgres.relay.records import Host


#: A job keeps the tasks claimed inside it while it runs.
_RENEW_INSTANCES = """
    INSERT INTO instance AS i (id, host, until)
    SELECT n, %s, clock_timestamp() + %s * interval '1 second' FROM unnest(%s::text[]) AS n ORDER BY n
    ON CONFLICT (id) DO UPDATE SET until = greatest(i.until, excluded.until)
"""

_REGISTER_RECEIVERS = """
    INSERT INTO receiver (instance, box)
    SELECT n.instance, n.box FROM unnest(%s::text[], %s::text[]) AS n(instance, box)
    WHERE EXISTS (SELECT FROM instance i WHERE i.id = n.instance) ORDER BY n.instance
    ON CONFLICT (instance) DO UPDATE SET box = excluded.box
"""

#: Expired rows: replies are kept for 30 minutes, read notices for 30 days.
_DELETE_EXPIRED = """
    WITH answered AS (
        DELETE FROM request WHERE state IN ('done', 'withdrawn') AND changed < clock_timestamp() - interval '30 min'
    ), told AS (
        DELETE FROM notice WHERE state = 'read' AND changed < clock_timestamp() - interval '30 days'
    )
    DELETE FROM receiver r WHERE NOT EXISTS (SELECT FROM instance i WHERE i.id = r.instance)
"""

_EXPIRE_HOST = "UPDATE host SET until = least(until, clock_timestamp()) WHERE id = %s"


def renew_instances(host: Host, database: Database, living: Iterable[str], silence: float) -> None:
    """Renew the leases of jobs running here by `silence` seconds, and register the names of live instances."""
    jobs = [job_id for job_id in living if supervisor_pid(JobPaths(host.home, job_id)) is not None]
    if jobs:
        database.ask(_RENEW_INSTANCES, [this_host(), silence, jobs])
    names = {record.id: box_name(record.name) for record in process_registry.live_instances(host.home)}
    if names:
        database.ask(_REGISTER_RECEIVERS, [list(names), list(names.values())])


def delete_expired(database: Database) -> None:
    """Delete expired rows of every host."""
    database.ask(_DELETE_EXPIRED)


def farewell(host: Host, database: Database) -> None:
    """Mark this host as unreachable, so that no client waits for its relay."""
    try:
        database.ask(_EXPIRE_HOST, [host.id], patience=0.0)
    except TaskyardError:
        pass  # the lease expires by itself


_LIVING_EVENTS = inotify.CREATE | inotify.DELETE | inotify.MOVED_TO | inotify.CLOSE_WRITE


class HomeChanges(NamedTuple):
    """The changes to examine after a wait."""

    jobs: frozenset[str] = frozenset()  #: started or ended, or the supervisor exited
    changed: frozenset[str] = frozenset()  #: any other change of their records
    is_asked: bool = False  #: `wake` was called
    has_overflow: bool = False  #: the inotify queue overflowed: examine everything


class HomeWatcher:
    """The inotify events of one home, for use by one thread; other threads may call `wake`."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._queue = Inotify()
        self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._jobs: dict[str, int] = {}
        self._boxes: dict[str, int] = {}
        events = open_journal(home).folder
        for folder in (f"{home}/jobs", live_folder(home), events, outbox.outbox_root(home)):
            make_private_folder(folder)
        self._living = self._queue.add(live_folder(home), _LIVING_EVENTS)
        self._queue.add(events, inotify.CREATE | inotify.MODIFY)
        self._outbox = self._queue.add(outbox.outbox_root(home), inotify.CREATE)
        self._follow_boxes()

    def follow(self, living: Iterable[str]) -> None:
        """Watch the records of these jobs and of no others."""
        wanted = set(living)
        for job_id in wanted - self._jobs.keys():
            try:
                self._jobs[job_id] = self._queue.add(JobPaths(self._home, job_id).path, inotify.MOVED_TO)
            except OSError:
                continue  # removed meanwhile, or no inotify watches left: start and exit are still seen
        for job_id in self._jobs.keys() - wanted:
            self._queue.remove(self._jobs.pop(job_id))

    def wait(self, seconds: float) -> HomeChanges:
        """Sleep until something happens, at most `seconds`; return what changed."""
        select.select([self._queue.fd, self._wake[0]], [], [], max(seconds, 0.0))
        is_asked = self._is_woken()
        by_number = {number: job_id for job_id, number in self._jobs.items()}
        jobs: set[str] = set()
        changed: set[str] = set()
        has_overflow = False
        for number, mask, name in self._queue.read():
            has_overflow = has_overflow or bool(mask & inotify.OVERFLOW)
            if number == self._living and is_job_id(name):
                jobs.add(name)
            elif number == self._outbox:
                self._follow_boxes()
            elif number in by_number:
                changed.add(by_number[number])
        return HomeChanges(frozenset(jobs), frozenset(changed), is_asked, has_overflow)

    def wake(self) -> None:
        """End the wait from another thread."""
        try:
            os.write(self._wake[1], b"\0")
        except (BlockingIOError, OSError):
            pass  # already awake, or closed

    def close(self) -> None:
        """Stop watching."""
        self._queue.close()

    def _follow_boxes(self) -> None:
        """Watch every outbox that exists."""
        for box in outbox.boxes(self._home):
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


#: Seconds it stays idle: the next job often starts soon, and output of the last may be requested.
LINGER = 30.0

#: Minimum seconds between two progress uploads of one job.
_PROGRESS_INTERVAL = 1.0

#: Seconds to collect a burst of changes.
_DEBOUNCE = 0.01

#: Retry interval in seconds for an unavailable database; no notification arrives when it is back.
_AWAY_POLL = 2.0

#: Seconds to wait for an unavailable database while no job runs: the next relay uploads the rest.
_LONGEST_AWAY = 600.0


#: Seconds between two deletions of expired rows.
_SWEEP_INTERVAL = 3600.0

#: Seconds of one wait for the relay lock.
_ELECTION_TIMEOUT = 3600.0


class Relay:
    """One running relay."""

    def __init__(self, host: Host, database: Database, settings: Settings, *, stay: bool = False) -> None:
        """With `stay`, run until `end` is called, even when idle."""
        self._host = host
        self._database = database
        self._silence = settings.holder_silence
        self._stay = stay
        self.is_over = False  #: `end` was called
        self._watching = HomeWatcher(host.home)
        self._uploader = Uploader(host, database, silence=self._silence)
        self._requests = RequestHandler(host, database, Uploader(host, database), self._watching.wake)
        self._living: set[str] = set()
        self._unsent: set[str] = set()  #: changed jobs whose last upload is too recent to send them again
        self._told: dict[str, float] = {}  #: time of the last progress upload of each job
        self._renew_at = self._sweep_at = 0.0
        self._noted = ""
        self._busy_at = boottime()
        self._away_since: float | None = None
        self._is_refused = False  #: the database is reachable but refuses this client

    @property
    def is_away(self) -> bool:
        """Whether uploads fail because the database is unavailable or refuses this client."""
        return self._away_since is not None

    def end(self) -> None:
        """Make the relay end soon."""
        self.is_over = True
        self._watching.wake()

    def work(self) -> None:
        """Work until there was nothing to do for `LINGER` seconds."""
        with self._database.listener.subscription(self._host.channel).callback(self._watching.wake):
            self._work()

    def _work(self) -> None:
        news = HomeChanges(is_asked=True, has_overflow=True)
        while not self.is_over:
            try:
                self._round(news)
                self._away_since = None
            except TaskyardError as error:
                self._away_since = self._away_since or boottime()
                self._is_refused = not isinstance(error, StoreAway)
                if self._is_refused:
                    self._note(str(error))
            if self._is_done():
                return
            news = self._watching.wait(self._patience())
            if news.jobs:
                time.sleep(_DEBOUNCE)  # jobs start and end in bursts
                news = _merge(news, self._watching.wait(0.0))

    def _note(self, text: str) -> None:
        """Log an error once for as long as it stays the same."""
        if text != self._noted:
            append_log(self._host.home, LOG, text)
            self._noted = text

    def _round(self, news: HomeChanges) -> None:
        """Examine the changes and upload them."""
        if news.has_overflow or self._away_since is not None:
            self._uploader.register_host()
            self._living |= set(_list_names(live_folder(self._host.home))) | self._uploader.unfinished()
            self._unsent |= self._living
            self._told = {}
        now = boottime()
        self._unsent |= news.changed
        due = {job_id for job_id in self._unsent if now - self._told.get(job_id, 0.0) >= _PROGRESS_INTERVAL}
        looked_at = due | news.jobs
        living = self._uploader.push(looked_at)
        self._living = (self._living - looked_at) | living
        self._unsent -= looked_at
        told = self._told | dict.fromkeys(looked_at, now)
        self._told = {job_id: told.get(job_id, now) for job_id in self._living}
        self._watching.follow(self._living)
        self._uploader.notices()
        if now >= self._renew_at:
            self._uploader.register_host()
            renew_instances(self._host, self._database, self._living, self._silence)
            self._renew_at = now + self._silence / 3
        if now >= self._sweep_at:
            delete_expired(self._database)
            self._sweep_at = now + _SWEEP_INTERVAL
        self._requests.look()
        if self._living or self._requests.is_busy or looked_at:
            self._busy_at = boottime()

    def _is_done(self) -> bool:
        if not os.path.isdir(self._host.home):
            return True  # the home was removed, with everything left to upload
        if self._stay or self._living or self._requests.is_busy:
            return False
        if self._away_since is not None:
            return boottime() - self._away_since > (LINGER if self._is_refused else _LONGEST_AWAY)
        return boottime() - self._busy_at >= LINGER

    def _patience(self) -> float:
        """Return how many seconds to sleep if nothing happens."""
        if self._away_since is not None:
            return _AWAY_POLL
        now = boottime()
        waits = [self._renew_at - now]
        if not self._living and not self._stay:
            waits.append(self._busy_at + LINGER - now)
        if self._unsent:
            waits.append(min(self._told.get(job_id, 0.0) for job_id in self._unsent) + _PROGRESS_INTERVAL - now)
        return max(0.0, min(waits))

    def has_work(self) -> bool:
        """Return whether work is left, checked after the lock was released."""
        return bool(_list_names(live_folder(self._host.home))) or self._uploader.is_behind()

    def close(self) -> None:
        """Stop watching."""
        self.is_over = True
        self._watching.close()


def run(
    host: Host, database: Database, settings: Settings, *, stay: bool = False, inherited: int | None = None
) -> bool:
    """Run the relay of a home until it is idle, unless one is running; return whether this process was it.

    Args:
        host: The home.
        database: The database shared with other hosts.
        settings: Supplies the lease duration.
        stay: Wait for a running relay to end, take over, and run until a signal arrives.
        inherited: Descriptor of the lock inherited from the starter.
    """
    from taskyard.postgres.deadline import max_wait

    while True:
        with RangeLock(lock_path(host.home)) as lock:
            if not _elect(lock, patient=stay):
                if stay:
                    continue
                return False
            os.pwrite(lock.fd, lock_entry(os.getpid(), database.address), 0)  # the lock itself shows that it is alive
            if inherited is not None:
                os.close(inherited)  # from here on the running lock identifies this relay
                inherited = None
            if not os.path.isdir(host.home):
                return True  # removed or renamed since the election: the relay would create it again
            relay = Relay(host, database, settings, stay=stay)
            try:
                _end_on_signals(relay)
                with max_wait(_AWAY_POLL):  # the relay retries by itself, and does other work meanwhile
                    relay.work()
                was_told = relay.is_over
            finally:
                relay.close()
            farewell(host, database)
        if was_told or relay.is_away or not relay.has_work():  # checked after the lock was released: see `ensure_relay`
            return True


def _elect(lock: RangeLock, *, patient: bool) -> bool:
    if not patient:
        return lock.try_take(RUNNING_BYTE)
    try:
        lock.take(RUNNING_BYTE, timeout=_ELECTION_TIMEOUT, what="the relay of this home")
    except Busy:
        return False
    return True


def _end_on_signals(relay: Relay) -> None:
    def end(number: int, frame: object) -> None:
        relay.end()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _merge(one: HomeChanges, other: HomeChanges) -> HomeChanges:
    return HomeChanges(
        one.jobs | other.jobs,
        one.changed | other.changed,
        one.is_asked or other.is_asked,
        one.has_overflow or other.has_overflow,
    )
