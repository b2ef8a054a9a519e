"""Colours of teammates, so that people tell them apart: pure."""

from __future__ import annotations

from collections import Counter

from taskyard.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.team_record import Team

#: In the order they are given out; terminals and browsers have all of them.
PALETTE = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")


def check_colour(colour: str | None) -> str | None:
    """`colour`, if there is such a one.

    Raises:
        BadValue: there is not.
    """
    if colour is not None and colour not in PALETTE:
        raise BadValue("colour", colour, f"one of {', '.join(PALETTE)}")
    return colour


def next_colour(taken: Iterable[str | None]) -> str:
    """The colour for whoever joins next: the first of those that the fewest have."""
    count = Counter(taken)
    return min(PALETTE, key=lambda colour: count[colour])


def coloured(team: Team, name: str) -> Team:
    """The team, with a colour for the member of this name, if it has none."""
    there = team.member(name)
    if there is None or there.colour is not None:
        return team
    chosen = next_colour(member.colour for member in team.members)
    return team._replace(
        members=tuple(m._replace(colour=chosen) if m is there else m for m in team.members),
    )
