"""
How many jobs may begin within a minute, counted over all processes of a user.

`slots/starts` holds the moment of every start, eight bytes each, in milliseconds since the machine's. The start so many
entries back says whether there may be another. Entries are added under a lock of the kernel's: a keeper that dies over
it leaves a start that counts, or none. What is older than needed is freed; offsets stay.
"""

from __future__ import annotations

import os
import struct

from taskyard.clock import elapsed
from taskyard.disk.kernel_lock import RangeLock
from taskyard.runtime.keeper.kernel import punch

MINUTE = 60_000  #: in milliseconds

_MOMENT = struct.Struct("<q")

#: The byte that is locked lies beyond anything written.
_LOCK = 1 << 62

#: Holding it takes microseconds; whoever does not get it looks again this soon, in seconds.
_SOON = 0.01

#: Freed in blocks, every so many entries.
_BLOCK = 4096


def ask(path: str, limit: int, *, now: int | None = None, count: bool = True) -> float:
    """Count a start, if there may be one now: 0. Else how many seconds it is until there may be.

    Without `count` it is only asked.
    """
    with RangeLock(path) as lock:
        if not lock.try_take(_LOCK):
            return _SOON
        now = int(elapsed() * 1000) if now is None else now
        known = os.fstat(lock.fd).st_size // _MOMENT.size
        if known >= limit:
            (moment,) = _MOMENT.unpack(os.pread(lock.fd, _MOMENT.size, (known - limit) * _MOMENT.size))
            age = now - int(moment)
            if 0 <= age < MINUTE:  # a moment to come is one of before the machine's last start
                return (MINUTE - age) / 1000
        if not count:
            return 0.0
        os.pwrite(lock.fd, _MOMENT.pack(now), known * _MOMENT.size)
        if known % _BLOCK == 0 and known > limit:
            punch(lock.fd, 0, (known - limit) * _MOMENT.size // _BLOCK * _BLOCK)
        return 0.0
