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

#: A client runs a hook itself or by a shell: so near it is. Above it others may have a common ancestor with us.
_NEAR = 2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def agents_beside_us(home: str) -> list[str]:
    """The names of the living instances that the nearest of our ancestors started; none if nobody did."""
    return [record.name for record in _beside_us(_here(home))]


def agents_known_as(home: str, wanted: str) -> list[str]:
    """Who beside us asked for the name `wanted`, and may be called `wanted-2`; else whoever has it by that name alone.

    Nobody, if it is another client's: our own server has not been asked for anything yet, and has no name.
    """
    living = _here(home)
    if ours := [record.name for record in _beside_us(living) if record.agent == wanted]:
        return ours
    near = set(_ancestors(os.getpid())[:_NEAR])
    holders = [record for record in living if record.name == wanted]
    is_theirs = holders and not any(near.intersection(_ancestors(record.pid)) for record in holders)
    return [] if is_theirs else [wanted]


def _here(home: str) -> list[instances.Record]:
    return [
        record
        for record in instances.living(home)
        if record.host == this_host() and process_alive(record.pid, record.start)
    ]


def _beside_us(living: Sequence[instances.Record]) -> list[instances.Record]:
    below: dict[int, list[instances.Record]] = {}
    for record in living:
        below.setdefault(_parent(record.pid), []).append(record)
    for pid in _ancestors(os.getpid()):
        if records := below.get(pid):
            return records
    return []


def _ancestors(pid: int) -> list[int]:
    """Nearest first."""
    found: list[int] = []
    pid = _parent(pid)
    while pid > 1 and len(found) < _DEEPEST:
        found.append(pid)
        pid = _parent(pid)
    return found


def _parent(pid: int) -> int:
    fields = stat_fields(str(pid))
    return int(fields[1]) if fields else 0
