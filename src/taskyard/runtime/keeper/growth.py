"""
The output of a job: that it stays below its cap, and how long it has been quiet.

While it is quiet nothing is asked: the kernel signals the next write (dnotify on the job's folder, once). While it
grows, a tick looks at its size, often enough that the fastest writer cannot pass the cap in between.
Above the cap the blocks between the head and the newest half are freed; offsets stay true and the
command never notices. Blocks count, not bytes: what was reserved by `fallocate` and never written does too.

The command writes to the file itself, so only the kernel hears that the disk is full. A write that it cuts
short fills the last block to its end: an output that ends there is a reason to ask for room.
"""

from __future__ import annotations

import fcntl
import os

from taskyard.disk import files
from taskyard.runtime.keeper.kernel import punch, why_full

#: No pipe or page cache takes more than this, in bytes a second.
_FASTEST = 2_500_000_000

_BLOCK = 4096

#: The smallest block any disk has.
SECTOR = 512

#: How much later than asked for a busy machine may wake us, in seconds.
_LATE = 0.02

#: How long a machine that others share may leave us without a processor, in seconds.
_ABSENT = 0.25

#: A writer that was fast counts as fast for this long, in seconds: it stands still whenever we free what it wrote.
_FAST_FOR = 1.0

#: Far from the cap a look now and then will do; it also tells when output last grew.
_SLOWEST_TICK = 1.0

#: More often than this we would only be in the way. It is why a cap below some 30 MB is passed for moments, by
#: megabytes, while the fastest writers write: what they write in a look and the freeing of it.
_FASTEST_TICK = 0.0005

#: Whoever begins to write may be the fastest writer there is: that is known after two looks, this far apart.
_FIRST_TICK = 0.001


#: Bytes of the oldest output that stay; of a small cap a quarter does, in steps that every disk can free.
_HEAD, _HEAD_STEP = 1_048_576, 65_536

#: Bytes that a file system may reserve by itself behind the end of a file that grows, beyond the cap.
_RESERVED = 1_048_576


def kept_head(cap: int) -> int:
    """How many bytes of the oldest output stay under this cap."""
    return min(_HEAD, cap // 4 // _HEAD_STEP * _HEAD_STEP)


class Full(Exception):
    """The output is above its cap, and no block of it can be freed here."""


class Growth:
    """The size of one output file, as its keeper sees it."""

    def __init__(self, folder: int, output: int, *, cap: int, now: float, at_once: int = 0) -> None:
        """`folder` and `output` are open descriptors; `cap` is in bytes on disk; `at_once` comes between two looks."""
        self._folder = folder
        self._output = output
        self._cap = cap
        self._head = kept_head(cap)
        self._at_once = min(at_once, cap // 8)
        self._size = self._on_disk = 0
        self._looked = now
        self._pace = _FIRST_TICK
        self._fast_until = now
        self._above_since: float | None = None  # when more than the cap stayed reserved, and ever since
        self.base = 0  #: everything between the head and this offset was freed
        self.last = now  #: when it last grew, as far as we looked
        self.lost = ""  #: why some of it could not be written, if the disk was full
        self.is_fast = False  #: whether it passes the cap if we are not given a processor for a moment
        self.is_armed = False

    @property
    def size(self) -> int:
        """As of the last look."""
        return self._size

    def look(self, now: float) -> bool:
        """Take in what came since the last look, freeing what is too much; whether to look again soon.

        Raises:
            Full: it is above its cap and nothing can be freed.
        """
        grown = self.measure()
        rate = max(grown, 0) / max(now - self._looked, 1e-4)
        soon = rate * (2 * self.tick() + _LATE)  # what comes until we look next, if it goes on and the machine is busy
        if rate * _ABSENT > self._cap // 2:
            self._fast_until = now + _FAST_FOR
        self.is_fast = now < self._fast_until
        self._looked = now
        self._pace = min(2 * self._pace, _SLOWEST_TICK)
        if grown:
            self.last = now
            if not self._size % SECTOR and not self.lost:
                self.lost = why_full(self._output, self._size)
        if self.is_fast or self._on_disk + max(soon, self._at_once) > self._cap:
            self._free(self._size, now)
        else:
            self._above_since = None
        return grown != 0 or self._above_since is not None

    def append(self, data: bytes, now: float) -> None:
        """Write to the output of a job inside this process: what would be too much is freed before each part of it.

        Raises:
            Full: it is above its cap and nothing can be freed; the rest of `data` is not written.
        """
        part = self._cap // 8
        for start in range(0, len(data), part):
            piece = data[start : start + part]
            self.measure()
            if self._on_disk + len(piece) + _BLOCK > self._cap:
                self._free(self._size, now)
            files.write_all(self._output, piece)
        self.measure()

    def measure(self) -> int:
        """Take in the size as it is; how many bytes came since the last time."""
        found = os.fstat(self._output)
        grown = found.st_size - self._size
        if grown < 0:
            self.base = 0  # the command truncated it: what is there now is all new
        self._size, self._on_disk = found.st_size, found.st_blocks * 512
        return grown

    def _free(self, size: int, now: float) -> None:
        start = max(self.base - self.base % _BLOCK, self._head)
        stop = (size - self._cap // 2) // _BLOCK * _BLOCK
        if stop > start:
            if punch(self._output, start, stop - start):
                self.base = stop
            elif min(self._on_disk, size) > self._cap:  # on disk it takes whole blocks
                raise Full
        if self._on_disk > self._cap:
            self._free_reserved(now)
        else:
            self._above_since = None

    def _free_reserved(self, now: float) -> None:
        """Free blocks that the command reserved in the part that was freed before.

        Raises:
            Full: more than the cap stays reserved, such as behind the end, where only a truncation would free it.
        """
        self._on_disk = os.fstat(self._output).st_blocks * 512
        if self._on_disk > self._cap and self.base > self._head:
            punch(self._output, self._head, self.base - self._head)
            self._on_disk = os.fstat(self._output).st_blocks * 512
        if self._on_disk <= 2 * self._cap + _RESERVED:
            self._above_since = None
        elif self._above_since is None:
            self._above_since = now  # it may be reserved just now, and is freed next
        elif now - self._above_since > _ABSENT:
            raise Full

    @property
    def is_far_above(self) -> bool:
        """Whether it is above its cap by so much that there is no time to be polite."""
        return self._on_disk > self._cap + self._cap // 4

    def arm(self) -> None:
        """Have the next write signalled. A look must follow, since one may have come just before."""
        fcntl.fcntl(self._folder, fcntl.F_NOTIFY, fcntl.DN_MODIFY)
        self.is_armed = True
        self._pace = _FIRST_TICK

    def tick(self) -> float:
        """How long the fastest writer takes from here to the cap, halved for safety; while there is one, much less.

        The less there is to free at a time, the sooner that is done: what comes meanwhile counts too.
        """
        room = max(self._cap - self._on_disk, self._cap // 8)
        return min(max(room / _FASTEST / (8 if self.is_fast else 2), _FASTEST_TICK), self._pace)

    def kept_from(self) -> int:
        """Where the part begins that is to be kept when it is over: the newest half, also where nothing was freed."""
        if self._on_disk <= self._cap or self._size <= self._cap:
            return self.base
        return max(self.base, (self._size - self._cap // 2) // _BLOCK * _BLOCK)

    def tail(self, most: int) -> bytes:
        """The last bytes of it."""
        start = max(self._size - most, self.base)
        return os.pread(self._output, self._size - start, start)
