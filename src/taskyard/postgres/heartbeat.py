"""Heartbeats of this process's instances in a database, and registration of agent names there.

    process_heartbeat(database).keep(instance)      alive from now on; a thread renews it every third of its ttl
    process_heartbeat(database).let_go(instance)    gone at once

One thread per database, one statement for all instances of this process. While the server is unavailable it
retries: by the server's clock an instance is gone when its ttl (`silence`) has passed without a heartbeat. A
process that exits normally removes its instances; those of a killed one count as alive for the rest of their
ttl. A forked child keeps none of its parent's.

With a database as the store, the name of a live instance is taken on every host: a second live "writer" is
"writer-2" anywhere. The name is free again when its instance leaves or its ttl expires. With files as the
store, `storage.process_registry` does all of this.
"""

from __future__ import annotations

import atexit
import threading

from taskyard.core.system import boottime, this_host
from taskyard.errors import TaskyardError
from taskyard.storage import process_registry
from taskyard.storage.locks import after_fork_in_child
from taskyard.storage.process_registry import new_instance_id, requested_name, unique_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import LiteralString

    from taskyard.config import Settings
    from taskyard.postgres.connection import Database
    from taskyard.storage.process_registry import Instance


#: Default ttl: seconds an instance counts as alive without another heartbeat.
DEFAULT_TTL = 30.0

#: Seconds until a failed heartbeat is retried: soon, as the ttl is running.
_RETRY_DELAY = 1.0

_RENEW = """
    INSERT INTO instance AS i (id, host, until)
    SELECT k.id, %s, clock_timestamp() + k.silence * interval '1 second'
    FROM unnest(%s::text[], %s::float8[]) AS k(id, silence) ORDER BY k.id
    ON CONFLICT (id) DO UPDATE SET host = excluded.host, until = excluded.until
"""

_DELETE = "DELETE FROM instance WHERE id = ANY(%s)"

#: Instances whose ttl expired more than an hour ago are deleted, which equals being gone. Rows being renewed at
#: this moment are skipped.
_DELETE_EXPIRED = """
    DELETE FROM instance WHERE id IN (
        SELECT id FROM instance WHERE until < clock_timestamp() - interval '1 hour' FOR UPDATE SKIP LOCKED
    )
"""


class Heartbeat:
    """The instances that this process keeps alive in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reset()

    def _reset(self) -> None:
        """Forget all instances: at first, and in a forked child, whose parent keeps its own."""
        self._kept: dict[str, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._heard = self._due = boottime()  # when the last successful heartbeat was sent; when the next is due

    def keep(self, instance: str, *, silence: float = DEFAULT_TTL) -> None:
        """Keep `instance` alive from now on, with a ttl of `silence` seconds; cheap if it already is.

        Raises:
            StoreAway, SchemaMismatch, StorageError: the server did not record it.
        """
        sent = boottime()
        if self._kept.get(instance) == silence and sent - self._heard < silence:
            return
        self._database.ask(_RENEW, [this_host(), [instance], [silence]])
        with self._changed:
            if not self._kept:
                self._heard, self._due = sent, sent + silence / 3
            self._kept[instance] = float(silence)
            self._due = min(self._due, sent + silence / 3)
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="taskyard-heartbeat", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def let_go(self, *instances: str) -> None:
        """Remove instances at once; if the server is unavailable, their ttl expires."""
        with self._changed:
            mine = [instance for instance in instances if self._kept.pop(instance, None) is not None]
        if mine and self._database.away_since is None:
            self._tell(_DELETE, [mine])

    def stop(self) -> None:
        """Remove all instances and stop the thread."""
        self.let_go(*list(self._kept))
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _beat(self) -> None:
        """Renew all instances periodically."""
        while True:
            with self._changed:
                while not self._is_over and (not self._kept or self._due > boottime()):
                    self._changed.wait(max(0.0, self._due - boottime()) if self._kept else None)
                if self._is_over:
                    return
                said, sent = dict(self._kept), boottime()
                third = min(said.values()) / 3
            arrived = self._tell(_RENEW, [this_host(), list(said), list(said.values())])
            with self._changed:
                self._heard = sent if arrived else self._heard
                self._due = sent + third if arrived else boottime() + min(third, _RETRY_DELAY)
                gone = [instance for instance in said if instance not in self._kept]
            if gone:
                self._tell(_DELETE, [gone])  # removed while the renewal was being sent
            self._tell(_DELETE_EXPIRED, [])

    def _tell(self, sql: LiteralString, values: Sequence[object]) -> bool:
        """Send one statement without retry; return whether it succeeded."""
        try:
            self._database.ask(sql, values, patience=0)
        except TaskyardError:
            return False
        return True


_heartbeats: dict[str, Heartbeat] = {}
_lock = threading.Lock()


def process_heartbeat(database: Database) -> Heartbeat:
    """Return the heartbeat of this process for a database: always the same object."""
    with _lock:
        if not _heartbeats:
            after_fork_in_child(_after_fork)
            atexit.register(_stop_all)
        found = _heartbeats.get(database.address)
        if found is None:
            found = _heartbeats[database.address] = Heartbeat(database)
        return found


def stop_heartbeat(address: str) -> None:
    """Remove all instances from the database at an address."""
    with _lock:
        found = _heartbeats.pop(address, None)
    if found is not None:
        found.stop()


def _stop_all() -> None:
    for address in list(_heartbeats):
        stop_heartbeat(address)


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for one in _heartbeats.values():
        one._reset()  # pyright: ignore[reportPrivateUsage]  # own object, before any thread can lock it


def register(home: str, agent: str | None, settings: Settings) -> Instance:
    """Register as `agent` (else `$TASKYARD_AGENT`, else "me") until `leave` or exit.

    Raises:
        BadName: `agent` cannot be a name.
        Busy: the instances folder stayed locked.
        StoreAway: the database with the live names is unavailable.
    """
    if settings.store == "files":
        return process_registry.register(home, agent)
    return _register_in_database(home, requested_name(agent), settings)


def register_unnamed(home: str, settings: Settings) -> Instance:
    """Register without a name: for a process that acts on an agent's behalf."""
    if settings.store == "files":
        return process_registry.register_unnamed(home)
    return _register_in_database(home, "", settings)


def _register_in_database(home: str, agent: str, settings: Settings) -> Instance:
    from taskyard.config import is_database_url

    if not is_database_url(settings.store):
        return process_registry.register(home, agent) if agent else process_registry.register_unnamed(home)
    from taskyard.postgres.connection import database

    where, instance = database(settings.store, patience=settings.database_patience), new_instance_id()
    beating = process_heartbeat(where)
    beating.keep(instance, silence=settings.holder_silence)
    name = (
        _claim_name(where, agent, instance, (record.name for record in process_registry.live_instances(home)))
        if agent
        else ""
    )
    return process_registry.register_as(home, agent, name, instance, farewell=lambda: beating.let_go(instance))


def _claim_name(where: Database, agent: str, instance: str, here: Iterable[str]) -> str:
    """Claim a name for `instance`: `agent`, or with the lowest number that no live instance has."""
    from taskyard.core.values import folder_name

    local = list(here)
    while True:
        rows = where.ask(
            "SELECT l.name FROM living l JOIN instance i ON i.id = l.instance WHERE i.until >= clock_timestamp()"
        )
        name = unique_name(agent, [*local, *(row[0] for row in rows)])
        if where.ask("SELECT take_name(%s, %s, %s)", [folder_name("an agent", name), name, instance])[0][0]:
            return name
