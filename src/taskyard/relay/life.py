"""
The relay of a home: one process, elected by a kernel lock, alive while a job lives here or something is not told yet.

It sleeps until the kernel or the database has something to say. Everything it knows it can find out again, so it may be
killed at any moment: the next one, which whoever starts a job or looks at one starts, goes on.
"""

from __future__ import annotations

import os
import signal
import time

from taskyard.clock import elapsed
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import Busy, StoreAway, TaskyardError
from taskyard.relay import upkeep
from taskyard.relay.forwarding import LOG, Forwarding
from taskyard.relay.serving import Serving
from taskyard.relay.summon import WORKS, entry, lock_path
from taskyard.relay.watching import News, Watching
from taskyard.runtime.folder import living_folder
from taskyard.runtime.log import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.config import Settings
    from taskyard.database.pool import Database
    from taskyard.relay.host import Host

#: Seconds it stays when there is nothing left to do: the next job often comes soon, and its output may be asked for.
LINGER = 30.0

#: Seconds between two words on how one job gets on.
_PROGRESS_EVERY = 1.0

#: Seconds in which a burst gathers.
_GATHER = 0.01

#: Seconds after which a database that is away is tried again, where nobody else tells that it is back.
_AWAY_LOOK = 2.0

#: Seconds for which a database that is away is waited for while no job lives: whoever comes next will send the rest.
_LONGEST_AWAY = 600.0


#: Seconds between two sweeps of what is over and done with.
_SWEEP_EVERY = 3600.0

#: Seconds of one wait for being the next relay.
_TURN = 3600.0


class Relay:
    """One relay at work."""

    def __init__(self, host: Host, database: Database, settings: Settings, *, stay: bool = False) -> None:
        """`stay`: until it is told to end, whatever there is to do."""
        self._host = host
        self._database = database
        self._silence = settings.holder_silence
        self._stay = stay
        self.is_over = False  #: it was told to end
        self._watching = Watching(host.home)
        self._forwarding = Forwarding(host, database, silence=self._silence)
        self._serving = Serving(host, database, Forwarding(host, database), self._watching.wake)
        self._living: set[str] = set()
        self._unsent: set[str] = set()  #: jobs that changed and were told of a moment ago
        self._told: dict[str, float] = {}  #: when how a job gets on was told last
        self._renew_at = self._sweep_at = 0.0
        self._noted = ""
        self._busy_at = elapsed()
        self._away_since: float | None = None
        self._is_refused = False  #: it is there, and will not have us

    @property
    def is_away(self) -> bool:
        """Whether nothing can be told, since the database is away or refuses."""
        return self._away_since is not None

    def end(self) -> None:
        """Come to an end soon."""
        self.is_over = True
        self._watching.wake()

    def work(self) -> None:
        """Do what there is to do until nothing was for a while."""
        with self._database.ear.sound(self._host.channel).rings(self._watching.wake):
            self._work()

    def _work(self) -> None:
        news = News(is_asked=True, is_overrun=True)
        while not self.is_over:
            try:
                self._round(news)
                self._away_since = None
            except TaskyardError as error:
                self._away_since = self._away_since or elapsed()
                self._is_refused = not isinstance(error, StoreAway)
                if self._is_refused:
                    self._note(str(error))
            if self._is_done():
                return
            news = self._watching.wait(self._patience())
            if news.jobs:
                time.sleep(_GATHER)  # jobs come and go in bursts
                news = _both(news, self._watching.wait(0.0))

    def _note(self, text: str) -> None:
        """Keep what went wrong, once for as long as it stays the same."""
        if text != self._noted:
            note(self._host.home, LOG, text)
            self._noted = text

    def _round(self, news: News) -> None:
        """Look at what happened, and tell it."""
        if news.is_overrun or self._away_since is not None:
            self._forwarding.greet()
            self._living |= set(_names(living_folder(self._host.home))) | self._forwarding.unfinished()
            self._unsent |= self._living
            self._told = {}
        now = elapsed()
        self._unsent |= news.changed
        due = {job_id for job_id in self._unsent if now - self._told.get(job_id, 0.0) >= _PROGRESS_EVERY}
        looked_at = due | news.jobs
        living = self._forwarding.push(looked_at)
        self._living = (self._living - looked_at) | living
        self._unsent -= looked_at
        told = self._told | dict.fromkeys(looked_at, now)
        self._told = {job_id: told.get(job_id, now) for job_id in self._living}
        self._watching.follow(self._living)
        self._forwarding.notices()
        if now >= self._renew_at:
            self._forwarding.greet()
            upkeep.renew(self._host, self._database, self._living, self._silence)
            self._renew_at = now + self._silence / 3
        if now >= self._sweep_at:
            upkeep.sweep(self._database)
            self._sweep_at = now + _SWEEP_EVERY
        self._serving.look()
        if self._living or self._serving.is_busy or looked_at:
            self._busy_at = elapsed()

    def _is_done(self) -> bool:
        if not os.path.isdir(self._host.home):
            return True  # somebody removed it, with all that there was to tell
        if self._stay or self._living or self._serving.is_busy:
            return False
        if self._away_since is not None:
            return elapsed() - self._away_since > (LINGER if self._is_refused else _LONGEST_AWAY)
        return elapsed() - self._busy_at >= LINGER

    def _patience(self) -> float:
        """How long to sleep, if nothing happens."""
        if self._away_since is not None:
            return _AWAY_LOOK
        now = elapsed()
        waits = [self._renew_at - now]
        if not self._living and not self._stay:
            waits.append(self._busy_at + LINGER - now)
        if self._unsent:
            waits.append(min(self._told.get(job_id, 0.0) for job_id in self._unsent) + _PROGRESS_EVERY - now)
        return max(0.0, min(waits))

    def has_work(self) -> bool:
        """Whether there is something left, now that the lock is given back."""
        return bool(_names(living_folder(self._host.home))) or self._forwarding.is_behind()

    def close(self) -> None:
        """Watch nothing any more."""
        self.is_over = True
        self._watching.close()


def run(
    host: Host, database: Database, settings: Settings, *, stay: bool = False, inherited: int | None = None
) -> bool:
    """Be the relay of a home until there is nothing left to do, unless there is one; whether it was us.

    Args:
        host: The home.
        database: What it shares with others.
        settings: How long others believe in us.
        stay: Be the next one if there is one, and go on until a signal says that it is enough.
        inherited: The lock we were born with.
    """
    from taskyard.database.waiting import at_most

    while True:
        with RangeLock(lock_path(host.home)) as lock:
            if not _is_elected(lock, patient=stay):
                if stay:
                    continue
                return False
            os.pwrite(lock.fd, entry(os.getpid(), database.address), 0)  # that we live, the lock says
            if inherited is not None:
                os.close(inherited)  # from here on we are seen as the one that works
                inherited = None
            relay = Relay(host, database, settings, stay=stay)
            try:
                _end_by_signals(relay)
                with at_most(_AWAY_LOOK):  # it looks again by itself, and at other things meanwhile
                    relay.work()
                was_told = relay.is_over
            finally:
                relay.close()
            upkeep.farewell(host, database)
        if was_told or relay.is_away or not relay.has_work():  # asked after the lock was given back: see `summon`
            return True


def _is_elected(lock: RangeLock, *, patient: bool) -> bool:
    if not patient:
        return lock.try_take(WORKS)
    try:
        lock.take(WORKS, timeout=_TURN, what="the relay of this home")
    except Busy:
        return False
    return True


def _end_by_signals(relay: Relay) -> None:
    def end(number: int, frame: object) -> None:
        relay.end()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _both(one: News, other: News) -> News:
    return News(
        one.jobs | other.jobs,
        one.changed | other.changed,
        one.is_asked or other.is_asked,
        one.is_overrun or other.is_overrun,
    )
