"""
Seeing that the relay of a home runs; nobody waits for it.

    relay.lock   byte 0   held by the relay for as long as it works
                 byte 1   held for a relay on its way: by the very process, from before its first instruction on

So a hundred jobs that start at once start one relay. Whoever makes something that others must hear of makes it first
and looks at the lock then; the relay gives the lock back first and looks for work once more then: one of the two sees
the other.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

from taskyard.clock import elapsed
from taskyard.disk.files import make_private_folder
from taskyard.disk.kernel_lock import RangeLock, is_held
from taskyard.disk.processes import open_descriptors, proc_folder
from taskyard.plain_file import read_plain
from taskyard.runtime.keeper.signals import ALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Bytes of the lock.
WORKS, COMES = 0, 1

#: The descriptor under which a relay finds the lock it was born with.
INHERITED = 3

#: `-P`: what lies in the folder we are in is not ours to import.
_PROGRAM = [sys.executable, "-P", "-m", "taskyard.relay"]

#: What a relay needs of our environment, beside what begins with one of the second: where things are, and libpq's own.
_NAMES = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "PYTHONPATH", "PYTHONHOME"})
_BEGINNINGS = ("TASKYARD_", "XDG_", "PG", "LC_", "SSL_", "KRB5")

#: Seconds for which a relay that makes way is waited for, before it is made to.
_MAKES_WAY = 3.0

#: And what of that is of the job or the agent around us, not of the home.
_NOT_ITS = frozenset({"TASKYARD_JOB", "TASKYARD_INSTANCE", "TASKYARD_AGENT", "TASKYARD_TASK", "TASKYARD_LIST"})


def lock_path(home: str) -> str:
    """The file whose lock says that a relay works for `home`."""
    return f"{home}/relay.lock"


def entry(pid: int, store: str) -> bytes:
    """What a relay writes into its lock: who it is, and for which database, which none can read from it."""
    import hashlib

    return f"{pid:<9d}\n{hashlib.sha256(store.encode()).hexdigest()}\n".encode("ascii")


def summon(home: str, store: str) -> bool:
    """See that a relay works for `home`, or comes; whether one was started. `store`: the address of its database.

    One that works for another database, since the setting was another when it came, makes way.
    """
    path = lock_path(home)
    if is_held(path, WORKS) and not _made_way(path, store):
        return False
    make_private_folder(home)
    lock = RangeLock(path)
    if not lock.try_take(COMES):
        lock.close()
        return False
    try:
        _start(home, store, lock.fd)
    finally:
        lock.hand_over()
    return True


def _made_way(path: str, store: str) -> bool:
    """Whether the relay that works does so for another database, and has ended now, as it was told."""
    try:
        written = read_plain(path, most=200)
        pid = int(written.split(b"\n")[0])
        with open(f"{proc_folder(str(pid))}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except (OSError, ValueError):
        return False
    if written.startswith(entry(pid, store)) or _PROGRAM[-1].encode() not in words:
        return False
    for how in (signal.SIGTERM, signal.SIGKILL):  # whatever it knows the next can find out
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, how)
        until = elapsed() + _MAKES_WAY
        while is_held(path, WORKS) and elapsed() < until:
            time.sleep(0.01)
        if not is_held(path, WORKS):
            return True
    return False


def _start(home: str, store: str, lock: int) -> None:
    """The relay as nobody's child, in a session of its own, with the lock and nothing else of ours."""
    env = {name: value for name, value in os.environ.items() if _is_its(name)}
    env |= {"TASKYARD_HOME": home, "TASKYARD_STORE": store}  # not among its words, which everybody can read
    inherited = os.dup(lock) if lock == INHERITED else lock  # a copy on itself would stay close-on-exec
    streams: Sequence[tuple[object, ...]] = [
        *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)),
        (os.POSIX_SPAWN_DUP2, inherited, INHERITED),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in open_descriptors() if fd != INHERITED),
    ]
    words = ["/bin/sh", "-c", '"$@" &', "sh", *_PROGRAM]
    try:
        pid = os.posix_spawn(words[0], words, env, file_actions=streams, setsid=True, setsigmask=[], setsigdef=ALL)
    finally:
        if inherited != lock:
            os.close(inherited)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # this program collects no children


def _is_its(name: str) -> bool:
    return (name in _NAMES or name.startswith(_BEGINNINGS)) and name not in _NOT_ITS
