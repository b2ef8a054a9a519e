"""
Whether a member of a team lives, and gets on, as of the moment of asking.

    alive       it lives and gets on with its work
    idle        it lives and has nothing to do
    stalled     it lives, works, and showed no progress for `stalled_after` seconds
    dead        its instance lock is free, or no process has its pid and start time
    unknown     nobody recorded how to tell, or it lives on another machine

Of a member on another machine only a database knows: it is dead when nothing was heard of it for `holder_silence`.
"""

from __future__ import annotations

from taskyard.clock import now_ms
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.team_record import Member


class Seen(NamedTuple):
    """A member, and what is known about it now."""

    member: Member
    liveness: str  #: "alive", "idle", "stalled", "dead" or "unknown"


def liveness(member: Member, alive: bool | None, *, stalled_after: float) -> str:
    """What to say of `member`, given whether it lives; None: nobody can tell from here."""
    if alive is None:
        return "unknown"
    if not alive:
        return "dead"
    if member.state == "idle":
        return "idle"
    quiet = now_ms() - max(member.last_progress, member.joined_at)
    return "stalled" if quiet > stalled_after * 1000 else "alive"
