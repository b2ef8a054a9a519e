"""Whether an error that a service words in its own way is one of load: pure."""

from __future__ import annotations

import re

#: What services answer with when there is too much to do: too many requests, unavailable, overloaded.
_NUMBERS = re.compile(r"(?<![\w.])(429|503|529)(?![\w.]*\d)")


def is_load(text: str) -> bool:
    """Whether the same may go well later, by the numbers in it.

    >>> is_load("API Error: 529 overloaded"), is_load("exit code 1"), is_load("line 4290")
    (True, False, False)
    """
    return _NUMBERS.search(text) is not None
