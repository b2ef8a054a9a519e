"""A keeper whose command does not run: before its turn, and between two attempts. Wishes reach it all the same."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.keeper.request import Request

#: The longest rest between two attempts, in seconds: whoever waits longer wants a timetable.
LONGEST_REST = 60.0


class Idle:
    """What both have in common: they can be stopped, and there is nothing to pause or to type into."""

    def __init__(self, request: Request, until: float) -> None:
        """`until`: when to look up even if nothing happens."""
        self._request = request
        self._next = until
        self.is_over = False
        self.stopped_by: str | None = None

    @property
    def until(self) -> float:
        """When to look again."""
        return self._next

    def stop(self, cause: str, *, by: str, grace: float | None = None) -> None:
        """End without running (again)."""
        self.stopped_by = by
        self.is_over = True

    def starter_died(self) -> None:
        """Whoever started us is gone."""
        if self._request.on_parent_exit == "kill":
            self.stop("stopped", by="its starter's end")

    def woken(self) -> None:
        """The time has come to look, or something happened."""

    def grew(self) -> None:
        """Our own record changed: nothing to see."""

    def pause(self) -> bool:
        """What does not run cannot be paused."""
        return False

    def resume(self) -> bool:
        """Nor go on."""
        return False

    def answer(self, data: bytes) -> bool:
        """Nor read."""
        return False


class Rest(Idle):
    """A while between two attempts, twice as long each time."""

    def __init__(self, request: Request, attempt: int) -> None:
        """`attempt` is the one that comes, from 2 on."""
        doublings = min(attempt - 2, 16)
        super().__init__(request, time.monotonic() + min(request.retry_delay * 2**doublings, LONGEST_REST))

    def woken(self) -> None:
        """Go on when the time has come."""
        if time.monotonic() >= self._next:
            self.is_over = True
