"""
Who is below us, whatever they did to get away.

A subreaper becomes the parent of every orphan below it, so `setsid`, `nohup` and forking twice all
lead back here. Parents are asked of `/proc/<pid>/stat`, since a child of a thread is a child of its
process too. No number is believed for longer than one look.

A process list can lack processes (`hidepid`), so an empty one proves nothing. Proof that no process is left is only
what the kernel says of our own children: `waitpid` fails with ECHILD.
"""

from __future__ import annotations

import os

from taskyard.disk.processes import runs, stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def below(pid: int, *, but: Collection[int] = ()) -> list[int]:
    """Every living process below `pid` that can be seen, parents first, without those in `but` and below them."""
    children: dict[int, list[int]] = {}
    parents = _parents()
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    if pid == os.getpid():
        for child in _own_children() or ():
            if child not in parents and _is_hidden(child):
                children.setdefault(pid, []).append(child)
    return _walked(children, pid, but)


def only(those: Collection[int]) -> bool:
    """Whether every child of this process is among `those`, by the kernel's list of them; False if it has none."""
    children = _own_children()
    return children is not None and all(child in those for child in children)


def collect() -> tuple[dict[int, int], bool]:
    """The statuses of the children that ended, by pid, and whether no child is left at all: the kernel said ECHILD."""
    ended: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return ended, False
            ended[pid] = status
    except ChildProcessError:
        return ended, True


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
    """The parent of each process that lives; zombies without a living thread only wait to be collected."""
    found: dict[int, int] = {}
    for name in _listed("/proc"):
        if name.isdigit() and (fields := stat_fields(name)) is not None and runs(name, fields):
            found[int(name)] = int(fields[1])
    return found


def _own_children() -> list[int] | None:
    """The children of this process, zombies too; None where the kernel keeps no list of them.

    This list is complete also where `/proc` hides processes of other users. It changes only when we collect a child
    or an orphan comes to us.
    """
    found: list[int] = []
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        return None
    return found


def _is_hidden(pid: int) -> bool:
    """Whether `/proc` does not show a process that is there. A zombie is shown to its parent's user."""
    return stat_fields(str(pid)) is None


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # no /proc here: nothing can be seen, and nothing is proved by that


def signal_all(pids: Collection[int], number: int) -> None:
    """Send a signal to each of those that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # gone, or somebody else's since it ran a setuid program: it then shows as a survivor
