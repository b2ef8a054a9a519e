"""Ensure that the relay of a home runs, without waiting for it.

    relay.lock   byte 0   locked by the relay while it works
                 byte 1   locked for a starting relay: by that very process, from before its first instruction
                 on

So a hundred jobs that start at once start one relay. A process first writes what must be uploaded and then
checks the lock; the relay first releases the lock and then checks for work once more: one of the two sees the
other.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

from taskyard.core.files import make_private_folder, read_plain
from taskyard.core.system import boottime, open_descriptors, proc_folder
from taskyard.jobs.supervisor.kernel import ALL_SIGNALS
from taskyard.storage.locks import RangeLock, is_locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Byte offsets in the lock file.
RUNNING_BYTE, STARTING_BYTE = 0, 1

#: The descriptor on which a relay inherits the lock.
LOCK_FD = 3

#: `-P`: do not import from the working directory.
_COMMAND = [sys.executable, "-P", "-m", "taskyard.postgres.relay"]

#: Environment variables passed to the relay, by name or by prefix: locations, and libpq's own.
_ENV_NAMES = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "PYTHONPATH", "PYTHONHOME"})
_ENV_PREFIXES = ("TASKYARD_", "XDG_", "PG", "LC_", "SSL_", "KRB5")

#: Seconds to wait for a relay to exit after each signal: SIGTERM, then SIGKILL.
_TAKEOVER_TIMEOUT = 3.0

#: Not passed: they belong to the surrounding job or agent, not to the home.
_ENV_EXCLUDED = frozenset({"TASKYARD_JOB", "TASKYARD_INSTANCE", "TASKYARD_AGENT", "TASKYARD_TASK", "TASKYARD_LIST"})


def lock_path(home: str) -> str:
    """Return the file whose lock shows that a relay works for `home`."""
    return f"{home}/relay.lock"


def lock_entry(pid: int, store: str) -> bytes:
    """Return the content of the lock file: the relay's pid and a hash of its database address."""
    import hashlib

    return f"{pid:<9d}\n{hashlib.sha256(store.encode()).hexdigest()}\n".encode("ascii")


def ensure_relay(home: str, store: str) -> bool:
    """Ensure that a relay for the database `store` runs or starts for `home`; return whether one was started.

    A relay for another database (the setting has changed since its start) is terminated first.
    """
    path = lock_path(home)
    if is_locked(path, RUNNING_BYTE) and not _take_over(path, store):
        return False
    make_private_folder(home)
    lock = RangeLock(path)
    if not lock.try_take(STARTING_BYTE):
        lock.close()
        return False
    try:
        _spawn(home, store, lock.fd)
    finally:
        lock.hand_over()
    return True


def _take_over(path: str, store: str) -> bool:
    """Return whether the running relay served another database and was terminated."""
    try:
        written = read_plain(path, most=200)
        pid = int(written.split(b"\n")[0])
        with open(f"{proc_folder(str(pid))}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except (OSError, ValueError):
        return False
    if written.startswith(lock_entry(pid, store)) or _COMMAND[-1].encode() not in words:
        return False
    for how in (signal.SIGTERM, signal.SIGKILL):  # its state can be rebuilt by the next relay
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, how)
        until = boottime() + _TAKEOVER_TIMEOUT
        while is_locked(path, RUNNING_BYTE) and boottime() < until:
            time.sleep(0.01)
        if not is_locked(path, RUNNING_BYTE):
            return True
    return False


def _spawn(home: str, store: str, lock: int) -> None:
    """Start the relay detached, in its own session, with the lock as the only inherited descriptor."""
    env = {name: value for name, value in os.environ.items() if _passes_env(name)}
    env |= {"TASKYARD_HOME": home, "TASKYARD_STORE": store}  # not as arguments, which every user can read
    inherited = os.dup(lock) if lock == LOCK_FD else lock  # dup2 onto itself would keep close-on-exec
    streams: Sequence[tuple[object, ...]] = [
        *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)),
        (os.POSIX_SPAWN_DUP2, inherited, LOCK_FD),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in open_descriptors() if fd != LOCK_FD),
    ]
    words = ["/bin/sh", "-c", '"$@" &', "sh", *_COMMAND]
    try:
        pid = os.posix_spawn(
            words[0], words, env, file_actions=streams, setsid=True, setsigmask=[], setsigdef=ALL_SIGNALS
        )
    finally:
        if inherited != lock:
            os.close(inherited)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # this program ignores SIGCHLD


def _passes_env(name: str) -> bool:
    return (name in _ENV_NAMES or name.startswith(_ENV_PREFIXES)) and name not in _ENV_EXCLUDED
