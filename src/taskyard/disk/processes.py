"""Which process, on which machine: a number means nothing without its start, nor a start without its boot."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: States in which a thread runs no more: a zombie, and one that is being removed.
_DEAD = ("Z", "X")

#: Where `stat` tells of the process's threads and of its start.
_THREADS, _START = 17, 19


def process_alive(pid: int, start: int) -> bool:
    """Whether the very process with this pid and start time runs; a zombie without living threads does not."""
    fields = stat_fields(str(pid))
    return fields is not None and fields[_START] == str(start) and runs(str(pid), fields)


def runs(pid: str, fields: Sequence[str]) -> bool:
    """Whether a process runs, by its `stat_fields`.

    A process whose main thread has called `pthread_exit` has state Z, and its other threads run on.
    """
    return fields[0] not in _DEAD or (fields[_THREADS] != "1" and living_thread(pid) is not None)


def living_thread(pid: str) -> str | None:
    """The number of a thread of the process that runs, its main thread first; None if there is none."""
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=lambda thread: thread != pid)
    except OSError:
        return None  # it is gone, or hidden from us
    for thread in threads:
        fields = stat_fields(f"{pid}/task/{thread}")
        if fields is not None and fields[0] not in _DEAD:
            return thread
    return None


def proc_folder(pid: str) -> str:
    """The folder in `/proc` that shows what a process has: its files, environment, folder and command.

    That of a process whose main thread has exited is empty; one of a thread that runs shows the same.
    """
    fields = stat_fields(pid)
    if fields is None or fields[0] not in _DEAD or (thread := living_thread(pid)) is None:
        return f"/proc/{pid}"
    return f"/proc/{pid}/task/{thread}"


def process_start(pid: int | None = None) -> int:
    """When process `pid` (this one) started, in clock ticks since boot; 0 if it is gone."""
    fields = stat_fields("self" if pid is None else str(pid))
    return int(fields[_START]) if fields else 0


def open_descriptors() -> list[int]:
    """The numbers of what this process has open beyond the standard three; some may be closed by now."""
    return [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]


def this_host() -> str:
    """The machine and its boot: "<machine id>/<boot id>"."""
    global _host
    if _host is None:
        machine = _first_line("/etc/machine-id") or os.uname().nodename
        _host = f"{machine}/{_first_line('/proc/sys/kernel/random/boot_id') or 'unknown'}"
    return _host


_host: str | None = None


def stat_fields(pid: str) -> list[str] | None:
    """`/proc/<pid>/stat` after the command, which may hold spaces and brackets: state is 0, start is 19."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError:
        return None
    return text[text.rindex(b")") + 2 :].decode("ascii", "replace").split()


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""
