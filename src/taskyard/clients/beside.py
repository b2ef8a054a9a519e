"""
Which agents a client's hook speaks for: those whose servers the same client started.

A hook and an MCP server of one session know nothing of each other but that the same process is above both. Of our
ancestors the nearest with a server right below it is the client; a shell further up may have started others.
"""

from __future__ import annotations

import os

from taskyard import instances
from taskyard.disk.processes import process_alive, stat_fields, this_host

#: No process has more ancestors than this.
_DEEPEST = 100


def agents_beside_us(home: str) -> list[str]:
    """The names of the living instances that the nearest of our ancestors started; none if nobody did."""
    below: dict[int, list[str]] = {}
    for record in instances.living(home):
        if record.host == this_host() and process_alive(record.pid, record.start):
            below.setdefault(_parent(record.pid), []).append(record.name)
    for pid in _ancestors():
        if names := below.get(pid):
            return names
    return []


def _ancestors() -> list[int]:
    found: list[int] = []
    pid = os.getppid()
    while pid > 1 and len(found) < _DEEPEST:
        found.append(pid)
        pid = _parent(pid)
    return found


def _parent(pid: int) -> int:
    fields = stat_fields(str(pid))
    return int(fields[1]) if fields else 0
