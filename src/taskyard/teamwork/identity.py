"""Who acts: inside a teammate, `name@team`, and nobody else's tasks or threads see it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from taskyard import paths
from taskyard.identity import Acting, acting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.instances import Instance


@contextmanager
def acting_as(name: str, team: str, instance: Instance) -> Generator[Acting]:
    """Act for a teammate within this context: `taskyard.open()` then means its list, its name and its claims."""
    who = Acting(name, team, instance)
    me, list_of = acting.set(who), paths.teammate_team.set(team)
    try:
        yield who
    finally:
        paths.teammate_team.reset(list_of)
        acting.reset(me)


def current() -> Acting | None:
    """The teammate that this code runs for; None outside of any."""
    return acting.get()
