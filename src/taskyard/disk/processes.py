"""Which process, on which machine: a number means nothing without its start, nor a start without its boot."""

from __future__ import annotations

import os


def process_alive(pid: int, start: int) -> bool:
    """Whether the very process with this pid and start time runs; a zombie does not."""
    fields = stat_fields(str(pid))
    return fields is not None and fields[0] not in ("Z", "X") and fields[19] == str(start)


def process_start(pid: int | None = None) -> int:
    """When process `pid` (this one) started, in clock ticks since boot; 0 if it is gone."""
    fields = stat_fields("self" if pid is None else str(pid))
    return int(fields[19]) if fields else 0


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
