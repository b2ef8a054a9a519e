"""
Locks the kernel keeps: freed at death, whoever dies and however.

A lock is a byte range of a file (an "open file description" lock), so that one file serves a
whole list: byte 0 is the list, byte N is task N. Each holder opens the file anew, so threads
exclude each other as processes do. Waiting costs nothing: a thread sleeps in the kernel until
the range is free, and the caller waits for that thread, for as long as it wants and no longer.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from _thread import allocate_lock

from taskyard.clock import elapsed
from taskyard.disk.files import storage_error
from taskyard.disk.forks import mind
from taskyard.errors import Busy
from taskyard.plain_file import NotPlain, open_plain

_FLOCK = struct.Struct("hhqqi4x")
_OPEN = os.O_RDWR | os.O_CREAT
_RELEASE = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)

#: Seconds of sleep before a thread is started to wait: together a few times as long as a lock is usually held.
_MOMENTS = (0.00005, 0.0001, 0.0002, 0.0004, 0.0008, 0.0016)

#: Descriptors that hold locks now, so that a forked child can let go of its copies: it shares
#: the lock otherwise, and keeps it alive after our death.
_held: set[int] = set()

#: Files of living holders, open to be asked about again: they hold no lock, so children may share them.
_asked: dict[str, int] = {}
_asking = allocate_lock()
_MOST_ASKED = 64

#: Raised in every forked child, whose copies of its parent's locks are closed.
_forks = 0


class RangeLock:
    """One holder of some bytes of a lock file; `with` lets go of all of them."""

    __slots__ = ("_born", "_place", "fd", "is_spoiled", "path")

    def __init__(self, path: str, *, mode: int = 0o600) -> None:
        self.path = path
        try:
            self.fd = open_plain(path, _OPEN, mode)
        except OSError as error:
            raise storage_error(path, error) from error
        mind(_let_go_in_child)
        self._born = _forks
        self._place: tuple[int, int] | None = None
        self.is_spoiled = False  #: a thread that gave up waiting may still get, and give back, bytes in our name
        _held.add(self.fd)

    def take(self, offset: int, *, timeout: float, what: str, shared: bool = False, length: int = 1) -> None:
        """Hold byte `offset` (and those after it, `length` in all), waiting at most `timeout` seconds.

        Raises:
            Busy: it was not free in time; names the holder.
        """
        request = _FLOCK.pack(fcntl.F_RDLCK if shared else fcntl.F_WRLCK, os.SEEK_SET, offset, length, 0)
        if self._try(request) or (timeout and self._soon(request)):
            return
        if not timeout:
            raise Busy(what, "another process", timeout)
        if not _Waiter(self.fd, request).granted(timeout):
            self.is_spoiled = True
            raise Busy(what, holder_of(self.path, offset, length), timeout)

    def try_take(self, offset: int) -> bool:
        """Hold byte `offset` if that is possible right now."""
        return self._try(_FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0))

    def _try(self, request: bytes) -> bool:
        try:
            fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise storage_error(self.path, error) from error
        return True

    def _soon(self, request: bytes) -> bool:
        """Try again after moments of sleep: most locks are held for less time than it takes to start a thread.

        Sleeping, not spinning: with more waiters than processors the holder must get to run.
        """
        for pause in _MOMENTS:
            time.sleep(pause)
            if self._try(request):
                return True
        return False

    def release(self, offset: int | None = None) -> None:
        """Let go of everything, or of one byte, but keep the file open for the next time."""
        request = _RELEASE if offset is None else _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, offset, 1, 0)
        fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, request)

    @property
    def is_usable(self) -> bool:
        """Whether it is ours: a forked child gave its copy back at birth."""
        return self._born == _forks

    def place(self) -> tuple[int, int]:
        """Device and inode: what tells the lock file from another one that took its path."""
        if self._place is None:
            found = os.fstat(self.fd)
            self._place = found.st_dev, found.st_ino
        return self._place

    def close(self) -> None:
        """Let go of everything. Explicitly: a forked child may still hold a copy of the descriptor."""
        if self._born != _forks:
            return  # a forked child gave its copy back at birth
        _held.discard(self.fd)
        try:
            fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, _RELEASE)
        finally:
            os.close(self.fd)

    def hand_over(self) -> None:
        """Close our descriptor and nothing else: a child that was started with a copy of it holds what we held."""
        _held.discard(self.fd)
        os.close(self.fd)

    def __enter__(self) -> RangeLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Waiter:
    """A thread asleep in F_OFD_SETLKW on a descriptor of its own copy."""

    def __init__(self, fd: int, request: bytes) -> None:
        self._fd = os.dup(fd)  # same open file description: what it is granted, `fd` holds
        _held.add(self._fd)
        self._request = request
        _, *where = _FLOCK.unpack(request)
        self._undo = _FLOCK.pack(fcntl.F_UNLCK, *where)
        import threading  # only those who have to wait pay for it

        self._settled = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sleep, name="taskyard-lock", daemon=True)
        self._abandoned = self._ok = False

    def granted(self, timeout: float) -> bool:
        self._thread.start()
        self._done.wait(timeout)
        with self._settled:
            self._abandoned = not self._ok
            return self._ok

    def _sleep(self) -> None:
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, self._request)
            with self._settled:
                if self._abandoned:
                    fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, self._undo)
                else:
                    self._ok = True
        except OSError:
            pass  # the caller sees a timeout and names the holder
        finally:
            _held.discard(self._fd)
            os.close(self._fd)
            self._done.set()


def is_held(path: str, offset: int = 0) -> bool:
    """Whether some living process holds byte `offset` of `path`, by the kernel's word.

    The file of a living holder is kept open: whoever works beside it asks about it again and again.
    """
    mind(_let_go_in_child)
    with _asking:
        fd = _asked.get(path, -1)
        try:
            if fd >= 0 and _is_locked(fd, offset):
                return True
            if fd >= 0:
                os.close(_asked.pop(path))  # dead; or it came back, with another file of the same name
            fd = open_plain(path)
            if not _is_locked(fd, offset):
                os.close(fd)
                return False
        except (FileNotFoundError, NotPlain):
            return False
        except OSError as error:
            raise storage_error(path, error) from error
        while len(_asked) >= _MOST_ASKED:
            os.close(_asked.pop(next(iter(_asked))))
        _asked[path] = fd
        return True


def _is_locked(fd: int, offset: int) -> bool:
    asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, offset, 1, 0)
    return bool(_FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK)


def holder_of(path: str, offset: int, length: int = 1) -> str:
    """Who holds byte `offset` of `path`, in words: the kernel lists locks per open descriptor."""
    try:
        inode = os.stat(path).st_ino
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return "another process"
    deadline = elapsed() + 1.0
    for pid in pids:
        if elapsed() > deadline:
            break
        if _holds(pid, inode, offset, length):
            return f"process {pid} ({_command(pid)})"
    return "a process that cannot be seen from here"


def _holds(pid: int, inode: int, offset: int, length: int) -> bool:
    from taskyard.disk.processes import proc_folder

    folder = f"{proc_folder(str(pid))}/fdinfo"
    try:
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", encoding="ascii", errors="replace") as file:
                if any(_is_lock(line, inode, offset, length) for line in file if line.startswith("lock:")):
                    return True
    except OSError:
        pass  # ended meanwhile, or somebody else's
    return False


def _is_lock(line: str, inode: int, offset: int, length: int) -> bool:
    """`lock: 1: OFDLCK ADVISORY WRITE -1 00:1a:4711 0 0`: the last three are file, first and last byte."""
    parts = line.split()
    if len(parts) < 4 or not parts[-3].endswith(f":{inode}"):
        return False
    last = offset if parts[-1] == "EOF" else int(parts[-1])
    return int(parts[-2]) < offset + length and last >= offset


def _command(pid: int) -> str:
    from taskyard.disk.processes import proc_folder

    try:
        with open(f"{proc_folder(str(pid))}/cmdline", "rb") as file:
            words = file.read(200).split(b"\0")
    except OSError:
        return "ended meanwhile"
    return " ".join(word.decode("utf-8", "replace") for word in words if word)[:80] or "unknown"


def _let_go_in_child() -> None:
    global _forks, _asking
    _forks += 1
    _asking = allocate_lock()  # another thread of the parent may have held it
    for fd in _held:
        try:
            os.close(fd)
        except OSError:
            pass
    _held.clear()
