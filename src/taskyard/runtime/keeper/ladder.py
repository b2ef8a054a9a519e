"""
Ending a tree of processes, with proof: TERM, a while, KILL, until the kernel says that nobody is left.

Before the kill everybody is stopped first, so that nobody forks while we walk. Keepers of other jobs
below us are never signalled: their jobs end by their own rules, or are to survive.
"""

from __future__ import annotations

import os
import time

from taskyard.runtime.keeper import kernel, tree
from taskyard.runtime.keeper.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

#: How long a killed process may take to be gone. Only one stuck in the kernel takes longer.
PATIENCE = 5.0

#: Between two rounds of killing: those just killed need a moment to become orphans of ours.
_ROUND = 0.01

#: How often the kernel is asked whether only keepers of other jobs are left: one that just died is still a child.
_LOOKS = 10


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


def sweep(others: Callable[[], Collection[int]]) -> tuple[list[int], str]:
    """Kill every process below us but the keepers of `others`; the survivors, and the proof that there are none."""
    ladder = Ladder(cause="", by="", grace=0.0, now=time.monotonic())
    while True:
        but = others()
        if tree.collect()[1] or tree.only(but):
            return [], proof_of([], others)
        survivors = ladder.step(time.monotonic(), but)
        if survivors is not None:
            return survivors, proof_of(survivors, others)
        time.sleep(_ROUND)


def proof_of(survivors: Collection[int], others: Callable[[], Collection[int]]) -> str:
    """What is known of the processes below us: partial if some survive; proved if the kernel says that none is left.

    It says so by ECHILD, or by a list of our children that holds only keepers of `others`. All else is best_effort.
    """
    if survivors:
        return "partial"
    if not kernel.adopts_orphans():
        return "best_effort"
    for _ in range(_LOOKS):
        if tree.collect()[1] or tree.only(others()):
            return "proved"
        time.sleep(_ROUND)
    return "best_effort"


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
