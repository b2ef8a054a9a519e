"""
Whether a member of a team lives, and gets on: the kernel's word at the moment of asking.

    alive       it lives and gets on with its work
    idle        it lives and has nothing to do
    stalled     it lives, works, and showed no progress for `stalled_after` seconds
    dead        its instance lock is free, or no process has its pid and start time
    unknown     nobody recorded how to tell, or it lives on another machine
"""

from __future__ import annotations

from taskyard import instances
from taskyard.clock import now_ms
from taskyard.disk.processes import process_alive, this_host
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.team_record import Member


class Seen(NamedTuple):
    """A member, and what the kernel says about it now."""

    member: Member
    liveness: str  #: "alive", "idle", "stalled", "dead" or "unknown"


def liveness(home: str, member: Member, *, stalled_after: float) -> str:
    """What the kernel says about `member` now; "unknown" if nobody can tell from here."""
    alive = _alive(home, member)
    if alive is None:
        return "unknown"
    if not alive:
        return "dead"
    if member.state == "idle":
        return "idle"
    quiet = now_ms() - max(member.last_progress, member.joined_at)
    return "stalled" if quiet > stalled_after * 1000 else "alive"


def _alive(home: str, member: Member) -> bool | None:
    if member.instance:
        return instances.instance_alive(home, member.instance)
    if not member.pid or not member.start:
        return None
    here = this_host()
    if member.host and member.host != here:
        return False if member.host.partition("/")[0] == here.partition("/")[0] else None
    return process_alive(member.pid, member.start)
