"""
Whether a process waits for input on a given terminal or pipe, by what the kernel says of its system calls.

`/proc/<pid>/task/<tid>/syscall` names the call a thread sleeps in and its arguments. A read names its descriptor. An
epoll instance lists its descriptors in `fdinfo`. The sets of poll and select are in the process's memory: for these it
must do that it has the input open for reading as descriptor 0.
"""

from __future__ import annotations

import os

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: Numbers of system calls by machine. Others are not known here: there a prompt is recognised by its text alone.
_READS = {"x86_64": (0, 19), "aarch64": (63, 65)}  # read, readv
_EPOLLS = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}  # epoll_wait, epoll_pwait, epoll_pwait2
_POLLS = {"x86_64": (7, 271, 23, 270), "aarch64": (73, 72)}  # poll, ppoll, select, pselect6

#: /dev/tty: the terminal of whoever opens it, which is where passwords are read.
_CONTROLLING_TERMINAL = 5 << 8  # major 5, minor 0

#: Threads of one process that are looked at.
_MOST_THREADS = 64


class Input(NamedTuple):
    """The reading end that a command was given: which file it is, and which device if it is a terminal."""

    device: int
    inode: int
    terminal: int = 0

    @classmethod
    def of(cls, fd: int, *, is_terminal: bool = False) -> Input:
        """The input behind an open descriptor."""
        found = os.fstat(fd)
        return cls(found.st_dev, found.st_ino, found.st_rdev if is_terminal else 0)

    def is_at(self, pid: int, fd: int) -> bool:
        """Whether a process has this input open as `fd`."""
        try:
            found = os.stat(f"/proc/{pid}/fd/{fd}")
        except OSError:
            return False
        if self.terminal:
            return found.st_rdev in (self.terminal, _CONTROLLING_TERMINAL)
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def is_awaited(self, pids: Collection[int]) -> bool:
        """Whether any of these processes sleeps in a system call that reads from it, or waits until it can be read."""
        machine = os.uname().machine
        calls = ((pid, number, first) for pid in pids for number, first in _sleeping_calls(pid))
        return any(_waits_for(self, pid, number, first, machine) for pid, number, first in calls)


def _waits_for(source: Input, pid: int, number: int, first: int, machine: str) -> bool:
    if number in _READS.get(machine, ()):
        return source.is_at(pid, first)
    if number in _EPOLLS.get(machine, ()):
        return any(source.is_at(pid, fd) for fd in _watched(pid, first))
    return number in _POLLS.get(machine, ()) and source.is_at(pid, 0)


def _sleeping_calls(pid: int) -> Iterator[tuple[int, int]]:
    """The system call each thread of a process sleeps in, with its first argument; none where we may not look."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")[:_MOST_THREADS]
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as file:
                words = file.read().split()
        except OSError:
            continue  # it ended, or belongs to another user
        if len(words) > 1 and words[0].isdigit():  # else "running", or -1 outside any call
            yield int(words[0]), int(words[1], 16)


def _watched(pid: int, epoll: int) -> Iterator[int]:
    """The descriptors that an epoll instance waits for."""
    try:
        with open(f"/proc/{pid}/fdinfo/{epoll}", encoding="ascii", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if len(words) > 1 and words[0] == "tfd:" and words[1].isdigit():
            yield int(words[1])
