"""`taskyard team`: create, list, show, remove, join, leave, up, and approve or reject plans.

`team up` leads a team of agents from this process until its list is done; `team join` records a member or runs
one in this terminal. SIGTERM and SIGHUP clean up like Ctrl+C.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from shlex import quote

from taskyard.agents.lead.team_lead import describe_open_task
from taskyard.cli.job import JOB_EXIT_CODES, exit_code
from taskyard.cli.main import Command
from taskyard.cli.output import (
    announce_waits,
    answer,
    confirm,
    open_yard,
    print_info,
    print_line,
    style,
    warn,
)
from taskyard.cli.parser import integer
from taskyard.core.system import iso, now_ms
from taskyard.core.text import colorize, duration, escape_control, padded, width
from taskyard.core.values import PERSON, as_object, folder_name
from taskyard.errors import AlreadyExists, BadText, BadValue, Conflict, NotFound, TaskyardError, UsageError
from taskyard.tasks.text import note_for_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from typing import NoReturn

    from taskyard.agents.lead.members import MemberSpec
    from taskyard.agents.lead.plan_file import TeamPlan
    from taskyard.agents.lead.removal import RosterEntry, TeamRemoval
    from taskyard.agents.lead.team_lead import TeamOptions, TeamOutcome
    from taskyard.agents.teammate.kind import Teammate
    from taskyard.agents.teams import MemberStatus, Team
    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.model import Job
    from taskyard.yard import Yard


#: Seconds for which a team waits for an unavailable database, unless configured: its work is worth more.
_DATABASE_WAIT = 3600.0

_WAIT_VARIABLE = "TASKYARD_DATABASE_PATIENCE"


def add_member_options(parser: Parser) -> None:
    """Add the options common to all members."""
    parser.add("--engine", default="", metavar="ENGINE", help="Engine that members run on; see `taskyard engines`.")
    parser.add("--command", default="", metavar="CMD", help="Program and arguments, for engines that run a program.")
    parser.add("--model", metavar="MODEL", help="Model, if the engine supports a choice.")
    parser.add("--prompt", default="", metavar="TEXT", help="Instructions given to each member before its tasks.")
    parser.add("--plan-first", action="store_true", help="Members request approval of a plan before each task.")
    parser.add_words(
        "--can", metavar="SKILL", dest="can", help="Capabilities of the members, for tasks that require them."
    )
    parser.add(
        "--on-rate-limit",
        choices=("wait", "stop"),
        help="Wait until a rate limit is lifted and continue, or stop; default: the setting `on_rate_limit`.",
    )
    parser.add(
        "--until", choices=("done", "stopped"), default="done", help="Exit after the last task, or wait for more tasks."
    )


def member_spec(args: Args, team: str) -> MemberSpec:
    """Return the member options given by the arguments.

    Raises:
        UsageError: the command cannot be parsed.
    """
    import shlex

    from taskyard.agents.lead.members import MemberSpec

    try:
        command = tuple(shlex.split(args.command))
    except ValueError as error:
        raise UsageError(f"--command cannot be parsed: {error}.") from error
    return MemberSpec(
        team,
        prompt=args.prompt,
        engine=args.engine,
        command=command,
        model=args.model,
        plan_first=args.plan_first,
        until=args.until,
        can=tuple(args.can or ()),
        on_rate_limit=args.on_rate_limit,
    )


@contextmanager
def wait_for_database() -> Generator[None]:
    """Let this process, and members that it starts, wait long for an unavailable database."""
    if _WAIT_VARIABLE in os.environ:
        yield
        return
    os.environ[_WAIT_VARIABLE] = f"{_DATABASE_WAIT:g}"
    try:
        yield
    finally:
        os.environ.pop(_WAIT_VARIABLE, None)


def outcome_lines(outcome: TeamOutcome) -> Iterator[str]:
    """Return the summary of a team's work, in sentences."""
    done = len(outcome.tasks) - len(outcome.open)
    shares = ", ".join(f"{escape_control(name)} {count}" for name, count in outcome.done_by.items())
    yield ""
    took = f"{outcome.seconds:.1f} s" if outcome.seconds < 60 else duration(outcome.seconds)
    yield f"{done} of {len(outcome.tasks)} tasks done in {took}{f': {shares}' if shares else ''}."
    if outcome.died:
        yield f"{_count_text(outcome.died, 'member')} failed, {outcome.replaced} replaced."
    if outcome.tokens or outcome.cost_usd is not None:
        cost = f", ${outcome.cost_usd:,.2f}" if outcome.cost_usd is not None else ""
        yield f"{outcome.tokens:,} tokens, {_count_text(outcome.tools, 'tool call')}{cost}."
    by_id = {task.id: task for task in outcome.tasks}
    for task in outcome.open:
        yield f"Not done: {describe_open_task(task, by_id, outcome.team)}"
    for fault in outcome.faults:
        yield f"Fault: {escape_control(fault)}."
    if outcome.nudge:
        yield note_for_person(outcome.nudge)


def outcome_json(outcome: TeamOutcome) -> dict[str, object]:
    """Return the summary as JSON values."""
    return {
        "team": outcome.team,
        "tasks": {"total": len(outcome.tasks), "done": len(outcome.tasks) - len(outcome.open)},
        "open": [task.id for task in outcome.open],
        "done_by": dict(outcome.done_by),
        "seconds": round(outcome.seconds, 2),
        "jobs": list(outcome.jobs),
        "died": outcome.died,
        "replaced": outcome.replaced,
        "tokens": outcome.tokens,
        "tool_uses": outcome.tools,
        "cost_usd": outcome.cost_usd,
        "nudge": outcome.nudge,
        "faults": list(outcome.faults),
    }


def _count_text(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _plans_arguments(parser: Parser) -> None:
    parser.add("team", metavar="TEAM", help="Team name.")
    parser.add("agent", metavar="AGENT", help="Member that requested approval.")
    parser.add("text", nargs="?", default="", metavar="TEXT", help="Message to the member.")


def _approve(args: Args) -> int:
    return _answer_plan(args, approved=True)


def _reject(args: Args) -> int:
    if not args.text.strip():
        raise UsageError("No reason given. The member needs it to change its plan.")
    return _answer_plan(args, approved=False)


def _answer_plan(args: Args, *, approved: bool) -> int:
    with open_yard(args) as yard:
        from taskyard.yard import open_mail

        member = yard.teams.get(args.team).member(args.agent)
        post = open_mail(yard.settings, yard.home, args.team)
        sender = yard.agent or PERSON
        name = member.name if member is not None else args.agent
        data: dict[str, object] = {"approved": approved, "feedback": args.text, "timestamp": iso(now_ms())}
        data |= _plan_reference(yard, args.team, name)
        receipt = post.send(sender, name, args.text, type="plan_approval_response", data=data)
    said = f"{escape_control(name)} may proceed." if approved else f"{escape_control(name)} has to change its plan."
    return answer(
        args,
        lambda: {"team": args.team, "member": name, "approved": approved, "message": receipt.id},
        lambda: [said],
        ids=[receipt.id],
    )


def _plan_reference(yard: Yard, team: str, name: str) -> dict[str, object]:
    """Return the reference of the plan the member asks about now, never one that was not shown yet.

    Raises:
        Conflict: it asks about none.
    """
    from taskyard.agents.lead.removal import jobs_of_team, member_name

    for job in jobs_of_team(yard, team):
        if folder_name("an agent", member_name(job)) == folder_name("an agent", name):
            if not job.facts.get("awaitsApproval"):
                raise Conflict(
                    f"{name} has no plan waiting for approval.", f"`taskyard team show {team}` lists pending plans."
                )
            return {"requestId": job.facts.get("planRequest", "")}
    return {}  # a member run by another program: whatever it asks about


APPROVE = Command(
    _approve,
    _plans_arguments,
    "Approve the plan of a team member.",
    examples=("taskyard team approve crew ada",),
    exits=("4  no such team or member", "5  the member has no plan waiting for approval"),
)
REJECT = Command(
    _reject,
    _plans_arguments,
    "Reject the plan of a team member, with a reason.",
    examples=("taskyard team reject crew ada 'Leave the parser alone.'",),
    exits=("4  no such team or member", "5  the member has no plan waiting for approval"),
)


def _create_arguments(parser: Parser) -> None:
    parser.add("name", nargs="?", metavar="TEAM", help="Team name; default: generated.")
    parser.add("--lead", metavar="AGENT", help="Lead of the team; default: --by.")


def _create(args: Args) -> int:
    with open_yard(args) as yard:
        team = yard.teams.create(args.name, lead=args.lead or yard.agent)
    return answer(args, lambda: team_json(team), lambda: [f"Created team {team_title(team)}."], ids=[team.name])


def _list(args: Args) -> int:
    with open_yard(args) as yard:
        teams = yard.teams
        found = teams.list()
        damaged = [str(error) for error in teams.damaged]
        living = {team.name: _counts(teams.members(team.name)) for team in found}
    data = [{**team_json(team), "liveness": living[team.name]} for team in found]
    return answer(args, lambda: data, lambda: _rows(found, living), ids=(team.name for team in found), warnings=damaged)


def _counts(members: Sequence[MemberStatus]) -> dict[str, int]:
    """Return the number of members per liveness state that occurs."""
    found: dict[str, int] = {}
    for seen in members:
        found[seen.liveness] = found.get(seen.liveness, 0) + 1
    return dict(sorted(found.items()))


def _rows(found: Sequence[Team], living: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    if not found:
        yield "No teams. `taskyard team up` runs one; `taskyard team create` creates one."
        return
    widest = max(width(escape_control(team.name)) for team in found)
    for team in found:
        count = len(team.members)
        members = "1 member" if count == 1 else f"{count} members"
        lead = f", led by {escape_control(team.lead)}" if team.lead else ""
        words = ", ".join(f"{number} {word}" for word, number in living[team.name].items())
        source = "  (Claude Code's)" if team.source == "claude" else ""
        yield f"{padded(escape_control(team.name), widest)}  {members}{lead}{f': {words}' if words else ''}{source}"


def team_title(team: Team) -> str:
    """Return a team and its lead, for people."""
    return escape_control(team.name) + (f", led by {escape_control(team.lead)}" if team.lead else "")


def team_json(team: Team) -> dict[str, object]:
    """Return a team as JSON values, its members by name."""
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
    "Create a team. Its tasks are on the list of the same name.",
    examples=("taskyard team create crew --lead ada",),
    exits=("5  the team already exists",),
)
LIST = Command(_list, None, "List all teams, including those of Claude Code.", examples=("taskyard team list --json",))


_TOKENS = {"alive": "pass", "waits": "warn", "idle": "default", "stalled": "warn", "dead": "fail", "unknown": "muted"}


def add_team_argument(parser: Parser) -> None:
    """Add an argument for the name of a team."""
    parser.add("team", metavar="TEAM", help="Team name.")


def _show(args: Args) -> int:
    from taskyard.agents.lead.removal import roster

    with open_yard(args) as yard:
        team = yard.teams.get(args.team)
        places = roster(yard, team.name)
    data = {**team_json(team), "members": [_show_json(place) for place in places]}
    return answer(
        args, lambda: data, lambda: _show_lines(args, team, places), ids=(place.member.name for place in places)
    )


def _show_lines(args: Args, team: Team, places: Sequence[RosterEntry]) -> Iterator[str]:
    from taskyard.agents.lead.team_lead import clip_middle

    yield f"Team {team_title(team)}"
    widest = max((width(escape_control(place.member.name)) for place in places), default=0)
    for place in places:
        lead = "  lead" if place.member.name == team.lead else ""
        state = "waits" if place.liveness in ("alive", "idle") and _waits(place) else place.liveness
        alive = colorize(f"{state:<7}", _TOKENS[state], style(args))
        job = f"  {place.job.id}" if place.job is not None else ""
        task = f"  #{place.task.id} {escape_control(place.task.subject)}" if place.task is not None else ""
        row = f"  {padded(escape_control(place.member.name), widest)}  {alive}  {place.member.kind}{lead}{job}{task}"
        yield row.rstrip()
        if place.job is not None and (limit := place.job.rate_limited) is not None:
            yield f"    {limit.state()}"
        if place.job is not None and place.job.needs_input:
            question = clip_middle(str(place.job.facts.get("question", "")))
            yield f"    asks: {question}  `taskyard send {place.job.id} 'ANSWER'`"
        if _awaits_approval(place):
            who = f"{quote(escape_control(team.name))} {quote(escape_control(place.member.name))}"
            yield f"    requests plan approval: `taskyard team approve {who}`, `taskyard team reject {who} 'REASON'`"


def _waits(place: RosterEntry) -> bool:
    """Return whether it waits for the user or a rate limit: the next line shows for what."""
    job = place.job
    return job is not None and (job.rate_limited is not None or job.needs_input or _awaits_approval(place))


def _awaits_approval(place: RosterEntry) -> bool:
    return place.job is not None and place.job.facts.get("awaitsApproval") is True


def _show_json(place: RosterEntry) -> dict[str, object]:
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
    add_team_argument,
    "Show the members of a team: alive, idle, stalled, dead, or unknown if liveness was not recorded; with "
    "the job and\n"
    "current task of each. For a member that waits for a person or a rate limit, the reason and the command "
    "that\n"
    "answers it are shown.",
    examples=("taskyard team show crew",),
)


def _removal_arguments(parser: Parser) -> None:
    add_team_argument(parser)
    parser.add(
        "--force",
        action="store_true",
        help="Stop all members first, even if stuck, and verify it; also works if the team's record is damaged.",
    )


def _remove(args: Args) -> int:
    with open_yard(args) as yard:
        if args.force:
            from taskyard.agents.lead.removal import remove_by_force

            done = remove_by_force(yard, args.team)
        else:
            from taskyard.agents.lead.removal import TeamRemoval

            teams = yard.teams
            team = teams.remove(args.team)
            done = TeamRemoval(team, teams.released, (), (), ())
    answer(args, lambda: _removal_json(done), lambda: _removal_lines(done), ids=done.released)
    return 1 if done.partial else 0


def _removal_json(done: TeamRemoval) -> dict[str, object]:
    return {
        "team": done.team.name,
        "members": [member.name for member in done.team.members],
        "released": list(done.released),
        "stopped": list(done.stopped),
        "left": list(done.left),
        "partial": list(done.partial),
    }


def _removal_lines(done: TeamRemoval) -> Iterator[str]:
    yield f"Deleted team {escape_control(done.team.name)}; its mail is kept.{released_text(done.released)}"
    for names, what in (
        (done.stopped, "Stopped"),
        (done.left, "Still running, because not started by Taskyard"),
        (done.partial, "Processes may be left of"),
    ):
        if names:
            yield f"{what}: {', '.join(escape_control(name) for name in names)}."


def released_text(ids: Sequence[str]) -> str:
    """Return the requeued tasks as a sentence to append."""
    return f" Released: {', '.join('#' + task_id for task_id in ids)}." if ids else ""


REMOVE = Command(
    _remove,
    _removal_arguments,
    "Delete a team. Its list and its mail are kept; unfinished tasks of its members are released. With "
    "--force, members\n"
    "that Taskyard runs are stopped first, with all their processes, and so is the `team up` that leads them; "
    "this also\n"
    "works for stuck, dead or damaged members.",
    examples=("taskyard team remove crew", "taskyard team remove crew --force"),
    exits=(
        "1  processes of a stopped member may be left",
        "5  a member may still be alive: use --force; or the team belongs to Claude Code",
    ),
)


def _join_arguments(parser: Parser) -> None:
    add_team_argument(parser)
    parser.add(
        "agent", nargs="?", metavar="AGENT", help="Agent that joins; default: --by. For a member run here: generated."
    )
    parser.add("--pid", type=integer, help="Process id of the agent, used to check whether it is alive.")
    add_member_options(parser)


def _join(args: Args) -> int:
    works = any((args.engine, args.command, args.model, args.prompt, args.plan_first, args.can))
    if works and args.pid is not None:
        raise UsageError("--pid cannot be used for a member that Taskyard runs.")
    return _join_working(args) if works else _join_record(args)


def _join_record(args: Args) -> int:
    with open_yard(args) as yard:
        name = _agent_name(args, yard.agent)
        kind, pid, start = "external", 0, 0
        if args.pid is not None:
            from taskyard.core.system import process_start

            kind, pid, start = "process", args.pid, process_start(args.pid) if args.pid > 0 else 0
            if not start:
                raise NotFound(f"Process {args.pid} does not exist.")
        member = yard.teams.join(args.team, name, kind=kind, pid=pid, start=start)
    said = f"{escape_control(member.name)} joined team {escape_control(args.team)}."
    return answer(args, lambda: {"team": args.team, "member": member.name}, lambda: [said], ids=[member.name])


def _join_working(args: Args) -> int:
    """Run a member in this terminal until it is done; Ctrl+C ends it, and its tasks are requeued."""
    from taskyard.agents.lead.members import free_names

    wish = member_spec(args, args.team)
    args.list = args.team
    with wait_for_database(), open_yard(args) as yard:
        team = yard.teams.get(args.team)
        wanted = args.agent or yard.agent
        taken = [member.name for member in team.members]
        name = wanted or next(free_names(yard.home, team.name, taken))
        if team.member(name) is not None and _is_alive(yard, team.name, name):
            raise AlreadyExists(f"a member of team {team.name!r}", name, hint="Take another name.")
        job = _run_to_end(args, yard, wish.spec(name), said="")
    if job.end is not None and job.end.error:
        warn(f"{name} ended: {job.end.error}")
    answer(args, lambda: _members_json(args, name, job), list, ids=[job.id])
    return exit_code([job])


def _run_to_end(args: Args, yard: Yard, spec: Teammate, *, said: str) -> Job:
    from taskyard.agents.lead.members import run_member
    from taskyard.agents.lead.members import write_response as tell

    def started(job_id: str) -> None:
        if said:
            tell(said, jobs={spec.name: job_id})
        print_info(args, f"{spec.name} works in team {spec.team} as {job_id}. Ctrl+C stops it and releases its tasks.")

    def show(text: str) -> None:
        if not args.as_json and not args.quiet:
            print_line(text)

    with exit_on_signals():
        return run_member(yard, spec, started=started, show=show)


def _is_alive(yard: Yard, team: str, name: str) -> bool:
    return any(seen.member.name == name and seen.liveness != "dead" for seen in yard.teams.members(team))


def _members_json(args: Args, name: str, job: Job) -> dict[str, object]:
    from taskyard.jobs.model import job_json

    return {"team": args.team, "member": name, "job": job_json(job)}


def _member_arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="As `taskyard.agents.lead.members` wrote it.")


def _member(args: Args) -> int:
    """Run one member in a tmux window and show its output."""
    from taskyard.agents.lead import members as lead_members

    request = lead_members.take_request(args.file, surroundings=True)
    try:
        args.tasks_dir, args.list, args.by = None, request.wish.team, None
        with open_yard(args) as yard:
            job = _run_to_end(args, yard, request.wish.spec(request.names[0]), said=request.said)
    except TaskyardError as error:
        lead_members.write_response(request.said, error=str(error))
        raise
    return exit_code([job])


def _members(args: Args) -> int:
    """Run the process that hosts members inside it."""
    import asyncio

    from taskyard.agents.lead import members as lead_members
    from taskyard.yard.async_yard import open_async

    request = lead_members.take_request(args.file, surroundings=False)

    async def host() -> int:
        async with open_async(list=request.wish.team) as yard:
            return await lead_members.host_members(
                yard,
                request.wish,
                request.names,
                started=lambda jobs: lead_members.write_response(request.said, jobs=jobs),
            )

    try:
        failed = asyncio.run(host())
    except TaskyardError as error:
        lead_members.write_response(request.said, error=str(error))
        raise
    return 1 if failed else 0


def _leave_arguments(parser: Parser) -> None:
    add_team_argument(parser)
    parser.add("agent", nargs="?", metavar="AGENT", help="Agent that leaves; default: --by.")


def _leave(args: Args) -> int:
    with open_yard(args) as yard:
        teams = yard.teams
        member = teams.leave(args.team, _agent_name(args, yard.agent))
        back = teams.released
    data = {"team": args.team, "member": member.name, "released": list(back)}
    said = f"{escape_control(member.name)} left team {escape_control(args.team)}.{released_text(back)}"
    return answer(args, lambda: data, lambda: [said], ids=back)


def _progress_arguments(parser: Parser) -> None:
    add_team_argument(parser)
    parser.add("agent", nargs="?", metavar="AGENT", help="Agent name; default: --by.")
    parser.add("--idle", action="store_true", help="Report that the agent has nothing to do.")


def _progress(args: Args) -> int:
    with open_yard(args) as yard:
        state = "idle" if args.idle else "working"
        member = yard.teams.progress(args.team, _agent_name(args, yard.agent), state=state)
    data = {"team": args.team, "member": member.name, "state": member.state}
    said = f"{escape_control(member.name)} is {'idle' if args.idle else 'at work'}."
    return answer(args, lambda: data, lambda: [said], ids=[member.name])


def _agent_name(args: Args, agent: str | None) -> str:
    name: str | None = args.agent or agent
    if not name:
        raise UsageError("No agent given. Name it, or use --by (or TASKYARD_AGENT).")
    return name


JOIN = Command(
    _join,
    _join_arguments,
    "Add an agent to a team, also to one of Claude Code's; it gets a mailbox there. With --engine (or "
    "--command) run the\n"
    "member here: it claims and completes tasks in order until all tasks are completed or you press Ctrl+C.",
    examples=(
        "taskyard team join crew bob",
        "taskyard team join crew bob --pid $$",
        "taskyard team join crew --engine claude",
        "taskyard team join crew bob --command 'my-agent --fast' --until stopped",
    ),
    exits=("5  a member of that name may still be alive", *JOB_EXIT_CODES),
)
LEAVE = Command(
    _leave,
    _leave_arguments,
    (
        "Remove an agent from a team. Its unfinished tasks are released; its mail stays readable. A running "
        "member is stopped."
    ),
    examples=("taskyard team leave crew bob",),
    exits=("4  no such team or member", "5  the member is run by Claude Code"),
)
PROGRESS = Command(
    _progress,
    _progress_arguments,
    "Report that an agent which Taskyard does not run makes progress: a working agent without a report for 60 "
    "s counts as\n"
    "stalled. With --idle, report that it has nothing to do.",
    examples=("taskyard team progress crew bob", "taskyard team progress crew bob --idle"),
    exits=("4  no such team or member",),
)
MEMBER = Command(_member, _member_arguments, "Run a team member in its own window.")
MEMBERS = Command(_members, _member_arguments, "Run several team members in one process.")


@contextmanager
def exit_on_signals() -> Generator[None]:
    """Turn SIGTERM and SIGHUP into an exit that runs every `finally`; further signals are ignored meanwhile."""

    def end(number: int, _: object) -> NoReturn:
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


#: Maximum number of members led from one terminal.
_MOST_AGENTS = 100

#: Seconds a background lead has to stop its members when it is stopped.
_GRACE = 20.0


def _up_arguments(parser: Parser) -> None:
    parser.add("name", nargs="?", metavar="TEAM", help="Team name; default: the plan's, or generated.")
    parser.add("--agents", type=integer, default=3, metavar="N", help="Number of members; default: 3.")
    parser.add(
        "--plan",
        metavar="FILE",
        help="YAML or JSON file with tasks to create first. Existing tasks are not added again.",
    )
    add_member_options(parser)
    parser.add(
        "--in",
        dest="place",
        choices=("process", "tmux", "inside"),
        default="process",
        help="Run members as plain processes, in tmux windows, or all in one process.",
    )
    parser.add_words("--names", metavar="AGENT", dest="names", help="Names of the members.")
    parser.add(
        "--replace",
        type=integer,
        default=10,
        metavar="N",
        help="Maximum number of failed members to replace; default: 10.",
    )
    parser.add(
        "--yes", "-y", action="store_true", help="Trust the acceptance commands of plan and list without asking."
    )
    parser.add(
        "-d", "--detach", action="store_true", help="Lead the team in the background; print the team and its job."
    )


def _run(args: Args) -> int:
    from taskyard.agents.lead import plan_file

    if not 1 <= args.agents <= _MOST_AGENTS:
        raise BadValue("--agents", args.agents, f"a number from 1 to {_MOST_AGENTS}")
    if args.replace < 0:
        raise BadValue("--replace", args.replace, "a number from 0")
    plan = plan_file.read_plan(args.plan) if args.plan else None
    name = _team_name(args, plan)
    team_options = _team_options(args, name)
    _check_trust(args, name, plan)
    if args.detach:
        return _in_background(args, team_options)
    return _lead_team(args, team_options, plan)


def _team_name(args: Args, plan: TeamPlan | None) -> str:
    """Return the team's name, which is also its list's."""
    from taskyard.agents.teams import random_team_name
    from taskyard.core.values import check_name

    if args.name and args.list and args.name != args.list:
        raise UsageError(f"A team works on the list of the same name: give {args.name!r} or {args.list!r}, not both.")
    name = args.name or args.list or (plan.name if plan is not None else None)
    return check_name("a team", name) if name else random_team_name()


def _team_options(args: Args, name: str) -> TeamOptions:
    """Return the team options; invalid ones are refused here, before anything is created."""
    from taskyard.agents.lead import members as lead_members
    from taskyard.agents.lead.members import check_names
    from taskyard.agents.lead.team_lead import TeamOptions

    wish = member_spec(args, name)
    wish.spec("member").wanted()
    if args.place == "tmux":
        lead_members.tmux_path()
    names = check_names(args.names or ())
    return TeamOptions(wish, args.agents, args.place, names, args.replace, args.until)


def _lead_team(args: Args, team_options: TeamOptions, plan: TeamPlan | None) -> int:
    import taskyard
    from taskyard.agents.lead.team_lead import TeamLead, create_team, lead_name

    announce_waits(args)
    if args.tasks_dir:
        # Members use the same store.
        os.environ |= {"TASKYARD_TASKS_DIR": os.path.abspath(args.tasks_dir), "TASKYARD_STORE": "files"}
    team = team_options.wish.team
    with (
        wait_for_database(),
        exit_on_signals(),
        taskyard.open(list=team, agent=lead_name(args.by), is_main=True, report=_print_report) as yard,
        create_team(yard, team, plan),
    ):
        _print_start(args, yard, team_options)
        lead = TeamLead(yard, team_options, tell=lambda text: _print_progress(args, text))
        try:
            outcome = lead.lead()
        except KeyboardInterrupt:
            _print_outcome(args, lead.stopped())
            return 130
    _print_outcome(args, outcome)
    return 1 if outcome.open or outcome.faults else 0


def _print_start(args: Args, yard: Yard, team_options: TeamOptions) -> None:
    tasks = yard.tasks.list()
    if not tasks and team_options.until == "done":
        raise UsageError(
            f"List {team_options.wish.team!r} has no tasks. Give a --plan, add tasks"
            f" (`taskyard task add --list {team_options.wish.team} SUBJECT`), or wait for some with `--until stopped`."
        )
    left = sum(not task.is_done for task in tasks)
    todo = f"{left} {'task' if left == 1 else 'tasks'} to do"
    count = f"{team_options.agents} {'member' if team_options.agents == 1 else 'members'}"
    print_info(args, f"Team {team_options.wish.team}, led by {yard.agent}: {todo}, {count}. Ctrl+C stops it.")


def _check_trust(args: Args, team: str, plan: TeamPlan | None) -> None:
    """Ask the user to allow acceptance commands of plan and list before anything starts: agents cannot.

    Raises:
        UsageError: there are some, and no user can be asked.
        Cancelled: the user refused.
    """
    from taskyard.integrations.acceptance import check_acceptance
    from taskyard.storage import trust
    from taskyard.yard import open as open_yard

    with open_yard(tasks_dir=args.tasks_dir, list=team, via="cli", is_person=True, report=_print_report) as yard:
        specs = [(f"#{task.id}", task.extra.get("acceptance")) for task in yard.tasks.list() if not task.is_done]
    for task in plan.tasks if plan is not None else ():
        specs.append(
            (
                f"{task.draft.subject!r} in {args.plan}",
                (as_object(task.draft.metadata.get("taskyard")) or {}).get("acceptance"),
            )
        )
    wanted: dict[tuple[str, str], list[str]] = {}
    for of, spec in specs:
        if spec is None:
            continue
        try:
            found = check_acceptance(spec, folder=os.getcwd())
        except (BadText, BadValue):
            continue  # written by another program; completing the task reports it
        if not trust.is_command_trusted(found.command, found.trusted_at):
            wanted.setdefault((found.command, found.trusted_at), []).append(of)
    if not wanted:
        return
    sys.stderr.write("Acceptance commands that are not trusted yet:\n")
    for (command, folder), tasks in wanted.items():
        more = f" and {len(tasks) - 3} more" if len(tasks) > 3 else ""
        sys.stderr.write(f"  {escape_control(', '.join(tasks[:3]))}{more}, in {escape_control(folder)}:\n")
        sys.stderr.writelines(f"    {escape_control(line)}\n" for line in command.splitlines())
    confirm(args, "Tasks with these commands cannot be completed until then. Allow these commands to run as you?")
    for command, folder in wanted:
        trust.trust_command(command, folder)


def _print_progress(args: Args, text: str) -> None:
    """Print a progress line; with --json, stdout carries only the JSON result."""
    if args.quiet:
        return
    if args.as_json:
        sys.stderr.write(text + "\n")
    else:
        print_line(text)
        sys.stdout.flush()


def _print_report(text: str) -> None:
    sys.stderr.write(escape_control(text.rstrip(), lines=True) + "\n")


def _print_outcome(args: Args, outcome: TeamOutcome) -> None:
    answer(args, lambda: outcome_json(outcome), lambda: outcome_lines(outcome), ids=[task.id for task in outcome.tasks])


def _in_background(args: Args, team_options: TeamOptions) -> int:
    """Start a job that leads the team."""
    from taskyard.cli.job import open_user_jobs
    from taskyard.jobs.kinds.shell import Shell

    wish = team_options.wish
    words = ["team", "up", wish.team, "--agents", str(team_options.agents), "--replace", str(team_options.replace)]
    words += [
        "--in",
        team_options.place,
        "--until",
        team_options.until,
        "--engine",
        wish.engine,
        "--prompt",
        wish.prompt,
    ]
    words += ["--command", args.command]
    for option, value in (("--plan", args.plan and os.path.abspath(args.plan)), ("--model", wish.model)):
        words += [f"{option}={value}"] if value else []
    words += [f"--on-rate-limit={wish.on_rate_limit}"] if wish.on_rate_limit else []
    words += ["--plan-first"] if wish.plan_first else []
    words += [f"--can={word}" for word in wish.can] + [f"--names={name}" for name in team_options.names]
    words += [f"--by={args.by}"] if args.by else []
    words += [f"--tasks-dir={os.path.abspath(args.tasks_dir)}"] if args.tasks_dir else []
    shell = Shell([sys.executable, "-P", "-m", "taskyard", *words], name=f"lead of team {wish.team}", grace=_GRACE)
    job = open_user_jobs(args).start(shell)
    said = (
        f"Team {escape_control(wish.team)} is led by {job.id}: `taskyard logs -f {job.id}`, `taskyard stop {job.id}`."
    )
    return answer(args, lambda: {"team": wish.team, "job": job.id}, lambda: [said], ids=[job.id])


UP = Command(
    _run,
    _up_arguments,
    "Create a team with a list of the same name, add the tasks of a plan, and run agents that claim and "
    "complete them in\n"
    "order. The output shows the task of each member, questions and how to answer them, and members that "
    "failed and\n"
    "were replaced. When all tasks are completed the members are shut down and a summary is printed. The list "
    "is kept.",
    examples=(
        "taskyard team up shop --plan plan.yaml --agents 3 --engine claude",
        "taskyard team up --plan plan.yaml --command 'my-agent --fast' --in tmux",
        "taskyard team up shop -d --until stopped",
    ),
    exits=(
        "0  done: all tasks are completed",
        "1  a task could not be completed, or a member did not start",
        "2  the plan or the engine is invalid, or acceptance commands are not trusted (--yes)",
        "5  the team exists and has live members",
        "130  Ctrl+C: all members were stopped, and this was verified",
    ),
)
