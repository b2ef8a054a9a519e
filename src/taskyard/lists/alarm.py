"""Being woken by whoever can only be waited for: a thread waits, and calls."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: One wait, in seconds: after it the thread of an alarm that was closed ends.
_LONG = 30.0


class Alarm:
    """Calls `wake`, in a thread of its own, each time that `wait` tells of news."""

    def __init__(self, wait: Callable[[float], bool], wake: Callable[[], object]) -> None:
        """`wait` sleeps at most so many seconds, and says whether there may be news; when first asked, there is."""
        self._wait = wait
        self._wake = wake
        self._is_closed = False
        threading.Thread(target=self._run, name="taskyard-alarm", daemon=True).start()

    def _run(self) -> None:
        while not self._is_closed:
            if self._wait(_LONG) and not self._is_closed:
                self._wake()

    def close(self) -> None:
        """Call it no more."""
        self._is_closed = True
