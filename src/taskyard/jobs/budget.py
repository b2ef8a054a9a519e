"""
Token and cost usage of agents, summed per day and per job tree, and budgets for it.

A usage file `slots/spent-<name>` has two numbers: tokens, and millionths of a dollar. It is changed under a
kernel lock, so that agents in many processes count together.
"""

from __future__ import annotations

import os
import struct
import time

from taskyard.core import files
from taskyard.core.values import NamedTuple
from taskyard.errors import Damaged, StorageError
from taskyard.storage.locks import RangeLock

_RECORD = struct.Struct("<qq")
_LOCK = 1 << 62
_MILLION = 1_000_000
_MAX_SUM = 1 << 60


class TokenUsage(NamedTuple):
    """Tokens and dollars used."""

    tokens: int = 0
    usd: float = 0.0


class Budget(NamedTuple):
    """Limits of usage; 0: no limit."""

    tokens: int = 0
    usd: float = 0.0

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self.tokens or self.usd)

    def over(self, spent: TokenUsage) -> str:
        """Return which limit is used up, in words; "" if none is."""
        if self.tokens and spent.tokens >= self.tokens:
            return f"{spent.tokens:,} of {self.tokens:,} tokens"
        if self.usd and spent.usd >= self.usd:
            return f"${spent.usd:.2f} of ${self.usd:.2f}"
        return ""


def day_key() -> str:
    """Return the name of today's usage file."""
    return f"day-{time.strftime('%Y-%m-%d')}"


def seconds_to_midnight() -> float:
    """Return the seconds until midnight."""
    now = time.localtime()
    return 86_400.0 - (now.tm_hour * 3600 + now.tm_min * 60 + now.tm_sec)


def tree_key(root: str) -> str:
    """Return the name of the usage file of a job tree, by its root's id."""
    return f"tree-{root}"


def add_usage(home: str, name: str, more: TokenUsage) -> TokenUsage:
    """Add to a usage file; return the sums.

    Raises:
        Busy, StorageError: it could not be updated.
    """
    files.make_private_folder(f"{home}/slots")
    with RangeLock(_usage_path(home, name)) as lock:
        lock.take(_LOCK, timeout=1.0, what="what agents have used up")
        tokens, millionths = _unpack(os.pread(lock.fd, _RECORD.size, 0))
        tokens = min(tokens + max(more.tokens, 0), _MAX_SUM)
        millionths = min(millionths + max(round(more.usd * _MILLION), 0), _MAX_SUM)
        os.pwrite(lock.fd, _RECORD.pack(tokens, millionths), 0)
        return TokenUsage(tokens, millionths / _MILLION)


def read_usage(home: str, name: str) -> TokenUsage:
    """Return the sums of a usage file."""
    try:
        data = files.read(_usage_path(home, name), most=_RECORD.size)
    except (Damaged, StorageError):
        data = None
    tokens, millionths = _unpack(data or b"")
    return TokenUsage(tokens, millionths / _MILLION)


def stale_usage_files(home: str, *, age: float) -> list[str]:
    """Return usage files not changed for `age` seconds."""
    folder, before = f"{home}/slots", time.time() - age
    try:
        with os.scandir(folder) as entries:
            purses = [entry for entry in entries if entry.name.startswith("spent-")]
            return [entry.path for entry in purses if entry.stat(follow_symlinks=False).st_mtime < before]
    except OSError:
        return []  # there is none, or another process removed one


def _unpack(data: bytes) -> tuple[int, int]:
    if len(data) != _RECORD.size:
        return 0, 0
    tokens, millionths = _RECORD.unpack(data)
    return (tokens, millionths) if 0 <= tokens <= _MAX_SUM and 0 <= millionths <= _MAX_SUM else (0, 0)


def _usage_path(home: str, name: str) -> str:
    return f"{home}/slots/spent-{name}"
