"""`taskyard team create | list`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer, open_yard
from taskyard.view.text import padded, safe, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.liveness import Seen
    from taskyard.tasklist.team_record import Team


def _create_arguments(parser: Parser) -> None:
    parser.add("name", nargs="?", metavar="TEAM", help="Its name; made up if not given.")
    parser.add("--lead", metavar="AGENT", help="Who leads it; --by if not given.")


def _create(args: Args) -> int:
    with open_yard(args) as yard:
        team = yard.teams.create(args.name, lead=args.lead or yard.agent)
    return answer(args, lambda: team_json(team), lambda: [f"Team {named(team)} is there."], ids=[team.name])


def _list(args: Args) -> int:
    with open_yard(args) as yard:
        teams = yard.teams
        found = teams.list()
        damaged = [str(error) for error in teams.damaged]
        living = {team.name: _counts(teams.members(team.name)) for team in found}
    data = [{**team_json(team), "liveness": living[team.name]} for team in found]
    return answer(args, lambda: data, lambda: _rows(found, living), ids=(team.name for team in found), warnings=damaged)


def _counts(members: Sequence[Seen]) -> dict[str, int]:
    """How many of a team's members are alive, idle, …: those words that fit somebody."""
    found: dict[str, int] = {}
    for seen in members:
        found[seen.liveness] = found.get(seen.liveness, 0) + 1
    return dict(sorted(found.items()))


def _rows(found: Sequence[Team], living: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    if not found:
        yield "No teams. `taskyard team up` has one work; `taskyard team create` founds one."
        return
    widest = max(width(safe(team.name)) for team in found)
    for team in found:
        count = len(team.members)
        members = "1 member" if count == 1 else f"{count} members"
        lead = f", led by {safe(team.lead)}" if team.lead else ""
        words = ", ".join(f"{number} {word}" for word, number in living[team.name].items())
        source = "  (Claude Code's)" if team.source == "claude" else ""
        yield f"{padded(safe(team.name), widest)}  {members}{lead}{f': {words}' if words else ''}{source}"


def named(team: Team) -> str:
    """A team and its lead, for people."""
    return safe(team.name) + (f", led by {safe(team.lead)}" if team.lead else "")


def team_json(team: Team) -> dict[str, object]:
    """A team as plain JSON values, its members by name."""
    return {
        "name": team.name,
        "lead": team.lead,
        "created_at": team.created_at,
        "source": team.source,
        "members": [member.name for member in team.members],
    }


CREATE = Command(
    _create,
    _create_arguments,
    "Found a team. Its tasks are on the list of the same name.",
    examples=("taskyard team create crew --lead ada",),
    exits=("5  there is one of that name",),
)
LIST = Command(
    _list, None, "All teams, ours and those of a Claude Code beside us.", examples=("taskyard team list --json",)
)
