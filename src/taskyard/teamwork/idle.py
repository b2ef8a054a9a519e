"""Whether a teammate has nothing to do, and whom that is news for: pure."""

from __future__ import annotations

from taskyard.clock import iso
from taskyard.typed import NamedTuple

#: Of its last answer, what an idle notification repeats, in characters.
_LONGEST_RESULT = 500


class Idleness(NamedTuple):
    """What was last told; at first nothing."""

    told: bool | None = None

    def is_news(self, *, idle: bool) -> bool:
        """Whether somebody is to be told: only a change is news."""
        return self.told is not idle

    def after(self, *, idle: bool) -> Idleness:
        """Once it was told."""
        return Idleness(idle)


def notification(name: str, *, at: int, result: str) -> dict[str, object]:
    """What the lead is mailed when a teammate has nothing left to do, in Claude Code's words."""
    said = {"result": result[:_LONGEST_RESULT]} if result else {}
    return {"from": name, "timestamp": iso(at), "idleReason": "available", **said}
