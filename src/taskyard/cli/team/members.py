"""`taskyard team join | leave`: one member, by record or at work in this terminal."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, exit_code
from taskyard.cli.output import answer, open_yard, print_line, say, warn
from taskyard.cli.team.options import add_options, patient, wish_of
from taskyard.cli.team.removal import released
from taskyard.cli.team.show import one_team
from taskyard.cli.values import whole
from taskyard.errors import AlreadyExists, NotFound, TaskyardError, UsageError
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.kinds.teammate import Teammate
    from taskyard.runtime.model import Job


def _join_arguments(parser: Parser) -> None:
    one_team(parser)
    parser.add("agent", nargs="?", metavar="AGENT", help="Who joins; --by if not given. At work: made up if not given.")
    parser.add("--pid", type=whole, help="The agent's process: the kernel then tells whether it lives.")
    add_options(parser)


def _join(args: Args) -> int:
    works = any((args.engine, args.command, args.model, args.prompt, args.plan_first, args.can))
    if works and args.pid is not None:
        raise UsageError("A member that works here has a process: leave out --pid.")
    return _at_work(args) if works else _recorded(args)


def _recorded(args: Args) -> int:
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


def _at_work(args: Args) -> int:
    """Be a member in this terminal until it is done; Ctrl+C ends it, and its tasks go back."""
    from taskyard.crew.wish import free_names

    wish = wish_of(args, args.team)
    args.list = args.team
    with patient(), open_yard(args) as yard:
        team = yard.teams.get(args.team)
        wanted = args.agent or yard.agent
        taken = [member.name for member in team.members]
        name = wanted or next(free_names(yard.home, team.name, taken))
        if team.member(name) is not None and _lives(yard, team.name, name):
            raise AlreadyExists(f"a member of team {team.name!r}", name, hint="Take another name.")
        job = _seen_through(args, yard, wish.spec(name), said="")
    if job.end is not None and job.end.error:
        warn(f"{name} ended: {job.end.error}")
    answer(args, lambda: _json(args, name, job), list, ids=[job.id])
    return exit_code([job])


def _seen_through(args: Args, yard: Yard, spec: Teammate, *, said: str) -> Job:
    from taskyard.cli.team.signals import ended_by_signals
    from taskyard.crew.asking import say as tell
    from taskyard.crew.member import run_member

    def started(job_id: str) -> None:
        if said:
            tell(said, jobs={spec.name: job_id})
        say(args, f"{spec.name} works in team {spec.team} as {job_id}. Ctrl+C ends it; its tasks go back to the pool.")

    def show(text: str) -> None:
        if not args.as_json and not args.quiet:
            print_line(text)

    with ended_by_signals():
        return run_member(yard, spec, started=started, show=show)


def _lives(yard: Yard, team: str, name: str) -> bool:
    return any(seen.member.name == name and seen.liveness != "dead" for seen in yard.teams.members(team))


def _json(args: Args, name: str, job: Job) -> dict[str, object]:
    from taskyard.view.job_records import job_json

    return {"team": args.team, "member": name, "job": job_json(job)}


def _member_arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="As `taskyard.crew.asking` wrote it.")


def _member(args: Args) -> int:
    """The program in a window of tmux: one member, and what it says."""
    from taskyard.crew import asking

    request = asking.take(args.file, surroundings=True)
    try:
        args.tasks_dir, args.list, args.by = None, request.wish.team, None
        with open_yard(args) as yard:
            job = _seen_through(args, yard, request.wish.spec(request.names[0]), said=request.said)
    except TaskyardError as error:
        asking.say(request.said, error=str(error))
        raise
    return exit_code([job])


def _members(args: Args) -> int:
    """The program that members live inside of."""
    from taskyard.crew import asking
    from taskyard.crew.hosting import host

    request = asking.take(args.file, surroundings=False)
    try:
        failed = host(request.wish, request.names, started=lambda jobs: asking.say(request.said, jobs=jobs))
    except TaskyardError as error:
        asking.say(request.said, error=str(error))
        raise
    return 1 if failed else 0


def _leave_arguments(parser: Parser) -> None:
    one_team(parser)
    parser.add("agent", nargs="?", metavar="AGENT", help="Who leaves; --by if not given.")


def _leave(args: Args) -> int:
    with open_yard(args) as yard:
        teams = yard.teams
        member = teams.leave(args.team, _who(args, yard.agent, "leaves"))
        back = teams.released
    data = {"team": args.team, "member": member.name, "released": list(back)}
    said = f"{safe(member.name)} left team {safe(args.team)}.{released(back)}"
    return answer(args, lambda: data, lambda: [said], ids=back)


def _progress_arguments(parser: Parser) -> None:
    one_team(parser)
    parser.add("agent", nargs="?", metavar="AGENT", help="Who; --by if not given.")
    parser.add("--idle", action="store_true", help="It has nothing to do.")


def _progress(args: Args) -> int:
    with open_yard(args) as yard:
        state = "idle" if args.idle else "working"
        member = yard.teams.progress(args.team, _who(args, yard.agent, "gets on"), state=state)
    data = {"team": args.team, "member": member.name, "state": member.state}
    said = f"{safe(member.name)} is {'idle' if args.idle else 'at work'}."
    return answer(args, lambda: data, lambda: [said], ids=[member.name])


def _who(args: Args, agent: str | None, verb: str) -> str:
    name: str | None = args.agent or agent
    if not name:
        raise UsageError(f"Who {verb}? Name the agent, or give --by (or TASKYARD_AGENT).")
    return name


JOIN = Command(
    _join,
    _join_arguments,
    "Let an agent into a team, also one of Claude Code's; it gets a mailbox there. With --engine (or --command) it is\n"
    "at work here: it claims tasks in order, works, completes, and looks again, until all is done or Ctrl+C.",
    examples=(
        "taskyard team join crew bob",
        "taskyard team join crew bob --pid $$",
        "taskyard team join crew --engine claude",
        "taskyard team join crew bob --command 'my-agent --fast' --until stopped",
    ),
    exits=("5  a member of that name may still live", *EXITS),
)
LEAVE = Command(
    _leave,
    _leave_arguments,
    "Take an agent out of a team. Its unfinished tasks go back to the pool; its mail stays readable. One at work ends.",
    examples=("taskyard team leave crew bob",),
    exits=("4  no such team or member", "5  it is a member that Claude Code runs"),
)
PROGRESS = Command(
    _progress,
    _progress_arguments,
    "Say that an agent which runs outside of Taskyard gets on with its work: one that does not for 60 s while it\n"
    "works counts as stalled. With --idle it has nothing to do.",
    examples=("taskyard team progress crew bob", "taskyard team progress crew bob --idle"),
    exits=("4  no such team or member",),
)
MEMBER = Command(_member, _member_arguments, "A member of a team in a window of its own.")
MEMBERS = Command(_members, _member_arguments, "Members of a team inside one process.")
