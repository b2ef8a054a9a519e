"""
What agents have used up together: of a day, and below one job.

A purse is a file of two numbers, `slots/spent-<name>`: tokens, and millionths of a dollar. It is changed under a lock
of the kernel's, so that agents in many processes count together.
"""

from __future__ import annotations

import os
import struct
import time

from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import Damaged, StorageError
from taskyard.typed import NamedTuple

_SUMS = struct.Struct("<qq")
_LOCK = 1 << 62
_MILLION = 1_000_000
_MOST = 1 << 60


class Spent(NamedTuple):
    """What was used up."""

    tokens: int = 0
    usd: float = 0.0


class Budget(NamedTuple):
    """How much may be used up; 0: as much as it takes."""

    tokens: int = 0
    usd: float = 0.0

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self.tokens or self.usd)

    def over(self, spent: Spent) -> str:
        """What is used up, in words; nothing if there is some left."""
        if self.tokens and spent.tokens >= self.tokens:
            return f"{spent.tokens:,} of {self.tokens:,} tokens"
        if self.usd and spent.usd >= self.usd:
            return f"${spent.usd:.2f} of ${self.usd:.2f}"
        return ""


def of_today() -> str:
    """The name of today's purse."""
    return f"day-{time.strftime('%Y-%m-%d')}"


def until_tomorrow() -> float:
    """Seconds until another day begins."""
    now = time.localtime()
    return 86_400.0 - (now.tm_hour * 3600 + now.tm_min * 60 + now.tm_sec)


def of_tree(root: str) -> str:
    """The name of the purse of everything below a job, its id."""
    return f"tree-{root}"


def spend(home: str, name: str, more: Spent) -> Spent:
    """Add to what was used up; the sums.

    Raises:
        Busy, StorageError: it could not be.
    """
    files.make_private_folder(f"{home}/slots")
    with RangeLock(_path(home, name)) as lock:
        lock.take(_LOCK, timeout=1.0, what="what agents have used up")
        tokens, millionths = _sums(os.pread(lock.fd, _SUMS.size, 0))
        tokens = min(tokens + max(more.tokens, 0), _MOST)
        millionths = min(millionths + max(round(more.usd * _MILLION), 0), _MOST)
        os.pwrite(lock.fd, _SUMS.pack(tokens, millionths), 0)
        return Spent(tokens, millionths / _MILLION)


def spent(home: str, name: str) -> Spent:
    """What was used up."""
    try:
        data = files.read(_path(home, name), most=_SUMS.size)
    except (Damaged, StorageError):
        data = None
    tokens, millionths = _sums(data or b"")
    return Spent(tokens, millionths / _MILLION)


def outdated(home: str, *, age: float) -> list[str]:
    """Purses that nobody has drawn on for `age` seconds."""
    folder, before = f"{home}/slots", time.time() - age
    try:
        with os.scandir(folder) as entries:
            purses = [entry for entry in entries if entry.name.startswith("spent-")]
            return [entry.path for entry in purses if entry.stat(follow_symlinks=False).st_mtime < before]
    except OSError:
        return []  # there is none, or somebody else took one away


def _sums(data: bytes) -> tuple[int, int]:
    if len(data) != _SUMS.size:
        return 0, 0
    tokens, millionths = _SUMS.unpack(data)
    return (tokens, millionths) if 0 <= tokens <= _MOST and 0 <= millionths <= _MOST else (0, 0)


def _path(home: str, name: str) -> str:
    return f"{home}/slots/spent-{name}"
