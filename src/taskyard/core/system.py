"""Clocks, process identity and deadlines that other processes can read.

Wall clock for records, boot time for durations, which must include suspended time. A pid is identified only
with its start time, and a start time only with its boot id.

A deadline is text that survives changes of the clock:

    <epoch ms>-<ms since boot>-<boot>

On the same boot of the same machine the boot time decides; elsewhere only the wall clock is available.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_ms() -> int:
    """Return the wall clock in epoch milliseconds, as stored in records."""
    return time.time_ns() // 1_000_000


def boottime() -> float:
    """Return seconds since a fixed moment, including suspended time; only differences are meaningful."""
    return time.clock_gettime(_BOOT)


def iso(epoch_ms: int) -> str:
    """Format `epoch_ms` as ISO 8601 in UTC with milliseconds, as in mail and exports."""
    seconds, ms = divmod(epoch_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03d}Z"


#: States of a thread that no longer runs: a zombie, and one that is being removed.
_DEAD = ("Z", "X")

#: Indexes in `stat_fields` of the number of threads and the start time.
_THREADS, _START = 17, 19


def process_alive(pid: int, start: int) -> bool:
    """Return whether the process with this pid and start time runs; a zombie without live threads does not."""
    fields = stat_fields(str(pid))
    return fields is not None and fields[_START] == str(start) and is_running(str(pid), fields)


def is_running(pid: str, fields: Sequence[str]) -> bool:
    """Return whether a process runs, by its `stat_fields`.

    A process whose main thread has called `pthread_exit` has state Z, and its other threads run on.
    """
    return fields[0] not in _DEAD or (fields[_THREADS] != "1" and running_thread(pid) is not None)


def running_thread(pid: str) -> str | None:
    """Return the id of a running thread of the process, its main thread first; None if there is none."""
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=lambda thread: thread != pid)
    except OSError:
        return None  # it has exited, or is hidden from us
    for thread in threads:
        fields = stat_fields(f"{pid}/task/{thread}")
        if fields is not None and fields[0] not in _DEAD:
            return thread
    return None


def proc_folder(pid: str) -> str:
    """Return the folder in `/proc` with a process's files, environment, cwd and command.

    After the main thread has exited its folder is empty; that of a running thread shows the same.
    """
    fields = stat_fields(pid)
    if fields is None or fields[0] not in _DEAD or (thread := running_thread(pid)) is None:
        return f"/proc/{pid}"
    return f"/proc/{pid}/task/{thread}"


def process_start(pid: int | None = None) -> int:
    """Return the start of process `pid` (default: this one) in clock ticks since boot; 0 if it has exited."""
    fields = stat_fields("self" if pid is None else str(pid))
    return int(fields[_START]) if fields else 0


def open_descriptors() -> list[int]:
    """Return the open descriptors beyond the standard three; some may be closed by now."""
    return [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]


def this_host() -> str:
    """Return the machine and its boot: "<machine id>/<boot id>"."""
    global _host
    if _host is None:
        machine = _first_line("/etc/machine-id") or os.uname().nodename
        _host = f"{machine}/{_first_line('/proc/sys/kernel/random/boot_id') or 'unknown'}"
    return _host


_host: str | None = None


def stat_fields(pid: str) -> list[str] | None:
    """Return the fields of `/proc/<pid>/stat` after the command, which may contain spaces: state is 0, start is 19."""
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


def encode_deadline(seconds: float) -> str:
    """Return the deadline `seconds` from now."""
    span = int(seconds * 1000)
    return f"{now_ms() + span}-{_boot_ms() + span}-{_boot_key()}"


def deadline_passed(text: str) -> bool:
    """Return whether a deadline has passed; an unreadable one has."""
    passed = seconds_since(text)
    return passed is None or passed > 0


def seconds_since(text: str) -> float | None:
    """Return seconds since a deadline, negative before it; None if it is unreadable."""
    clock, _, rest = text.partition("-")
    since_boot, _, boot = rest.partition("-")
    if boot == _boot_key() and since_boot.isdecimal():
        return (_boot_ms() - int(since_boot)) / 1000
    return (now_ms() - int(clock)) / 1000 if clock.isdecimal() else None


def _boot_ms() -> int:
    """Return milliseconds since boot."""
    return int(boottime() * 1000)


def _boot_key() -> str:
    """Return eight hex digits that identify this boot of this machine."""
    import zlib  # loads two libraries, which supervisors do without

    return f"{zlib.crc32(this_host().encode()):08x}"
