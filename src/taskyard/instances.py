"""
Who is alive, by the kernel's word.

Every living agent instance holds a lock on a file of its own, `$TASKYARD_HOME/instances/<id>.lock`.
The kernel frees it at death, however sudden, so nobody sends heartbeats and no pid is believed
without its start time. The file says who it is; the lock says that it lives.

Names are given out under the folder's lock: a second living "writer" becomes "writer-2".
"""

from __future__ import annotations

import json
import os

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock, is_held
from taskyard.disk.place import is_here, place_of
from taskyard.disk.processes import process_start, this_host
from taskyard.errors import Damaged, StorageError
from taskyard.living_names import free_name, new_id, wanted_name
from taskyard.names import folder_name
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Entering takes well under a millisecond; whoever holds the folder longer than this is stopped.
ENTER_TIMEOUT = 10.0

_SUFFIX = ".lock"


class Record(NamedTuple):
    """What the file of a living instance says about it."""

    id: str
    name: str  #: unique among the living; "" for a process that only reads mail
    agent: str  #: the name it asked for
    pid: int
    start: int  #: the process's start time in clock ticks since boot
    host: str  #: "<machine id>/<boot id>"
    since: int  #: epoch ms
    lock: str  #: the file whose lock says that it lives
    place: str = ""  #: the folder of that file: see `disk.place`


#: The lock files that this very process holds; a forked child's pid is another.
_here: dict[str, int] = {}


class Instance:
    """A living instance: this process, under one name, until `leave` or death."""

    __slots__ = ("_farewell", "_lock", "record")

    def __init__(self, record: Record, lock: RangeLock, farewell: Callable[[], object] | None = None) -> None:
        """`farewell` is called when it leaves."""
        self.record = record
        self._lock: RangeLock | None = lock
        self._farewell = farewell
        _here[record.lock] = record.pid

    @property
    def id(self) -> str:
        """What leases and taken mail are filed under."""
        return self.record.id

    @property
    def name(self) -> str:
        """The name everyone sees: unique among the living."""
        return self.record.name

    @property
    def host(self) -> str:
        """The machine and boot it lives on."""
        return self.record.host

    @property
    def lock_path(self) -> str:
        """The file whose lock says that it lives."""
        return self.record.lock

    @property
    def is_ours(self) -> bool:
        """Whether this very process holds it: a forked child does not, nor does one that left."""
        return self._lock is not None and self.record.pid == os.getpid()

    def leave(self) -> None:
        """Be gone, as if the process had ended; in a forked child, or twice, nothing happens."""
        if self._lock is None or not self.is_ours:
            return
        lock, self._lock = self._lock, None
        _here.pop(lock.path, None)
        try:
            os.unlink(lock.path)
        except FileNotFoundError:
            pass
        lock.close()
        if self._farewell is not None:
            self._farewell()

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


def enter(home: str, agent: str | None = None) -> Instance:
    """Be alive as `agent` (else `$TASKYARD_AGENT`, else "me") until `leave` or death.

    Raises:
        BadName: `agent` cannot be a name.
        Busy: the instances folder stayed locked.
    """
    return _enter(home, wanted_name(agent))


def enter_unnamed(home: str) -> Instance:
    """Be alive without a name: for a process that reads mail on an agent's behalf."""
    return _enter(home, "")


def enter_as(home: str, agent: str, name: str, instance: str, *, farewell: Callable[[], object]) -> Instance:
    """Be alive under a name, or "", and an id that were given out elsewhere; `farewell` is called when it leaves."""
    return _enter(home, agent, name=name, instance=instance, farewell=farewell)


def living(home: str) -> list[Record]:
    """Every named instance that lives now, oldest first; the files of the dead are swept along the way."""
    found, dead = _look(folder_of(home))
    if dead:
        _sweep(folder_of(home))
    return sorted((record for record in found if record.name), key=lambda record: (record.since, record.id))


def alive(lock_path: str, host: str, place: str) -> bool | None:
    """Whether the holder of `lock_path` on `host` lives; None if that cannot be known from here.

    A free lock, or no file, says something only in the very folder where the holder's was.
    """
    here = this_host()
    if host != here:
        return False if _is_same_machine(host, here) and is_here(place, restarted=True) else None
    if is_own(lock_path):
        return True  # one of our own, of which a program may have hundreds
    try:
        if is_held(lock_path):
            return True
    except (StorageError, ValueError):
        return None  # another user's, or no path at all
    return False if is_here(place) else None


def is_own(lock_path: str) -> bool:
    """Whether this very process holds the lock: it is the holder, and does not only act for one."""
    return _here.get(lock_path) == os.getpid()


def _is_same_machine(host: str, other: str) -> bool:
    return host.partition("/")[0] == other.partition("/")[0]


def instance_alive(home: str, instance: str) -> bool | None:
    """Whether the instance of this id lives; None if it entered from another machine."""
    path = lock_path(home, instance)
    if is_held(path):
        return True
    record = _read(path)
    return False if record is None or _is_same_machine(record.host, this_host()) else None


def folder_of(home: str) -> str:
    """Where the instances' files are."""
    return f"{home}/instances"


def lock_path(home: str, instance: str) -> str:
    """The file of the instance with this id."""
    return f"{folder_of(home)}/{folder_name('an instance', instance)}{_SUFFIX}"


def _enter(
    home: str,
    agent: str,
    *,
    name: str | None = None,
    instance: str = "",
    farewell: Callable[[], object] | None = None,
) -> Instance:
    folder = folder_of(home)
    files.make_private_folder(home)
    files.make_private_folder(folder)
    with RangeLock(f"{folder}/.names") as names:
        names.take(0, timeout=ENTER_TIMEOUT, what="the list of living agents")
        found, dead = _look(folder)
        _remove(dead)
        if name is None:
            name = free_name(agent, (record.name for record in found)) if agent else ""
        instance = instance or new_id()
        record = Record(
            instance,
            name,
            agent,
            os.getpid(),
            process_start(),
            this_host(),
            now_ms(),
            lock_path(home, instance),
            place_of(folder),
        )
        # Content first, lock second: whoever finds the lock held can read whose it is.
        files.create(record.lock, _encoded(record))
        lock = RangeLock(record.lock)
        lock.take(0, timeout=ENTER_TIMEOUT, what="this instance")
    return Instance(record, lock, farewell)


def _look(folder: str) -> tuple[list[Record], list[str]]:
    """The records of the living, and the files of the dead."""
    found: list[Record] = []
    dead: list[str] = []
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return found, dead
    for name in names:
        if not name.endswith(_SUFFIX):
            continue
        path = f"{folder}/{name}"
        record = _read(path)
        if is_held(path):
            if record is not None:
                found.append(record)
        elif record is None or _is_same_machine(record.host, this_host()):
            dead.append(path)
    return found, dead


def _sweep(folder: str) -> None:
    """Remove the files of the dead, unless somebody enters right now: theirs is not locked yet."""
    with RangeLock(f"{folder}/.names") as names:
        if names.try_take(0):
            _remove(_look(folder)[1])


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            pass  # swept by somebody else, or not ours to remove: it stays dead either way


def _encoded(record: Record) -> bytes:
    machine, _, boot = record.host.partition("/")
    return json.dumps(
        {
            "name": record.name,
            "agent": record.agent,
            "pid": record.pid,
            "start": record.start,
            "host": machine,
            "boot": boot,
            "since": record.since,
        }
    ).encode()


def _read(path: str) -> Record | None:
    """The record in `path`; None if there is none that can be read."""
    try:
        data = json.loads(files.read(path, most=65536) or b"")
        return Record(
            os.path.basename(path).removesuffix(_SUFFIX),
            str(data["name"]),
            str(data["agent"]),
            int(data["pid"]),
            int(data["start"]),
            f"{data['host']}/{data['boot']}",
            int(data["since"]),
            path,
        )
    except (Damaged, StorageError, ValueError, TypeError, KeyError):
        return None
