"""How long to wait before the next poll. Pure."""

from __future__ import annotations

from taskyard.names import check_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.remote.remotes import Remote

#: Seconds between polls while a session has something to say: as quick as a person who watches notices.
QUICK = 0.5

#: The same where a place's table says otherwise (`poll_seconds`): at least and at most.
_LEAST_QUICK, _MOST_QUICK = 0.01, 3600.0

#: Each poll that finds nothing new makes the next wait longer by this factor, up to so many seconds.
_SLOWER, _SLOWEST = 1.5, 5.0

#: Seconds after the first trouble, twice as many after each further one, and at most.
_FIRST, _LONGEST = 1.0, 30.0

#: Whatever chance says, in seconds: nobody is asked without a pause.
_LEAST = 0.05

#: Doublings beyond which nothing changes.
_MOST_DOUBLINGS = 10


def quick_of(remote: Remote) -> float:
    """Seconds between polls of a place while a session there has something to say.

    Raises:
        BadValue: its table says something that cannot be.
    """
    given = remote.options.get("poll_seconds", QUICK)
    check_number(f"remotes.{remote.name}.poll_seconds", given, least=_LEAST_QUICK, most=_MOST_QUICK, unit="seconds")
    return float(given) if isinstance(given, (int, float)) else QUICK


def next_wait(*, quick: float = QUICK, quiet: int = 0, trouble: int = 0, chance: float = 1.0) -> float:
    """Seconds until the next poll.

    Args:
        quick: Seconds while there is something new each time.
        quiet: Polls in a row that found nothing new.
        trouble: Polls in a row that could not be made. Those who lost one place together must not come back together:
            any moment up to the bound is as likely as any other.
        chance: From 0 to 1, drawn by the caller.
    """
    if trouble > 0:
        bound = min(_FIRST * float(2 ** min(trouble - 1, _MOST_DOUBLINGS)), _LONGEST)
        return max(bound * chance, _LEAST)
    return min(quick * float(_SLOWER ** min(quiet, _MOST_DOUBLINGS)), max(_SLOWEST, quick))
