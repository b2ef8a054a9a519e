"""Terminate a process tree with proof: SIGTERM, grace, SIGKILL, until the kernel reports no child.

A subreaper becomes the parent of every orphan below it, so `setsid`, `nohup` and double forks all stay
below us. Parents are read from `/proc/<pid>/stat`, since a child of a thread is a child of its process too.
No pid is trusted for longer than one scan.

A process list can lack processes (`hidepid`), so an empty one proves nothing. The only proof that no
process is left is what the kernel reports of our own children: `waitpid` fails with ECHILD.

Before SIGKILL the whole tree is frozen by SIGSTOP, so that no process forks during the scan. Supervisors of
child jobs are never signalled: their jobs end by their own rules, or are meant to survive.
"""

from __future__ import annotations

import os
import time

from taskyard.core.system import is_running, stat_fields
from taskyard.jobs.supervisor import kernel
from taskyard.jobs.supervisor.kernel import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


def descendants(pid: int, *, exclude: Collection[int] = ()) -> list[int]:
    """Return every visible live process below `pid`, parents first, without `exclude` and their descendants."""
    children: dict[int, list[int]] = {}
    parents = _parent_pids()
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    if pid == os.getpid():
        for child in _own_children() or ():
            if child not in parents and _is_hidden(child):
                children.setdefault(pid, []).append(child)
    return _walk(children, pid, exclude)


def has_only_children(those: Collection[int]) -> bool:
    """Return whether every child of this process is in `those`, by the kernel's list; False without such a list."""
    children = _own_children()
    return children is not None and all(child in those for child in children)


def reap_children() -> tuple[dict[int, int], bool]:
    """Reap exited children; return their statuses by pid, and whether no child is left (ECHILD)."""
    ended: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return ended, False
            ended[pid] = status
    except ChildProcessError:
        return ended, True


def _walk(children: Mapping[int, list[int]], pid: int, exclude: Collection[int]) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in exclude:
                found.append(child)
                waiting.append(child)
    return found


def _parent_pids() -> dict[int, int]:
    """Return the parent of each live process; zombies without a running thread are left out."""
    found: dict[int, int] = {}
    for name in _list_names("/proc"):
        if name.isdigit() and (fields := stat_fields(name)) is not None and is_running(name, fields):
            found[int(name)] = int(fields[1])
    return found


def _own_children() -> list[int] | None:
    """Return the children of this process, zombies too; None if the kernel keeps no list of them.

    This list is complete even where `/proc` hides processes of other users. It changes only when we reap a
    child or become the parent of an orphan.
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
    """Return whether `/proc` hides an existing process. A zombie is shown to its parent's user."""
    return stat_fields(str(pid)) is None


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # no /proc here: nothing is visible, which proves nothing


def signal_all(pids: Collection[int], number: int) -> None:
    """Send a signal to each process that still exists."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # gone, or another user's since it ran a setuid program: it then counts as a survivor


#: Seconds a killed process may take to be gone. Only one stuck in the kernel takes longer.
KILL_TIMEOUT = 5.0

#: Seconds between two rounds of SIGKILL: orphans of killed processes need a moment to be reparented to us.
_ROUND_DELAY = 0.01

#: Attempts to prove that only supervisors of child jobs are left: one that just exited is still a child.
_PROOF_TRIES = 10


class Termination:
    """State of a termination: SIGTERM, then SIGKILL after the grace."""

    def __init__(self, *, cause: str, by: str, grace: float, now: float) -> None:
        self.cause = cause  #: stopped, timeout, output_cap; "": the command exited and left processes behind
        self.by = by  #: who or what requested it; "": no request, leftovers are always terminated
        self.until = now + grace  #: when the next step is due
        self._gives_up = self.until + KILL_TIMEOUT
        self._killing = False

    def shorten(self, until: float) -> None:
        """Bring the SIGKILL forward, for a request with a shorter grace."""
        if not self._killing and until < self.until:
            self.until, self._gives_up = until, until + KILL_TIMEOUT

    def begin(self, exclude: Collection[int]) -> int:
        """Send SIGTERM to every process below us; return how many there are."""
        below = descendants(os.getpid(), exclude=exclude)
        signal_all(below, signal.SIGTERM)
        signal_all(below, signal.SIGCONT)  # a paused process could not handle it
        return len(below)

    def step(self, now: float, exclude: Collection[int]) -> list[int] | None:
        """Send SIGKILL once the grace is over; return the survivors after the timeout, None: check again."""
        if now < self.until:
            return None
        self._killing = True
        me = os.getpid()
        below = freeze_tree(me, exclude)
        signal_all(below, signal.SIGKILL)
        self.until = now + _ROUND_DELAY
        if now < self._gives_up:
            return None
        return below


def kill_all(others: Callable[[], Collection[int]]) -> tuple[list[int], str]:
    """Kill every process below us except the supervisors `others`; return the survivors and the proof."""
    termination = Termination(cause="", by="", grace=0.0, now=time.monotonic())
    while True:
        exclude = others()
        if reap_children()[1] or has_only_children(exclude):
            return [], termination_proof([], others)
        survivors = termination.step(time.monotonic(), exclude)
        if survivors is not None:
            return survivors, termination_proof(survivors, others)
        time.sleep(_ROUND_DELAY)


def termination_proof(survivors: Collection[int], others: Callable[[], Collection[int]]) -> str:
    """Return the proof of termination: `partial` if processes survive, `proved` if the kernel reports none left.

    Proof is ECHILD, or a list of our children with only the supervisors `others`. All else is
    `best_effort`.
    """
    if survivors:
        return "partial"
    if not kernel.is_subreaper():
        return "best_effort"
    for _ in range(_PROOF_TRIES):
        if reap_children()[1] or has_only_children(others()):
            return "proved"
        time.sleep(_ROUND_DELAY)
    return "best_effort"


def freeze_tree(pid: int, exclude: Collection[int]) -> list[int]:
    """Send SIGSTOP to every process below `pid`, until a scan finds no new one; return them."""
    stopped: set[int] = set()
    while True:
        below = descendants(pid, exclude=exclude)
        fresh = [each for each in below if each not in stopped]
        if not fresh:
            return below
        signal_all(fresh, signal.SIGSTOP)
        stopped.update(fresh)
