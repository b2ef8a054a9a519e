"""Registry of live agent instances: unique names, and liveness by kernel locks.

Every live instance holds a lock on its own file, `$TASKYARD_HOME/instances/<id>.lock`. The kernel frees it
when the process exits, even by SIGKILL, so no heartbeats are needed and no pid is trusted without its start
time. The file's content identifies the instance; the lock proves that it is alive.

Names are assigned under the folder's lock: a second live "writer" becomes "writer-2". `ConsumerId` is the
instance under which this process takes mail and notices.
"""

from __future__ import annotations

import json
import os

from taskyard.core import files
from taskyard.core.system import now_ms, process_start, this_host
from taskyard.core.values import LONGEST_NAME, NamedTuple, check_name, folder_name
from taskyard.errors import Damaged, StorageError
from taskyard.storage.locks import RangeLock, folder_identity, is_locked, is_same_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def requested_name(agent: str | None) -> str:
    """Return the name to ask for: `agent`, else `$TASKYARD_AGENT`, else "me".

    Raises:
        BadName: it is not a valid name.
    """
    return check_name("an agent", agent if agent is not None else os.environ.get("TASKYARD_AGENT") or "me")


def unique_name(agent: str, taken: Iterable[str]) -> str:
    """Return `agent`, or "agent-2", "agent-3", …; names that share a mail folder count as one."""
    folders = {folder_name("an agent", name) for name in taken if name}
    name, count = agent, 1
    while folder_name("an agent", name) in folders:
        count += 1
        suffix = f"-{count}"
        name = agent[: LONGEST_NAME - len(suffix)] + suffix
    return name


def new_instance_id() -> str:
    """Return a random instance id."""
    return "".join(_ALPHABET[byte % 36] for byte in os.urandom(12))


#: Seconds. Registering takes well under a millisecond; a process that holds the folder longer is stopped.
REGISTER_TIMEOUT = 10.0

_SUFFIX = ".lock"


class ProcessRecord(NamedTuple):
    """Content of a live instance's file."""

    id: str
    name: str  #: unique among live instances; "" for a process that only reads mail
    agent: str  #: the name it asked for
    pid: int
    start: int  #: the process's start time in clock ticks since boot
    host: str  #: "<machine id>/<boot id>"
    since: int  #: epoch ms
    lock: str  #: the file whose lock proves that it is alive
    place: str = ""  #: the folder of that file: see `locks.folder_identity`


#: Lock files held by this very process; a forked child has another pid.
_own_locks: dict[str, int] = {}


class Instance:
    """A live instance: this process, under one name, until `leave` or exit."""

    __slots__ = ("_farewell", "_lock", "record")

    def __init__(self, record: ProcessRecord, lock: RangeLock, farewell: Callable[[], object] | None = None) -> None:
        """Record a registered instance; `farewell` is called when it leaves."""
        self.record = record
        self._lock: RangeLock | None = lock
        self._farewell = farewell
        _own_locks[record.lock] = record.pid

    @property
    def id(self) -> str:
        """The id under which leases and taken mail are filed."""
        return self.record.id

    @property
    def name(self) -> str:
        """The public name: unique among live instances."""
        return self.record.name

    @property
    def host(self) -> str:
        """The machine and boot it runs on."""
        return self.record.host

    @property
    def lock_path(self) -> str:
        """The file whose lock proves that it is alive."""
        return self.record.lock

    @property
    def is_ours(self) -> bool:
        """Whether this very process holds it: not a forked child, and not after `leave`."""
        return self._lock is not None and self.record.pid == os.getpid()

    def leave(self) -> None:
        """Unregister, as if the process had exited. Idempotent, and without effect in a forked child."""
        if self._lock is None or not self.is_ours:
            return
        lock, self._lock = self._lock, None
        _own_locks.pop(lock.path, None)
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


def register(home: str, agent: str | None = None) -> Instance:
    """Register as `agent` (else `$TASKYARD_AGENT`, else "me") until `leave` or exit.

    Raises:
        BadName: `agent` is not a valid name.
        Busy: the instances folder stayed locked.
    """
    return _register(home, requested_name(agent))


def register_unnamed(home: str) -> Instance:
    """Register without a name: for a process that reads mail on an agent's behalf."""
    return _register(home, "")


def register_as(home: str, agent: str, name: str, instance: str, *, farewell: Callable[[], object]) -> Instance:
    """Register under a name, or "", and an id assigned elsewhere; `farewell` is called when it leaves."""
    return _register(home, agent, name=name, instance=instance, farewell=farewell)


def live_instances(home: str) -> list[ProcessRecord]:
    """Return every live named instance, oldest first; files of dead ones are removed along the way."""
    found, dead = _scan_registry(registry_dir(home))
    if dead:
        _sweep(registry_dir(home))
    return sorted((record for record in found if record.name), key=lambda record: (record.since, record.id))


def is_holder_alive(lock_path: str, host: str, place: str) -> bool | None:
    """Return whether the holder of `lock_path` on `host` is alive; None if that cannot be known from here.

    A free lock, or a missing file, is proof only in the very folder in which the holder's was.
    """
    here = this_host()
    if host != here:
        return False if _is_same_machine(host, here) and is_same_folder(place, restarted=True) else None
    if is_own_lock(lock_path):
        return True  # one of our own, of which a program may have hundreds
    try:
        if is_locked(lock_path):
            return True
    except (StorageError, ValueError):
        return None  # another user's, or not a path
    return False if is_same_folder(place) else None


def is_own_lock(lock_path: str) -> bool:
    """Return whether this very process holds the lock, rather than acting for its holder."""
    return _own_locks.get(lock_path) == os.getpid()


def _is_same_machine(host: str, other: str) -> bool:
    return host.partition("/")[0] == other.partition("/")[0]


def is_instance_alive(home: str, instance: str) -> bool | None:
    """Return whether the instance with this id is alive; None if it registered on another machine."""
    path = lock_path(home, instance)
    if is_locked(path):
        return True
    record = _read_record(path)
    return False if record is None or _is_same_machine(record.host, this_host()) else None


def registry_dir(home: str) -> str:
    """Return the folder of the instances' files."""
    return f"{home}/instances"


def lock_path(home: str, instance: str) -> str:
    """Return the file of the instance with this id."""
    return f"{registry_dir(home)}/{folder_name('an instance', instance)}{_SUFFIX}"


def _register(
    home: str,
    agent: str,
    *,
    name: str | None = None,
    instance: str = "",
    farewell: Callable[[], object] | None = None,
) -> Instance:
    folder = registry_dir(home)
    files.make_private_folder(home)
    files.make_private_folder(folder)
    with RangeLock(f"{folder}/.names") as names:
        names.take(0, timeout=REGISTER_TIMEOUT, what="the list of live agents")
        found, dead = _scan_registry(folder)
        _remove(dead)
        if name is None:
            name = unique_name(agent, (record.name for record in found)) if agent else ""
        instance = instance or new_instance_id()
        record = ProcessRecord(
            instance,
            name,
            agent,
            os.getpid(),
            process_start(),
            this_host(),
            now_ms(),
            lock_path(home, instance),
            folder_identity(folder),
        )
        # Content first, lock second: a process that finds the lock held can read its owner.
        files.create(record.lock, _encode_record(record))
        lock = RangeLock(record.lock)
        lock.take(0, timeout=REGISTER_TIMEOUT, what="this instance")
    return Instance(record, lock, farewell)


def _scan_registry(folder: str) -> tuple[list[ProcessRecord], list[str]]:
    """Return the records of live instances, and the files of dead ones."""
    found: list[ProcessRecord] = []
    dead: list[str] = []
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return found, dead
    for name in names:
        if not name.endswith(_SUFFIX):
            continue
        path = f"{folder}/{name}"
        record = _read_record(path)
        if is_locked(path):
            if record is not None:
                found.append(record)
        elif record is None or _is_same_machine(record.host, this_host()):
            dead.append(path)
    return found, dead


def _sweep(folder: str) -> None:
    """Remove files of dead instances, unless one is registering: its file is not locked yet."""
    with RangeLock(f"{folder}/.names") as names:
        if names.try_take(0):
            _remove(_scan_registry(folder)[1])


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            pass  # removed by another process, or not removable: it stays dead either way


def _encode_record(record: ProcessRecord) -> bytes:
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


def _read_record(path: str) -> ProcessRecord | None:
    """Return the record in `path`; None if it cannot be parsed."""
    try:
        data = json.loads(files.read(path, most=65536) or b"")
        return ProcessRecord(
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


class ConsumerId:
    """The instance under which this process takes messages; a forked child gets its own."""

    __slots__ = ("_home", "_instance", "_unnamed")

    def __init__(self, home: str, instance: Instance | None) -> None:
        self._home = home
        self._instance = instance
        self._unnamed: Instance | None = None

    def found(self) -> str | None:
        """Return the instance id, if this process has taken anything yet."""
        for instance in (self._instance, self._unnamed):
            if instance is not None and instance.is_ours:
                return instance.id
        return None

    def holder(self) -> str:
        """Return the instance id, registering this process if necessary."""
        if there := self.found():
            return there
        entered = register_unnamed(self._home)
        if there := self.found():  # another thread was faster
            entered.leave()
            return there
        self._unnamed = entered
        return entered.id

    def open(self) -> None:
        """Unregister the unnamed instance: what it took returns to the mailbox."""
        if self._unnamed is not None:
            self._unnamed.leave()
            self._unnamed = None
