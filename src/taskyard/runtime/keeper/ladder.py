"""
Ending a tree of processes, with proof: TERM, a while, KILL, until the kernel says that nobody is left.

Before the kill everybody is stopped first, so that nobody forks while we walk. Keepers of other jobs
below us are never signalled: their jobs end by their own rules, or are to survive.
"""

from __future__ import annotations

import os
import time

from taskyard.runtime.keeper import tree
from taskyard.runtime.keeper.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

#: How long a killed process may take to be gone. Only one stuck in the kernel takes longer.
PATIENCE = 5.0

#: Between two rounds of killing: those just killed need a moment to become orphans of ours.
_ROUND = 0.01


class Ladder:
    """The way down: asked, then made to go."""

    def __init__(self, *, cause: str, by: str, grace: float, now: float) -> None:
        self.cause = cause  #: why: stopped, timeout, output_cap; "" = the command had ended and left processes behind
        self.by = by  #: who or what wants it; "" = nobody, it is the way of things
        self.until = now + grace  #: when the next step is due
        self._gives_up = self.until + PATIENCE
        self._killing = False

    def hurry(self, until: float) -> None:
        """Somebody with less patience came."""
        if not self._killing and until < self.until:
            self.until, self._gives_up = until, until + PATIENCE

    def begin(self, but: Collection[int]) -> int:
        """Ask everybody below us to end; how many there are."""
        below = tree.below(os.getpid(), but=but)
        tree.signal_all(below, signal.SIGTERM)
        tree.signal_all(below, signal.SIGCONT)  # what is paused could not obey
        return len(below)

    def step(self, now: float, but: Collection[int]) -> list[int] | None:
        """Kill whoever is left when the grace is over; those who survive even that, or None: look again."""
        if now < self.until:
            return None
        self._killing = True
        me = os.getpid()
        below = frozen(me, but)
        tree.signal_all(below, signal.SIGKILL)
        self.until = now + _ROUND
        if now < self._gives_up:
            return None
        return below


def sweep(but: Collection[int]) -> list[int]:
    """Kill everybody below us at once, and stay until they are gone; those who survive it."""
    ladder = Ladder(cause="", by="", grace=0.0, now=time.monotonic())
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        survivors = ladder.step(time.monotonic(), but)
        if survivors is not None or not tree.below(os.getpid(), but=but):
            return survivors or []
        time.sleep(_ROUND)


def frozen(pid: int, but: Collection[int]) -> list[int]:
    """Everybody below `pid`, stopped: looked for until no new ones appear."""
    stopped: set[int] = set()
    while True:
        below = tree.below(pid, but=but)
        fresh = [each for each in below if each not in stopped]
        if not fresh:
            return below
        tree.signal_all(fresh, signal.SIGSTOP)
        stopped.update(fresh)
