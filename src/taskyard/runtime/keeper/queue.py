"""
Waiting for a turn: for other jobs to end, then for one of the slots that limit how many run at once.

A slot is a byte of a lock file: the kernel gives it back when its keeper ends, however it ends. Of those who wait,
one at a time looks for a slot; it does so four times a second, as no signal tells of a lock that was given back.
"""

from __future__ import annotations

import time

from taskyard.disk.files import make_private_folder
from taskyard.disk.kernel_lock import RangeLock
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.liveness import keeper_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.request import Request

_TICK = 0.25

#: The byte of whoever may look for a slot; the slots are the bytes behind it.
_TURN = 0


class Queue:
    """One job's place in line; wishes reach it as they reach a running job."""

    def __init__(self, born: Born, request: Request) -> None:
        self._born = born
        self._request = request
        self._locks = [RangeLock(path) for path in self._lock_files()]
        self._next = 0.0
        self.is_over = False
        self.stopped_by: str | None = None

    def _lock_files(self) -> list[str]:
        if not self._request.slots:
            return []
        folder = f"{self._request.home}/slots"
        make_private_folder(folder)
        return [f"{folder}/{name}" for name in sorted(self._request.slots)]

    def try_now(self) -> bool:
        """Whether it is our turn already; if not, the record says what we wait for."""
        reason = self._reason()
        self._next = time.monotonic() + _TICK
        if reason:
            if self._born.record.get("waitsFor") != reason:
                self._born.change(waitsFor=reason)
            return False
        self.is_over = True
        return True

    def _reason(self) -> str:
        """What we wait for; nothing if our turn has come."""
        for other in self._request.after:
            if keeper_of(JobFolder(self._request.home, other)) is not None:
                return f"job {other}"
        if not all(lock.try_take(_TURN) for lock in self._locks):
            self._give_back()
            return self._limit()
        for lock, limit in zip(
            self._locks, (self._request.slots[name] for name in sorted(self._request.slots)), strict=True
        ):
            if not any(lock.try_take(slot) for slot in range(1, limit + 1)):
                self._give_back()
                return self._limit()
        for lock in self._locks:
            lock.release(_TURN)
        return ""

    def _give_back(self) -> None:
        for lock in self._locks:
            lock.release()

    def close(self) -> None:
        """Give back the slot, in a process that outlives its job."""
        for lock in self._locks:
            lock.close()

    def _limit(self) -> str:
        limits = ", ".join(f"{limit} {name}" for name, limit in sorted(self._request.slots.items()))
        return f"a slot (at most {limits} at once)"

    @property
    def until(self) -> float:
        """When to look again."""
        return self._next

    # -- what a running job does too -----------------------------------------------------------

    def woken(self) -> None:
        """The time has come to look, or something happened."""
        if not self.is_over and time.monotonic() >= self._next:
            self.try_now()

    def stop(self, cause: str, *, by: str, grace: float | None = None) -> None:
        """End without ever having run."""
        self.stopped_by = by
        self.is_over = True

    def starter_died(self) -> None:
        """Whoever started us is gone."""
        if self._request.on_parent_exit == "kill":
            self.stop("stopped", by="its starter's end")

    def grew(self) -> None:
        """Our own record changed: nothing to see."""

    def pause(self) -> bool:
        """A job that has not begun cannot be paused."""
        return False

    def resume(self) -> bool:
        """Nor go on."""
        return False

    def answer(self, data: bytes) -> bool:
        """Nor read."""
        return False
