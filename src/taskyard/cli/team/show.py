"""`taskyard team show`: who is in a team, who of them lives, and what each has in hand."""

from __future__ import annotations

from shlex import quote

from taskyard.cli.command import Command
from taskyard.cli.output import answer, open_yard, style
from taskyard.cli.team.records import named, team_json
from taskyard.view.glyphs import painted
from taskyard.view.text import padded, safe, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.crew.roster import Place
    from taskyard.tasklist.team_record import Team

_TOKENS = {"alive": "pass", "waits": "warn", "idle": "default", "stalled": "warn", "dead": "fail", "unknown": "muted"}


def one_team(parser: Parser) -> None:
    """An argument for the name of a team."""
    parser.add("team", metavar="TEAM", help="Its name.")


def _show(args: Args) -> int:
    from taskyard.crew.roster import roster

    with open_yard(args) as yard:
        team = yard.teams.get(args.team)
        places = roster(yard, team.name)
    data = {**team_json(team), "members": [_json(place) for place in places]}
    return answer(args, lambda: data, lambda: _lines(args, team, places), ids=(place.member.name for place in places))


def _lines(args: Args, team: Team, places: Sequence[Place]) -> Iterator[str]:
    from taskyard.crew.news import both_ends

    yield f"Team {named(team)}"
    widest = max((width(safe(place.member.name)) for place in places), default=0)
    for place in places:
        lead = "  lead" if place.member.name == team.lead else ""
        state = "waits" if place.liveness in ("alive", "idle") and _waits(place) else place.liveness
        alive = painted(f"{state:<7}", _TOKENS[state], style(args))
        job = f"  {place.job.id}" if place.job is not None else ""
        task = f"  #{place.task.id} {safe(place.task.subject)}" if place.task is not None else ""
        row = f"  {padded(safe(place.member.name), widest)}  {alive}  {place.member.kind}{lead}{job}{task}"
        yield row.rstrip()
        if place.job is not None and (limit := place.job.rate_limited) is not None:
            yield f"    {limit.state()}"
        if place.job is not None and place.job.needs_input:
            question = both_ends(str(place.job.facts.get("question", "")))
            yield f"    asks: {question}  `taskyard send {place.job.id} 'ANSWER'`"
        if _awaits_approval(place):
            who = f"{quote(safe(team.name))} {quote(safe(place.member.name))}"
            yield f"    wants a plan approved: `taskyard team approve {who}`, `taskyard team reject {who} 'WHY'`"


def _waits(place: Place) -> bool:
    """Whether it waits for a person or a rate limit: the next line says for what."""
    job = place.job
    return job is not None and (job.rate_limited is not None or job.needs_input or _awaits_approval(place))


def _awaits_approval(place: Place) -> bool:
    return place.job is not None and place.job.facts.get("awaitsApproval") is True


def _json(place: Place) -> dict[str, object]:
    return {
        "name": place.member.name,
        "kind": place.member.kind,
        "liveness": place.liveness,
        "state": place.member.state,
        "pid": place.member.pid or None,
        "job": place.job.id if place.job is not None else None,
        "rate_limited": place.job.rate_limited.state() if place.job is not None and place.job.rate_limited else None,
        "needs_input": place.job is not None and place.job.needs_input,
        "awaits_approval": _awaits_approval(place),
        "task": place.task.id if place.task is not None else None,
        "colour": place.member.colour,
    }


SHOW = Command(
    _show,
    one_team,
    "The members of a team, each alive, idle, stalled, dead, or unknown if its liveness was not recorded; with the\n"
    "job that it is, and the task it has in hand. One that waits for a person or a rate limit says for what, and\n"
    "which command answers it.",
    examples=("taskyard team show crew",),
)
