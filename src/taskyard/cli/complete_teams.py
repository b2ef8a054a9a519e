"""What could stand for a team, a member of one, or an engine. A plain look: Tab makes, locks and logs nothing."""

from __future__ import annotations

from taskyard import config, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasklist.team_record import Team


def teams() -> list[tuple[str, str]]:
    """Every team, ours and Claude Code's, with how many are in it."""
    return [(team.name, f"{len(team.members)} members") for team in _all()]


def members(words: Sequence[str]) -> set[str]:
    """Who is in the teams that the words before the cursor name."""
    return {member.name for team in _all() if team.name in words for member in team.members}


def engines() -> list[tuple[str, str]]:
    """What agents can run on here."""
    from taskyard.engines.installed import engines_here

    return [(one.name, one.about) for one in engines_here() if one.is_ready]


def _all() -> tuple[Team, ...]:
    from taskyard.places import teams_of

    return teams_of(config.load()._replace(database_patience=0), paths.home()).list()
