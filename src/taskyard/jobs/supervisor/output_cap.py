"""Enforce a job's output cap, and detect when its command waits for input.

While the output is quiet nothing is polled: the kernel signals the next write (dnotify on the job's folder,
once). While it grows, its size is checked at a tick, often enough that the fastest writer cannot pass the
cap in between. Above the cap, the blocks between the head and the newest half are freed by punching a hole;
offsets stay valid and the command does not notice. Blocks count, not bytes: blocks reserved by `fallocate`
and never written count too.

The command writes to the file itself, so it alone gets ENOSPC. A write cut short by a full disk fills the
last block to its end: an output that ends at a block boundary is a reason to check for free space.

`CpuAffinity`: an idle processor of a shared (virtual) machine may take a tenth of a second to wake up,
while the writer on the next one continues. So a supervisor of a fast writer moves to the writer's own
processor. If the host takes that one away, the writer stops as well; while it is there, the supervisor runs
between two of the writer's time slices (`kernel.request_short_slices`).

A prompt is recognised by the words of a question, or as an unterminated last line while a process of the
job is blocked in a read. `/proc/<pid>/task/<tid>/syscall` names the call a thread sleeps in and its
arguments. A read names its descriptor. An epoll instance lists its descriptors in `fdinfo`. The sets of
poll and select are in the process's memory: for these it suffices that the process has the input open as
descriptor 0.
"""

from __future__ import annotations

import fcntl
import os
import re

from taskyard.core import files
from taskyard.core.system import stat_fields
from taskyard.core.values import NamedTuple
from taskyard.jobs.supervisor.kernel import full_reason, punch_hole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


#: Bytes per second that no writer to a pipe or the page cache exceeds.
_MAX_RATE = 2_500_000_000

_BLOCK = 4096

#: The smallest block size of any disk, in bytes.
SECTOR = 512

#: Seconds by which a busy machine may wake us late.
_MAX_LATENESS = 0.02

#: Seconds for which a shared machine may leave us without a processor.
_MAX_ABSENCE = 0.25

#: Seconds for which a fast writer keeps counting as fast: it pauses whenever we free what it wrote.
_FAST_FOR = 1.0

#: Longest tick, in seconds, used well below the cap; it also determines when output last grew.
_MAX_TICK = 1.0

#: Shortest tick, in seconds: more checks would only slow the writer down. It is why the fastest writers pass
#: a cap below some 30 MB for moments, by megabytes: what they write during a check and a free.
_MIN_TICK = 0.0005

#: First tick, in seconds: a new writer may be the fastest; that is known after two checks this far apart.
_FIRST_TICK = 0.001


#: Bytes of the oldest output that are kept; of a small cap a quarter, in steps that every disk can free.
_MAX_HEAD, _HEAD_STEP = 1_048_576, 65_536

#: Bytes beyond the cap that a file system may preallocate by itself behind the end of a growing file.
_RESERVE_SLACK = 1_048_576


def head_size(cap: int) -> int:
    """Return how many bytes of the oldest output are kept under this cap."""
    return min(_MAX_HEAD, cap // 4 // _HEAD_STEP * _HEAD_STEP)


class CapExceeded(Exception):
    """The output is above its cap, and no block of it can be freed here."""


class OutputCap:
    """The size of one output file, and the freeing of what exceeds its cap."""

    def __init__(self, folder: int, output: int, *, cap: int, now: float, at_once: int = 0) -> None:
        """`folder`, `output`: open descriptors; `cap`: bytes on disk; `at_once`: bytes that may come between checks."""
        self._folder = folder
        self._output = output
        self._cap = cap
        self._head = head_size(cap)
        self._at_once = min(at_once, cap // 8)
        self._size = self._on_disk = 0
        self._looked = now
        self._pace = _FIRST_TICK
        self._fast_until = now
        self._above_since: float | None = None  # since when more than the cap has been reserved
        self.base = 0  #: everything between the head and this offset was freed
        self.last = now  #: when it last grew, as of the checks
        self.lost = ""  #: why some of it could not be written, if the disk was full
        self.is_fast = False  #: whether it would pass the cap if we got no processor for a moment
        self.is_armed = False

    @property
    def size(self) -> int:
        """Size in bytes as of the last check."""
        return self._size

    def look(self, now: float) -> bool:
        """Measure growth since the last check and free what exceeds the cap; return whether to check again soon.

        Raises:
            CapExceeded: it is above its cap and nothing can be freed.
        """
        grown = self.measure()
        rate = max(grown, 0) / max(now - self._looked, 1e-4)
        soon = rate * (2 * self.tick() + _MAX_LATENESS)  # bytes until the next check, at this rate on a busy machine
        if rate * _MAX_ABSENCE > self._cap // 2:
            self._fast_until = now + _FAST_FOR
        self.is_fast = now < self._fast_until
        self._looked = now
        self._pace = min(2 * self._pace, _MAX_TICK)
        if grown:
            self.last = now
            if not self._size % SECTOR and not self.lost:
                self.lost = full_reason(self._output, self._size)
        if self.is_fast or self._on_disk + max(soon, self._at_once) > self._cap:
            self._free(self._size, now)
        else:
            self._above_since = None
        return grown != 0 or self._above_since is not None

    def append(self, data: bytes, now: float) -> None:
        """Write to the output of an in-process job, freeing what would exceed the cap before each part.

        Raises:
            CapExceeded: it is above its cap and nothing can be freed; the rest of `data` is not written.
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
        """Read the current size; return by how many bytes it grew since the last time."""
        found = os.fstat(self._output)
        grown = found.st_size - self._size
        if grown < 0:
            self.base = 0  # the command truncated it: everything there now is new
        self._size, self._on_disk = found.st_size, found.st_blocks * 512
        return grown

    def _free(self, size: int, now: float) -> None:
        start = max(self.base - self.base % _BLOCK, self._head)
        stop = (size - self._cap // 2) // _BLOCK * _BLOCK
        if stop > start:
            if punch_hole(self._output, start, stop - start):
                self.base = stop
            elif min(self._on_disk, size) > self._cap:  # on disk it takes whole blocks
                raise CapExceeded
        if self._on_disk > self._cap:
            self._free_reserved(now)
        else:
            self._above_since = None

    def _free_reserved(self, now: float) -> None:
        """Free blocks that the command reserved in the part that was freed before.

        Raises:
            CapExceeded: more than the cap stays reserved, such as behind the end, where only a truncation
                would free it.
        """
        self._on_disk = os.fstat(self._output).st_blocks * 512
        if self._on_disk > self._cap and self.base > self._head:
            punch_hole(self._output, self._head, self.base - self._head)
            self._on_disk = os.fstat(self._output).st_blocks * 512
        if self._on_disk <= 2 * self._cap + _RESERVE_SLACK:
            self._above_since = None
        elif self._above_since is None:
            self._above_since = now  # it may have been reserved just now, and is freed at the next check
        elif now - self._above_since > _MAX_ABSENCE:
            raise CapExceeded

    @property
    def is_well_above(self) -> bool:
        """Whether it is so much above its cap that the command gets no grace."""
        return self._on_disk > self._cap + self._cap // 4

    def arm(self) -> None:
        """Request a signal for the next write. A check must follow, since a write may have come just before."""
        fcntl.fcntl(self._folder, fcntl.F_NOTIFY, fcntl.DN_MODIFY)
        self.is_armed = True
        self._pace = _FIRST_TICK

    def tick(self) -> float:
        """Return half the seconds the fastest writer takes to reach the cap; an eighth while there is a fast one.

        The less there is to free at a time, the faster it is freed: what arrives meanwhile counts too.
        """
        room = max(self._cap - self._on_disk, self._cap // 8)
        return min(max(room / _MAX_RATE / (8 if self.is_fast else 2), _MIN_TICK), self._pace)

    def kept_from(self) -> int:
        """Return the offset of the part to keep at exit: the newest half, also if nothing was freed."""
        if self._on_disk <= self._cap or self._size <= self._cap:
            return self.base
        return max(self.base, (self._size - self._cap // 2) // _BLOCK * _BLOCK)

    def tail(self, most: int) -> bytes:
        """Return the last `most` bytes."""
        start = max(self._size - most, self.base)
        return os.pread(self._output, self._size - start, start)


#: Most processes of a job that are checked; a writer this fast leaves processor time for few others.
_MAX_PROCESSES = 32

#: Indexes in `/proc/<pid>/stat`: user time, system time, processor.
_USED, _USED_BY_KERNEL, _PROCESSOR = 11, 12, 36


class CpuAffinity:
    """Processor affinity of a supervisor: by default any, next to a fast writer only the writer's."""

    def __init__(self) -> None:
        self._anywhere: set[int] | None = None  # the original affinity, while it is restricted

    def seek(self) -> None:
        """Move to the processor of the busiest process of our job."""
        processor = _busiest_cpu()
        if processor is None:
            return
        if self._anywhere is None:
            self._anywhere = os.sched_getaffinity(0)
        if processor in self._anywhere:
            os.sched_setaffinity(0, {processor})

    def leave(self) -> None:
        """Restore the original affinity."""
        if self._anywhere is not None:
            os.sched_setaffinity(0, self._anywhere)
            self._anywhere = None


def _busiest_cpu() -> int | None:
    """Return the processor of the running process that used the most time; None if none runs."""
    most, processor = -1, None
    for fields in _running_stats():
        used = int(fields[_USED]) + int(fields[_USED_BY_KERNEL])
        if used > most:
            most, processor = used, int(fields[_PROCESSOR])
    return processor


def _running_stats() -> Iterator[list[str]]:
    """Yield the stat fields of running descendants. Children of further threads are skipped: this is a hint."""
    waiting = [str(os.getpid())]
    for _ in range(_MAX_PROCESSES):
        if not waiting:
            return
        pid = waiting.pop(0)
        waiting += _children(pid)
        fields = stat_fields(pid)
        if fields is not None and fields[0] == "R" and pid != str(os.getpid()):
            yield fields


def _children(pid: str) -> list[str]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb", buffering=0) as file:
            return (file.read(4096) or b"").decode("ascii").split()
    except OSError:
        return []  # it exited, or the kernel has no such list


_QUESTION = re.compile(r"\(y/n\)|\[y/n\]|\(yes/no\)|press (?:any key|enter)|continue\?|overwrite\?", re.IGNORECASE)
_QUESTION_END = re.compile(r"\b(?:do you|would you|shall i|are you sure)\b[^\n]*\?\s*$", re.IGNORECASE)

#: Terminal escape sequences within a prompt: colours, cursor moves, title. Compiled when needed: most
#: supervisors never need it.
_CONTROL = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*|\x1b.|[\x00-\x09\x0b-\x1f]"

#: Bytes of the output's end that are checked.
TAIL_SIZE = 1024


def looks_like_question(tail: str) -> bool:
    """Return whether a job that printed this last, and then nothing for long, seems to wait for an answer."""
    tail = tail[-TAIL_SIZE:]
    return _QUESTION.search(tail) is not None or _QUESTION_END.search(tail) is not None


def ends_without_newline(tail: str) -> bool:
    """Return whether the last line has text and no newline, like a prompt: `Password: `, `package name: (a) `."""
    return bool(re.sub(_CONTROL, "", tail[-TAIL_SIZE:]).rpartition("\n")[2].strip())


#: System call numbers by machine. On other machines a prompt is recognised by its text alone.
_READS = {"x86_64": (0, 19), "aarch64": (63, 65)}  # read, readv
_EPOLLS = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}  # epoll_wait, epoll_pwait, epoll_pwait2
_POLLS = {"x86_64": (7, 271, 23, 270), "aarch64": (73, 72)}  # poll, ppoll, select, pselect6

#: /dev/tty: the controlling terminal of the process that opens it, from which passwords are read.
_CONTROLLING_TERMINAL = 5 << 8  # major 5, minor 0

#: Most threads of one process that are checked.
_MAX_THREADS = 64


class InputSource(NamedTuple):
    """The read end of a command's input: its file, and its device if it is a terminal."""

    device: int
    inode: int
    terminal: int = 0

    @classmethod
    def of(cls, fd: int, *, is_terminal: bool = False) -> InputSource:
        """Return the input behind an open descriptor."""
        found = os.fstat(fd)
        return cls(found.st_dev, found.st_ino, found.st_rdev if is_terminal else 0)

    def is_at(self, pid: int, fd: int) -> bool:
        """Return whether a process has this input open as `fd`."""
        try:
            found = os.stat(f"/proc/{pid}/fd/{fd}")
        except OSError:
            return False
        if self.terminal:
            return found.st_rdev in (self.terminal, _CONTROLLING_TERMINAL)
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def is_being_read(self, pids: Collection[int]) -> bool:
        """Return whether one of these processes sleeps in a system call that reads it or waits until it is readable."""
        machine = os.uname().machine
        calls = ((pid, number, first) for pid in pids for number, first in _sleeping_calls(pid))
        return any(_is_waiting_for(self, pid, number, first, machine) for pid, number, first in calls)


def _is_waiting_for(source: InputSource, pid: int, number: int, first: int, machine: str) -> bool:
    if number in _READS.get(machine, ()):
        return source.is_at(pid, first)
    if number in _EPOLLS.get(machine, ()):
        return any(source.is_at(pid, fd) for fd in _epoll_fds(pid, first))
    return number in _POLLS.get(machine, ()) and source.is_at(pid, 0)


def _sleeping_calls(pid: int) -> Iterator[tuple[int, int]]:
    """Yield the system call each thread sleeps in, with its first argument; none without permission."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")[:_MAX_THREADS]
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as file:
                words = file.read().split()
        except OSError:
            continue  # it exited, or belongs to another user
        if len(words) > 1 and words[0].isdigit():  # else "running", or -1 outside any call
            yield int(words[0]), int(words[1], 16)


def _epoll_fds(pid: int, epoll: int) -> Iterator[int]:
    """Yield the descriptors that an epoll instance waits for."""
    try:
        with open(f"/proc/{pid}/fdinfo/{epoll}", encoding="ascii", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if len(words) > 1 and words[0] == "tfd:" and words[1].isdigit():
            yield int(words[1])
