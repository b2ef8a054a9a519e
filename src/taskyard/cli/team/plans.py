"""`taskyard team approve | reject`: a lead's word on a member's plan."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer, open_yard
from taskyard.clock import iso, now_ms
from taskyard.errors import Conflict, UsageError
from taskyard.names import folder_name
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser

#: Whose word counts beside the lead's.
_PERSON = "me"


def _arguments(parser: Parser) -> None:
    parser.add("team", metavar="TEAM", help="The team.")
    parser.add("agent", metavar="AGENT", help="The member that asked.")
    parser.add("text", nargs="?", default="", metavar="TEXT", help="What to tell it.")


def _approve(args: Args) -> int:
    return _answered(args, approved=True)


def _reject(args: Args) -> int:
    if not args.text.strip():
        raise UsageError("Why not? Without a reason its next plan will be no better.")
    return _answered(args, approved=False)


def _answered(args: Args, *, approved: bool) -> int:
    with open_yard(args) as yard:
        from taskyard.places import mail_of

        member = yard.teams.get(args.team).member(args.agent)
        post = mail_of(yard.settings, yard.home, args.team)
        sender = yard.agent or _PERSON
        name = member.name if member is not None else args.agent
        data: dict[str, object] = {"approved": approved, "feedback": args.text, "timestamp": iso(now_ms())}
        data |= _about(yard, args.team, name)
        receipt = post.send(sender, name, args.text, type="plan_approval_response", data=data)
    said = f"{safe(name)} may go on." if approved else f"{safe(name)} is told to plan again."
    return answer(
        args,
        lambda: {"team": args.team, "member": name, "approved": approved, "message": receipt.id},
        lambda: [said],
        ids=[receipt.id],
    )


def _about(yard: Yard, team: str, name: str) -> dict[str, object]:
    """Which plan is meant: the one that the member asks about now, never one that nobody has seen yet.

    Raises:
        Conflict: it asks about none.
    """
    from taskyard.crew.removal import jobs_of_team, member_of

    for job in jobs_of_team(yard, team):
        if folder_name("an agent", member_of(job)) == folder_name("an agent", name):
            if not job.facts.get("awaitsApproval"):
                raise Conflict(f"{name} asks about no plan now.", f"`taskyard team show {team}` says who does.")
            return {"requestId": job.facts.get("planRequest", "")}
    return {}  # another program's member: whatever it asks about


APPROVE = Command(
    _approve,
    _arguments,
    "Let a member of a team go on with the plan it asked about.",
    examples=("taskyard team approve crew ada",),
    exits=("4  there is no such team or member", "5  it asks about no plan now"),
)
REJECT = Command(
    _reject,
    _arguments,
    "Send a member of a team back to its plan, with the reason.",
    examples=("taskyard team reject crew ada 'Leave the parser alone.'",),
    exits=("4  there is no such team or member", "5  it asks about no plan now"),
)
