"""`taskyard team …`: who works together, and who of them lives."""

from __future__ import annotations

from taskyard.cli.command import Command, Row
from taskyard.cli.output import answer, open_yard, style
from taskyard.cli.values import whole
from taskyard.errors import NotFound, UsageError
from taskyard.view.glyphs import painted
from taskyard.view.text import padded, safe, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.liveness import Seen
    from taskyard.tasklist.team_record import Team

ROWS = {
    "create": Row("taskyard.cli.team:CREATE", "Found a team"),
    "list": Row("taskyard.cli.team:LIST", "All teams, ours and Claude Code's"),
    "show": Row("taskyard.cli.team:SHOW", "Who is in a team, and who lives"),
    "join": Row("taskyard.cli.team:JOIN", "Let an agent into a team"),
    "leave": Row("taskyard.cli.team:LEAVE", "Take an agent out; its unfinished tasks go back to the pool"),
    "remove": Row("taskyard.cli.team:REMOVE", "Dissolve a team; everyone's unfinished tasks go back to the pool"),
}

_TOKENS = {"alive": "pass", "idle": "default", "stalled": "warn", "dead": "fail", "unknown": "muted"}


def _create_arguments(parser: Parser) -> None:
    parser.add("name", nargs="?", metavar="TEAM", help="Its name; made up if not given.")
    parser.add("--lead", metavar="AGENT", help="Who leads it; --by if not given.")


def _create(args: Args) -> int:
    with open_yard(args) as yard:
        team = yard.teams.create(args.name, lead=args.lead or yard.agent)
    return answer(args, lambda: _team_json(team), lambda: [f"Team {_named(team)} is there."], ids=[team.name])


def _list(args: Args) -> int:
    with open_yard(args) as yard:
        teams = yard.teams
        found = teams.list()
        damaged = [str(error) for error in teams.damaged]
    data = [_team_json(team) for team in found]
    return answer(args, lambda: data, lambda: _rows(found), ids=(team.name for team in found), warnings=damaged)


def _rows(found: Sequence[Team]) -> Iterator[str]:
    if not found:
        yield "No teams. `taskyard team create` founds one."
        return
    widest = max(width(safe(team.name)) for team in found)
    for team in found:
        count = len(team.members)
        members = "1 member" if count == 1 else f"{count} members"
        lead = f", led by {safe(team.lead)}" if team.lead else ""
        source = "  (Claude Code's)" if team.source == "claude" else ""
        yield f"{padded(safe(team.name), widest)}  {members}{lead}{source}"


def _one_team(parser: Parser) -> None:
    parser.add("team", metavar="TEAM", help="Its name.")


def _show(args: Args) -> int:
    with open_yard(args) as yard:
        team, members = yard.teams.get(args.team), yard.teams.members(args.team)

    def lines() -> Iterator[str]:
        yield f"Team {_named(team)}"
        widest = max((width(safe(seen.member.name)) for seen in members), default=0)
        for seen in members:
            lead = "  lead" if seen.member.name == team.lead else ""
            alive = painted(f"{seen.liveness:<7}", _TOKENS[seen.liveness], style(args))
            yield f"  {padded(safe(seen.member.name), widest)}  {alive}  {seen.member.kind}{lead}".rstrip()

    return answer(args, lambda: _team_json(team, members), lines, ids=(seen.member.name for seen in members))


def _join_arguments(parser: Parser) -> None:
    _one_team(parser)
    parser.add("agent", nargs="?", metavar="AGENT", help="Who joins; --by if not given.")
    parser.add("--pid", type=whole, help="The agent's process: the kernel then tells whether it lives.")


def _join(args: Args) -> int:
    with open_yard(args) as yard:
        name = _who(args, yard.agent, "joins")
        kind, pid, start = "external", 0, 0
        if args.pid is not None:
            from taskyard.disk.processes import process_start

            kind, pid, start = "process", args.pid, process_start(args.pid) if args.pid > 0 else 0
            if not start:
                raise NotFound(f"There is no process {args.pid}.")
        member = yard.teams.join(args.team, name, kind=kind, pid=pid, start=start)
    said = f"{safe(member.name)} is in team {safe(args.team)} now."
    return answer(args, lambda: {"team": args.team, "member": member.name}, lambda: [said], ids=[member.name])


def _leave_arguments(parser: Parser) -> None:
    _one_team(parser)
    parser.add("agent", nargs="?", metavar="AGENT", help="Who leaves; --by if not given.")


def _leave(args: Args) -> int:
    with open_yard(args) as yard:
        teams = yard.teams
        member = teams.leave(args.team, _who(args, yard.agent, "leaves"))
        released = teams.released
    data = {"team": args.team, "member": member.name, "released": list(released)}
    said = f"{safe(member.name)} left team {safe(args.team)}.{_released(released)}"
    return answer(args, lambda: data, lambda: [said], ids=released)


def _remove_arguments(parser: Parser) -> None:
    _one_team(parser)
    parser.add("--force", action="store_true", help="Although members may still live, or its record is damaged.")


def _remove(args: Args) -> int:
    with open_yard(args) as yard:
        teams = yard.teams
        team = teams.remove(args.team, force=args.force)
        released = teams.released
    data = {"team": team.name, "members": [m.name for m in team.members], "released": list(released)}
    said = f"Team {safe(team.name)} is no more; its mail is kept.{_released(released)}"
    return answer(args, lambda: data, lambda: [said], ids=released)


def _who(args: Args, agent: str | None, verb: str) -> str:
    name: str | None = args.agent or agent
    if not name:
        raise UsageError(f"Who {verb}? Name the agent, or give --by (or TASKYARD_AGENT).")
    return name


def _released(ids: Sequence[str]) -> str:
    return f" Back in the pool: {', '.join('#' + task_id for task_id in ids)}." if ids else ""


def _named(team: Team) -> str:
    return safe(team.name) + (f", led by {safe(team.lead)}" if team.lead else "")


def _team_json(team: Team, members: Sequence[Seen] | None = None) -> dict[str, object]:
    found: dict[str, object] = {
        "name": team.name,
        "lead": team.lead,
        "created_at": team.created_at,
        "source": team.source,
        "members": [member.name for member in team.members],
    }
    if members is not None:
        found["members"] = [
            {
                "name": seen.member.name,
                "kind": seen.member.kind,
                "liveness": seen.liveness,
                "pid": seen.member.pid or None,
            }
            for seen in members
        ]
    return found


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
SHOW = Command(
    _show,
    _one_team,
    "The members of a team, each alive, idle, stalled, dead, or unknown where nobody recorded how to tell.",
    examples=("taskyard team show crew",),
)
JOIN = Command(
    _join,
    _join_arguments,
    "Let an agent into a team, also one of Claude Code's; it gets a mailbox there.",
    examples=("taskyard team join crew bob", "taskyard team join crew bob --pid $$"),
    exits=("5  a member of that name may still live",),
)
LEAVE = Command(
    _leave,
    _leave_arguments,
    "Take an agent out of a team. Its unfinished tasks go back to the pool; its mail stays readable.",
    examples=("taskyard team leave crew bob",),
    exits=("4  no such team or member", "5  it is a member that Claude Code runs"),
)
REMOVE = Command(
    _remove,
    _remove_arguments,
    "Dissolve a team. Its list stays; its mail is kept apart; unfinished tasks of its members are free again.",
    examples=("taskyard team remove crew", "taskyard team remove crew --force"),
    exits=("5  a member may still live: --force; or the team is Claude Code's",),
)
