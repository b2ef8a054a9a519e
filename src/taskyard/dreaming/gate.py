"""
Whether it is time to dream: pure.

It takes three things: hours since the last time, sessions since then, and nobody else at it. Each that is missing is
named, so that a person sees why nothing happens and when something will.
"""

from __future__ import annotations

from taskyard.typed import NamedTuple

#: What can hold a dream back.
OFF, RUNNING, HOURS, SESSIONS = "off", "running", "hours", "sessions"

#: Seconds by which two clocks may differ; a time further in the future was not written by a dream.
_SKEW = 60.0


class Gate(NamedTuple):
    """Whether it may begin, and what it waits for."""

    held_by: tuple[str, ...] = ()
    opens_at: float | None = None  #: epoch seconds, if time alone opens it
    last_done: float = 0.0  #: epoch seconds; 0: never
    sessions: int = 0  #: since then
    sessions_needed: int = 0

    @property
    def is_open(self) -> bool:
        """Whether nothing holds it back."""
        return not self.held_by


def judge(
    *, now: float, last_done: float, sessions: int, is_running: bool, hours: float, least: int, is_on: bool = True
) -> Gate:
    """How the gate stands.

    Args:
        now: Epoch seconds.
        last_done: Epoch seconds; 0 if never. One in the future counts as never: a clock was wrong.
        sessions: How many there were since then.
        is_running: Whether somebody is at it.
        hours: Between two dreams at least.
        least: Sessions it takes.
        is_on: False: turned off by setting.
    """
    done = last_done if last_done <= now + _SKEW else 0.0
    opens = done + hours * 3600 if done else 0.0
    held: list[str] = []
    if not is_on:
        held.append(OFF)
    if is_running:
        held.append(RUNNING)
    if opens > now:
        held.append(HOURS)
    if sessions < least:
        held.append(SESSIONS)
    return Gate(tuple(held), opens if held == [HOURS] else None, done, sessions, least)


def words(gate: Gate, *, now: float) -> str:
    """Why it is shut, for people; empty if it is not."""
    reasons = {
        OFF: "dreams are turned off (setting dream_enabled)",
        RUNNING: "a dream is at work",
        HOURS: f"the last one was {_hours(now - gate.last_done)} ago",
        SESSIONS: f"{gate.sessions} of {gate.sessions_needed} sessions since the last one are there",
    }
    told = "; ".join(reasons[held] for held in gate.held_by)
    return f"{told}; the gate opens in {_hours(gate.opens_at - now)}" if gate.opens_at else told


def _hours(seconds: float) -> str:
    """`3h 20m`, `40m`, `30s`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m"
