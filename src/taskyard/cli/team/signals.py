"""A polite end, or a closed terminal, cleans up as Ctrl+C does."""

from __future__ import annotations

import signal
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import NoReturn


@contextmanager
def ended_by_signals() -> Generator[None]:
    """Turn SIGTERM and SIGHUP into an exit that passes every `finally`; a second one while that goes on is ignored."""

    def end(number: int, _: object) -> NoReturn:
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
