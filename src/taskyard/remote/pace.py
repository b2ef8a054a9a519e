"""How long to wait before the next poll. Pure."""

from __future__ import annotations

#: Seconds between polls while a session has something to say: as quick as a person who watches notices.
QUICK = 0.5

#: Each poll that finds nothing new makes the next wait longer by this factor, up to so many seconds.
_SLOWER, _SLOWEST = 1.5, 5.0

#: Seconds after the first trouble, twice as many after each further one, and at most.
_FIRST, _LONGEST = 1.0, 30.0

#: Whatever chance says, in seconds: nobody is asked without a pause.
_LEAST = 0.05

#: Doublings beyond which nothing changes.
_MOST_DOUBLINGS = 10


def next_wait(*, quiet: int = 0, trouble: int = 0, chance: float = 1.0) -> float:
    """Seconds until the next poll.

    Args:
        quiet: Polls in a row that found nothing new.
        trouble: Polls in a row that could not be made. Those who lost one place together must not come back together:
            any moment up to the bound is as likely as any other.
        chance: From 0 to 1, drawn by the caller.
    """
    if trouble > 0:
        bound = min(_FIRST * float(2 ** min(trouble - 1, _MOST_DOUBLINGS)), _LONGEST)
        return max(bound * chance, _LEAST)
    return min(QUICK * float(_SLOWER ** min(quiet, _MOST_DOUBLINGS)), _SLOWEST)
