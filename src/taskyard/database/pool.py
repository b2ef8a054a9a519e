"""
The connections of a process to one database, and what is done when it is away.

    database(address)            the one of this process
    database.ask(sql, values)    one statement, a transaction of its own
    database.within(work)        several in one transaction, bounded by the server if we fall silent

Both are tried again, at growing intervals, for as long as the caller is patient, when the link breaks or the server
goes away. An answer may be lost after its statement took effect: what is asked must be harmless to ask again.

Connections are made by the thread that needs one, so that whoever is refused learns why at once; no thread stands by.
"""

from __future__ import annotations

import os
import random
import threading
import time

from taskyard.clock import elapsed
from taskyard.database import waiting
from taskyard.database.address import where_of
from taskyard.database.connection import connect, in_words
from taskyard.errors import StoreAway

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, LiteralString, TypeVar

    from taskyard.database.connection import Link
    from taskyard.database.line import Line
    from taskyard.database.listening import Ear

    T = TypeVar("T")

#: Connections one process keeps at most: statements take a millisecond, and servers count their clients.
MOST = 8

#: Seconds between tries: the first, and the longest.
_FIRST, _LONGEST = 0.05, 2.0


class Database:
    """One database, for every thread of this process."""

    def __init__(self, address: str, *, patience: float = 15.0) -> None:
        """`patience`: seconds for which a server that is away is tried again."""
        self.address = address
        self.where = where_of(address)
        self.patience = patience
        self.away_since: float | None = None  #: when it was found to be away (`clock.elapsed`); None: it answered last
        self.why = ""  #: why it was away when it last was
        self._free: list[Line] = []
        self._room = threading.BoundedSemaphore(MOST)
        self._lock = threading.Lock()
        self._ear: Ear | None = None
        self._is_forgotten = False
        self._announcing = waiting.Announcing(self.where)
        self._pid = os.getpid()

    def ask(self, sql: LiteralString, values: Sequence[object] = (), *, patience: float | None = None) -> list[Any]:
        """The rows that one statement answers with.

        Raises:
            StoreAway: the server could not be reached for as long as we were patient.
            SchemaMismatch: its tables are of another version.
            StorageError: it refuses, and asking again will not help.
        """
        return self._persist(lambda line: line.ask(sql, values), patience)

    def within(self, work: Callable[[Link], T], *, patience: float | None = None) -> T:
        """What `work` answers, done in one transaction: all of it or nothing. It must be quick, and may run again.

        Raises:
            StoreAway, SchemaMismatch, StorageError: as `ask`.
        """

        def done(line: Line) -> T:
            with line.link.transaction():
                return work(line.link)

        return self._persist(done, patience)

    @property
    def ear(self) -> Ear:
        """What hears of others' changes in this database."""
        with self._lock:
            if self._ear is None:
                from taskyard.database.listening import Ear

                self._ear = Ear(self.address)
            return self._ear

    def close(self) -> None:
        """Let go of every connection that nobody uses; the next to ask makes another."""
        with self._lock:
            free, self._free = self._free, []
            ear, self._ear = self._ear, None
        if self._pid != os.getpid():
            return  # a child must not say goodbye on its parent's connections
        if ear is not None:
            ear.close()
        for line in free:
            line.link.close()

    def leave(self) -> None:
        """Let go of everything for good: whoever still asks has a connection for the length of that."""
        self._is_forgotten = True
        self.close()

    def _persist(self, work: Callable[[Line], T], patience: float | None) -> T:
        seconds = waiting.patience(self.patience if patience is None else patience)
        with self._announcing.during(seconds, lambda: self.why if self.away_since is not None else ""):
            return self._tried(work, seconds)

    def _tried(self, work: Callable[[Line], T], patience: float) -> T:
        import psycopg

        began, pause, is_stale = elapsed(), _FIRST, True
        while True:
            line, was_used = None, False
            try:
                with self._room:
                    line, was_used = self._borrowed()
                    try:
                        answer = work(line)
                    finally:
                        self._give_back(line)
                self.away_since = None
                return answer
            except psycopg.Error as error:
                trouble = in_words(self.address, error)
                if not isinstance(trouble, StoreAway):
                    raise trouble from error
                if is_stale and was_used and line is not None and line.link.closed:
                    is_stale = False  # it broke while it lay about: that says nothing about the server
                    self._forget()
                    continue
                self._wait(trouble, error, began, pause, patience)
            except StoreAway as trouble:
                self._wait(trouble, trouble, began, pause, patience)
            pause = min(pause * 2, _LONGEST)

    def _wait(self, trouble: StoreAway, cause: Exception, began: float, pause: float, patience: float) -> None:
        """Sleep before the next try, or give up."""
        self.why = trouble.why
        self.away_since = self.away_since if self.away_since is not None else elapsed()
        spent = elapsed() - began
        if spent + pause > patience:
            raise StoreAway(self.where, trouble.why, seconds=spent) from cause
        time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  # so that not all come back at once

    def _borrowed(self) -> tuple[Line, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            if self._pid != os.getpid():  # forked: our parent's connections are not ours, not even to close
                _left_alone.extend(self._free)
                self._free, self._ear, self._pid = [], None, os.getpid()
            if self._free:
                return self._free.pop(), True
        from taskyard.database.line import Line

        return Line(connect(self.address)), False

    def _give_back(self, line: Line) -> None:
        if line.is_idle:
            with self._lock:
                if not self._is_forgotten:
                    self._free.append(line)
                    return
        line.link.close()

    def _forget(self) -> None:
        """Let go of what lay about with a broken one."""
        with self._lock:
            free, self._free = self._free, []
        for line in free:
            line.link.close()


#: Connections of the process we were forked from: kept, since to drop them is to close them.
_left_alone: list[Line] = []

_known: dict[str, Database] = {}
_lock = threading.Lock()


def database(address: str, *, patience: float | None = None) -> Database:
    """The database at an address: one object for the whole process.

    Raises:
        BadValue: no such address can be.
        MissingExtra: the packages for PostgreSQL are not there.
    """
    with _lock:
        if address not in _known:
            _known[address] = Database(address)
        found = _known[address]
    if patience is not None:
        found.patience = patience
    return found


def forget(address: str) -> None:
    """Let go of the database at an address, with all that is open."""
    with _lock:
        found = _known.pop(address, None)
    if found is not None:
        found.leave()
