"""
A regular expression against lines that anybody may have written, bounded in time.

Python's expressions backtrack, so that a bad one takes a lifetime for a short line. It looks for signals while it
does: a timer that counts this process's own work, and so neither pauses nor a busy machine, ends the search. What
could not be judged passes, as no event may be missed; a filter that fails again and again is given up.
"""

from __future__ import annotations

import signal

#: Seconds of work for one line.
_LONGEST = 0.25

#: Lines that a filter may fail on; more, and it does nothing but cost time.
_MOST_FAILURES = 3


class Unfit(Exception):
    """The expression takes too long on line after line."""


class _TooLong(Exception):
    """It takes too long on this line."""


class Filter:
    """One expression; only for a program's main thread, where signals arrive."""

    def __init__(self, pattern: str) -> None:
        import re

        self._pattern = re.compile(pattern)
        self._failures = 0
        signal.signal(signal.SIGVTALRM, _stop)

    def passes(self, line: str) -> bool:
        """Whether it is found in the line, or cannot be looked for in reasonable time.

        Raises:
            Unfit: it was so too often.
        """
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, _LONGEST)
            try:
                return self._pattern.search(line) is not None
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except _TooLong:
            self._failures += 1
            if self._failures >= _MOST_FAILURES:
                raise Unfit(
                    f"its filter takes more than {_LONGEST:g} s for a line: write it without repeats inside repeats"
                ) from None
            return True


def _stop(*_: object) -> None:
    raise _TooLong
