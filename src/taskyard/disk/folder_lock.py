"""
The lock npm's proper-lockfile takes, and so Claude Code: a folder `<target>.lock`.

    mkdir   takes it        rmdir   gives it back        older than 10 s   abandoned

Ours are made with the sticky bit, which npm's never have. Whoever holds the kernel lock that
guards the same target therefore knows a sticky folder for a dead Taskyard's, and takes it over
at once; any other folder is respected until its 10 s are over. Where there is no kernel lock to
trust (a network file system) every folder is respected alike.
"""

from __future__ import annotations

import os
import stat
import time

from taskyard.clock import elapsed
from taskyard.disk.files import storage_error
from taskyard.errors import Busy

#: proper-lockfile's `stale`: a lock not touched for this long is nobody's.
STALE_AFTER = 10.0

#: After this long the lock may soon look abandoned to others: make sure of it before writing.
DOUBT_AFTER = 4.0

#: Between two looks at somebody else's lock; they hold it for 1-3 ms.
_FIRST_WAIT, _LONGEST_WAIT = 0.001, 0.05

#: npm's own stamps are up to a second ahead; a lock further ahead of the clock is judged by watching it.
AHEAD = 2.0

#: Between two looks at a lock that is watched.
_WATCH = 0.25

_MODE = 0o1755


class FolderLock:
    """A held `<target>.lock` folder; `with` gives it back."""

    __slots__ = ("_inode", "_taken", "path")

    def __init__(self, target: str, *, timeout: float, what: str, guarded: bool = True) -> None:
        """Take the lock, waiting at most `timeout` seconds.

        Args:
            target: The file that is locked; the folder stands beside it.
            timeout: How long to wait for another program.
            what: What is locked, for the error.
            guarded: Whether the caller holds the kernel lock of this target.

        Raises:
            Busy: another program held it all that time.
        """
        self.path = target + ".lock"
        self._inode = 0
        if not self._try(guarded):
            self._wait(timeout, what, guarded)
        self._taken = elapsed()
        if not guarded:
            self._inode = os.lstat(self.path).st_ino

    def _wait(self, timeout: float, what: str, guarded: bool) -> None:
        deadline, wait = elapsed() + timeout, _FIRST_WAIT
        watched = _Watched(self.path)
        while True:
            if elapsed() >= deadline:
                watched.hand_on()
                raise Busy(what, f"another program ({self.path})", timeout)
            time.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
            if self._try(guarded):
                return
            watched.free_if_abandoned()

    def _try(self, guarded: bool) -> bool:
        try:
            os.mkdir(self.path, _MODE)
        except FileExistsError:
            return self._take_over(guarded)
        except OSError as error:
            raise storage_error(self.path, error) from error
        return True

    def _take_over(self, guarded: bool) -> bool:
        """Take an existing lock that is nobody's any more, if it is."""
        try:
            found = os.lstat(self.path)
            if guarded and found.st_mode & stat.S_ISVTX:
                os.utime(self.path)  # a dead Taskyard's; fresh again, so that npm leaves it alone
                return True
            if time.time() - found.st_mtime > STALE_AFTER:
                os.rmdir(self.path)
        except FileNotFoundError:
            pass  # given back this moment: the next try decides
        except OSError as error:
            raise storage_error(self.path, error) from error
        return False

    def is_ours(self) -> bool:
        """Whether nobody took it from us; asked right before a write that relies on it."""
        if elapsed() - self._taken <= DOUBT_AFTER:
            return True
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return False
        return bool(found.st_mode & stat.S_ISVTX) and self._inode in (0, found.st_ino)

    def release(self) -> None:
        """Give it back, unless somebody took it over meanwhile."""
        if self.is_ours():
            try:
                os.rmdir(self.path)
            except OSError:
                pass  # taken over and given back between the two: nothing of ours is left

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class _Watched:
    """Somebody's lock whose time is ahead of the clock: abandoned if it stays untouched for 10 s of ours."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._since = 0.0

    def free_if_abandoned(self) -> bool:
        """Remove it once it was watched for long enough; whether it needs no more watching."""
        found = _ahead(self._path)
        if found is None:
            self._seen = None
            return True
        if found != self._seen:
            self._seen, self._since = found, elapsed()
        elif elapsed() - self._since > STALE_AFTER:
            try:
                os.rmdir(self._path)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise storage_error(self._path, error) from error
            return True
        return False

    def hand_on(self) -> None:
        """Give up: stamp an untouched lock with the present, so that the next to wait need not begin anew."""
        if self._seen is not None and elapsed() - self._since > AHEAD and _ahead(self._path) == self._seen:
            try:
                os.utime(self._path)
            except OSError:
                pass  # not ours to stamp


def _ahead(path: str) -> tuple[int, int] | None:
    """What a lock folder looks like whose time is ahead of the clock; None for any other, or none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    is_ahead = stat.S_ISDIR(found.st_mode) and found.st_mtime - time.time() > AHEAD
    return (found.st_ino, found.st_mtime_ns) if is_ahead else None


def free_abandoned(path: str) -> bool:
    """Watch a lock whose time is ahead of the clock, for 10 s at most; False if its holder touched it meanwhile."""
    watched, deadline = _Watched(path), elapsed() + STALE_AFTER + 2 * _WATCH
    while not watched.free_if_abandoned():
        if elapsed() >= deadline:
            return False
        time.sleep(_WATCH)
    return True
