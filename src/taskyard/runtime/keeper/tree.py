"""
Who is below us, whatever they did to get away.

A subreaper becomes the parent of every orphan below it, so `setsid`, `nohup` and forking twice all
lead back here. Parents are asked of `/proc/<pid>/stat`, since a child of a thread is a child of its
process too. No number is believed for longer than one look.
"""

from __future__ import annotations

import os

from taskyard.disk.processes import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def below(pid: int, *, but: Collection[int] = ()) -> list[int]:
    """Every living process below `pid`, parents first, without the ones in `but` and what is below those."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents().items():
        children.setdefault(parent, []).append(child)
    return _walked(children, pid, but)


def _walked(children: Mapping[int, list[int]], pid: int, but: Collection[int]) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in but:
                found.append(child)
                waiting.append(child)
    return found


def _parents() -> dict[int, int]:
    """The parent of each process that lives; zombies only wait to be collected."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := stat_fields(name)) is not None and fields[0] not in ("Z", "X"):
            found[int(name)] = int(fields[1])
    return found


def signal_all(pids: Collection[int], number: int) -> None:
    """Send a signal to each of those that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # gone, or somebody else's since it ran a setuid program: it then shows as a survivor
