"""
The heartbeat of a process in a database: what it holds there, others believe in for as long as it lives.

    heart(database).keep(instance)      believed from now on; a thread says so again every third of the silence
    heart(database).let_go(instance)    gone at once

One thread for each database, one statement for all instances of this process. While the server is away it tries on: by
the server's clock an instance is gone when nothing was heard of it for its silence. A process that ends in order lets
go of everything; one that is killed is believed in for the rest of its silence. A forked child keeps nothing of its
parent's.
"""

from __future__ import annotations

import atexit
import threading

from taskyard.clock import elapsed
from taskyard.disk.forks import mind
from taskyard.disk.processes import this_host
from taskyard.errors import TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import LiteralString

    from taskyard.database.pool import Database

#: Seconds without another word for which an instance is believed in, where nobody says how long.
SILENCE = 30.0

#: Seconds after a beat that failed until the next: soon, as the rest of the silence runs.
_RETRY = 1.0

_BEAT = """
    INSERT INTO instance AS i (id, host, until)
    SELECT k.id, %s, clock_timestamp() + k.silence * interval '1 second'
    FROM unnest(%s::text[], %s::float8[]) AS k(id, silence) ORDER BY k.id
    ON CONFLICT (id) DO UPDATE SET host = excluded.host, until = excluded.until
"""

_GONE = "DELETE FROM instance WHERE id = ANY(%s)"

#: Those of whom nothing was heard for an hour are forgotten: that is as good as being gone. Whoever is being renewed
#: this moment is left.
_SWEEP = """
    DELETE FROM instance WHERE id IN (
        SELECT id FROM instance WHERE until < clock_timestamp() - interval '1 hour' FOR UPDATE SKIP LOCKED
    )
"""


class Heart:
    """What this process keeps alive in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reborn()

    def _reborn(self) -> None:
        """Keep nothing: at first, and in a forked child, whose parent keeps its own."""
        self._kept: dict[str, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._heard = self._due = elapsed()  # when the last beat was sent that arrived; when the next is due

    def keep(self, instance: str, *, silence: float = SILENCE) -> None:
        """Have `instance` believed in from now on, and always for `silence` seconds more; cheap if it is already.

        Raises:
            StoreAway, SchemaMismatch, StorageError: the server was not told.
        """
        sent = elapsed()
        if self._kept.get(instance) == silence and sent - self._heard < silence:
            return
        self._database.ask(_BEAT, [this_host(), [instance], [silence]])
        with self._changed:
            if not self._kept:
                self._heard, self._due = sent, sent + silence / 3
            self._kept[instance] = float(silence)
            self._due = min(self._due, sent + silence / 3)
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="taskyard-heart", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def let_go(self, *instances: str) -> None:
        """Have instances be gone for everybody, at once; where the server is away, when their silence is over."""
        with self._changed:
            mine = [instance for instance in instances if self._kept.pop(instance, None) is not None]
        if mine and self._database.away_since is None:
            self._tell(_GONE, [mine])

    def stop(self) -> None:
        """Let go of everything, and keep nothing from now on."""
        self.let_go(*list(self._kept))
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _beat(self) -> None:
        """Say that all that is kept lives, again and again."""
        while True:
            with self._changed:
                while not self._is_over and (not self._kept or self._due > elapsed()):
                    self._changed.wait(max(0.0, self._due - elapsed()) if self._kept else None)
                if self._is_over:
                    return
                said, sent = dict(self._kept), elapsed()
                third = min(said.values()) / 3
            arrived = self._tell(_BEAT, [this_host(), list(said), list(said.values())])
            with self._changed:
                self._heard = sent if arrived else self._heard
                self._due = sent + third if arrived else elapsed() + min(third, _RETRY)
                gone = [instance for instance in said if instance not in self._kept]
            if gone:
                self._tell(_GONE, [gone])  # let go of while we said the contrary
            self._tell(_SWEEP, [])

    def _tell(self, sql: LiteralString, values: Sequence[object]) -> bool:
        """Whether the server was told; it is not tried again."""
        try:
            self._database.ask(sql, values, patience=0)
        except TaskyardError:
            return False
        return True


_hearts: dict[str, Heart] = {}
_lock = threading.Lock()


def heart(database: Database) -> Heart:
    """The heart of this process in a database: one, whoever asks."""
    with _lock:
        if not _hearts:
            mind(_in_child)
            atexit.register(_at_end)
        found = _hearts.get(database.address)
        if found is None:
            found = _hearts[database.address] = Heart(database)
        return found


def forget(address: str) -> None:
    """Let go of everything in the database at an address."""
    with _lock:
        found = _hearts.pop(address, None)
    if found is not None:
        found.stop()


def _at_end() -> None:
    for address in list(_hearts):
        forget(address)


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()
    for one in _hearts.values():
        one._reborn()  # pyright: ignore[reportPrivateUsage]  # its own, before anybody can hold it
