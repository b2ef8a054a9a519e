"""
Who waits for a database that is away: for how long at most, and who hears of it.

    with at_most(0.0): …     whoever shows something live does not stand still: it shows that the database is away
    with at_least(40.0): …   whoever said how long to wait for something else waits for the database as well
    aloud(say)               a person at a command line is told why nothing happens
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

#: Seconds after which a person wants to know what is waited for.
_MOMENT = 1.0

_most: ContextVar[float | None] = ContextVar("most", default=None)
_least: ContextVar[float] = ContextVar("least", default=0.0)
_report: Callable[[str], None] | None = None


@contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Whatever this thread asks within the block is tried for so long at most."""
    token = _most.set(seconds)
    try:
        yield
    finally:
        _most.reset(token)


@contextmanager
def at_least(seconds: float) -> Generator[None]:
    """Whatever this thread asks within the block is tried for so long, if that is longer than usual."""
    token = _least.set(seconds)
    try:
        yield
    finally:
        _least.reset(token)


def patience(usual: float) -> float:
    """How long to be patient here, in seconds."""
    usual, most = max(usual, _least.get()), _most.get()
    return usual if most is None else min(usual, most)


def aloud(report: Callable[[str], None] | None) -> None:
    """Have every wait of this process that lasts told to `report`; None: no longer."""
    global _report
    _report = report


class Announcing:
    """Tells of the waits for one database: when one begins to last, and when it was worth it."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._is_told = False

    @contextmanager
    def during(self, patience: float, why: Callable[[], str]) -> Generator[None]:
        """Tell, if what happens within the block takes longer than a moment, and `why`, if that is known by then."""
        report = _report
        if report is None or patience < _MOMENT:
            yield
            return

        def tell() -> None:
            if not self._is_told:
                self._is_told = True
                reason = why() or "it does not answer yet"
                report(f"Waiting for the database {self._where}, at most {patience:.0f} s: {reason}.")

        timer = threading.Timer(_MOMENT, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        if self._is_told:
            self._is_told = False
            report(f"The database {self._where} answers again.")
