"""How long to wait for an unavailable database, and reports of such waits.

with max_wait(0.0): …     a live view does not block: it shows that the database is unavailable
with min_wait(40.0): …    a caller with its own longer timeout waits that long for the database as well
report_waits(report)      a user at a command line sees why nothing happens
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

#: Seconds after which a wait is reported.
_REPORT_AFTER = 1.0

_max_wait: ContextVar[float | None] = ContextVar("most", default=None)
_min_wait: ContextVar[float] = ContextVar("least", default=0.0)
_report: Callable[[str], None] | None = None


@contextmanager
def max_wait(seconds: float) -> Generator[None]:
    """Limit the retries of all statements of this thread within the block to `seconds`."""
    token = _max_wait.set(seconds)
    try:
        yield
    finally:
        _max_wait.reset(token)


@contextmanager
def min_wait(seconds: float) -> Generator[None]:
    """Retry all statements of this thread within the block for at least `seconds`."""
    token = _min_wait.set(seconds)
    try:
        yield
    finally:
        _min_wait.reset(token)


def wait_limit(usual: float) -> float:
    """Return how long to retry here, in seconds."""
    usual, most = max(usual, _min_wait.get()), _max_wait.get()
    return usual if most is None else min(usual, most)


def report_waits(report: Callable[[str], None] | None) -> None:
    """Report every long wait of this process to `report`; None: stop reporting."""
    global _report
    _report = report


class WaitReporter:
    """Reports waits for one database: when one becomes long, and when the database answers again."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._is_told = False

    @contextmanager
    def during(self, patience: float, why: Callable[[], str]) -> Generator[None]:
        """Report if the block takes longer than `_REPORT_AFTER`, with the reason from `why` if known by then."""
        report = _report
        if report is None or patience < _REPORT_AFTER:
            yield
            return

        def tell() -> None:
            if not self._is_told:
                self._is_told = True
                reason = why() or "it does not answer yet"
                report(f"Waiting for the database {self._where}, at most {patience:.0f} s: {reason}.")

        timer = threading.Timer(_REPORT_AFTER, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        if self._is_told:
            self._is_told = False
            report(f"The database {self._where} answers again.")
