"""Waiting in tests: for a condition, bounded, never for a while to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

#: How often a condition is looked at. Short against anything a test waits for.
_LOOK_EVERY = 0.005


def until(condition: Callable[[], object], *, timeout: float = 10.0, what: str = "") -> None:
    """Return as soon as `condition()` is true; fail the test if it is not within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or getattr(condition, '__name__', 'the condition')}")
        time.sleep(_LOOK_EVERY)
