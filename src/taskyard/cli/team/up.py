"""`taskyard team up`: a team of agents works a list until all is done, led from here."""

from __future__ import annotations

import os
import sys

from taskyard.cli.command import Command
from taskyard.cli.output import answer, confirm, print_line, say, wait_aloud
from taskyard.cli.team.options import add_options, patient, wish_of
from taskyard.cli.team.outcome import outcome_json, outcome_lines
from taskyard.cli.values import whole
from taskyard.errors import BadText, BadValue, UsageError
from taskyard.shapes import as_object
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.crew.leading import Course
    from taskyard.crew.outcome import Outcome
    from taskyard.crew.plan_file import Plan

#: More members than these are no team that anybody leads from a terminal.
_MOST_AGENTS = 100

#: Seconds the lead of a team in the background has to see its members gone when it is stopped.
_GRACE = 20.0


def _arguments(parser: Parser) -> None:
    parser.add("name", nargs="?", metavar="TEAM", help="Its name; the plan's, or made up, if not given.")
    parser.add("--agents", type=whole, default=3, metavar="N", help="How many members; 3 if not given.")
    parser.add("--plan", metavar="FILE", help="Tasks to put on the list first: YAML or JSON. Twice adds nothing.")
    add_options(parser)
    parser.add(
        "--in",
        dest="place",
        choices=("process", "tmux", "inside"),
        default="process",
        help="Members as plain processes, in windows of tmux, or all inside one process.",
    )
    parser.add_words("--names", metavar="AGENT", dest="names", help="What members are called.")
    parser.add("--replace", type=whole, default=10, metavar="N", help="How many that die are replaced; 10.")
    parser.add(
        "--yes", "-y", action="store_true", help="Allow the acceptance commands of plan and list without asking."
    )
    parser.add("-d", "--detach", action="store_true", help="Lead in the background; print the team and its job.")


def _run(args: Args) -> int:
    from taskyard.crew import plan_file

    if not 1 <= args.agents <= _MOST_AGENTS:
        raise BadValue("--agents", args.agents, f"a number from 1 to {_MOST_AGENTS}")
    if args.replace < 0:
        raise BadValue("--replace", args.replace, "a number from 0")
    plan = plan_file.read_file(args.plan) if args.plan else None
    name = _team_name(args, plan)
    course = _course(args, name)
    _check_trust(args, name, plan)
    if args.detach:
        return _in_background(args, course)
    return _led(args, course, plan)


def _team_name(args: Args, plan: Plan | None) -> str:
    """The team's name, which is its list's."""
    from taskyard.names import check_name
    from taskyard.tasklist.team_names import made_up

    if args.name and args.list and args.name != args.list:
        raise UsageError(f"A team works the list of its own name: {args.name!r} or {args.list!r}, not both.")
    name = args.name or args.list or (plan.name if plan is not None else None)
    return check_name("a team", name) if name else made_up()


def _course(args: Args, name: str) -> Course:
    """How it is to be led; what could not be is refused here, before anything is made."""
    from taskyard.crew import tmux
    from taskyard.crew.leading import Course
    from taskyard.crew.wish import check_names

    wish = wish_of(args, name)
    wish.spec("member").wanted()
    if args.place == "tmux":
        tmux.program()
    names = check_names(args.names or ())
    return Course(wish, args.agents, args.place, names, args.replace, args.until)


def _led(args: Args, course: Course, plan: Plan | None) -> int:
    from taskyard.cli.team.signals import ended_by_signals
    from taskyard.crew.founding import founded
    from taskyard.crew.leading import Lead

    wait_aloud(args)
    if args.tasks_dir:
        # Members work on the same.
        os.environ |= {"TASKYARD_TASKS_DIR": os.path.abspath(args.tasks_dir), "TASKYARD_STORE": "files"}
    with patient(), ended_by_signals(), founded(course.wish.team, plan, agent=args.by, report=_said) as yard:
        _begin(args, yard, course)
        lead = Lead(yard, course, tell=lambda text: _tell(args, text))
        try:
            outcome = lead.lead()
        except KeyboardInterrupt:
            _report(args, lead.stopped())
            return 130
    _report(args, outcome)
    return 1 if outcome.open or outcome.faults else 0


def _begin(args: Args, yard: Yard, course: Course) -> None:
    tasks = yard.tasks.list()
    if not tasks and course.until == "done":
        raise UsageError(
            f"Nothing is on the list {course.wish.team!r}. Give a --plan, add tasks"
            f" (`taskyard task add --list {course.wish.team} SUBJECT`), or wait for some with `--until stopped`."
        )
    left = sum(not task.is_done for task in tasks)
    todo = f"{left} {'task' if left == 1 else 'tasks'} to do"
    count = f"{course.agents} {'member' if course.agents == 1 else 'members'}"
    say(args, f"Team {course.wish.team}, led by {yard.agent}: {todo}, {count}. Ctrl+C stops it.")


def _check_trust(args: Args, team: str, plan: Plan | None) -> None:
    """Have a person allow acceptance commands of plan and list before anything starts: agents cannot.

    Raises:
        UsageError: there are some, and nobody can be asked.
        Cancelled: the person said no.
    """
    from taskyard import trust
    from taskyard.acceptance import check_acceptance
    from taskyard.app import open as open_yard

    with open_yard(tasks_dir=args.tasks_dir, list=team, via="cli", is_person=True, report=_said) as yard:
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
            continue  # another program's; completing says so
        if not trust.trusted_command(found.command, found.trusted_at):
            wanted.setdefault((found.command, found.trusted_at), []).append(of)
    if not wanted:
        return
    sys.stderr.write("Acceptance commands that nobody has allowed to run yet:\n")
    for (command, folder), tasks in wanted.items():
        more = f" and {len(tasks) - 3} more" if len(tasks) > 3 else ""
        sys.stderr.write(f"  {safe(', '.join(tasks[:3]))}{more}, in {safe(folder)}:\n")
        sys.stderr.writelines(f"    {safe(line)}\n" for line in command.splitlines())
    confirm(args, "No task with one of them can be completed before. Allow these commands to run as you?")
    for command, folder in wanted:
        trust.trust_command(command, folder)


def _tell(args: Args, text: str) -> None:
    """A piece of news; with --json standard output is for the answer alone."""
    if args.quiet:
        return
    if args.as_json:
        sys.stderr.write(text + "\n")
    else:
        print_line(text)
        sys.stdout.flush()


def _said(text: str) -> None:
    sys.stderr.write(safe(text.rstrip(), lines=True) + "\n")


def _report(args: Args, outcome: Outcome) -> None:
    answer(args, lambda: outcome_json(outcome), lambda: outcome_lines(outcome), ids=[task.id for task in outcome.tasks])


def _in_background(args: Args, course: Course) -> int:
    """Have a job do the same."""
    from taskyard.cli.job.shared import jobs_of
    from taskyard.kinds.shell import Shell

    wish = course.wish
    words = ["team", "up", wish.team, "--agents", str(course.agents), "--replace", str(course.replace)]
    words += ["--in", course.place, "--until", course.until, "--engine", wish.engine, "--prompt", wish.prompt]
    words += ["--command", args.command]
    for option, value in (("--plan", args.plan and os.path.abspath(args.plan)), ("--model", wish.model)):
        words += [f"{option}={value}"] if value else []
    words += [f"--on-rate-limit={wish.on_rate_limit}"] if wish.on_rate_limit else []
    words += ["--plan-first"] if wish.plan_first else []
    words += [f"--can={word}" for word in wish.can] + [f"--names={name}" for name in course.names]
    words += [f"--by={args.by}"] if args.by else []
    words += [f"--tasks-dir={os.path.abspath(args.tasks_dir)}"] if args.tasks_dir else []
    shell = Shell([sys.executable, "-P", "-m", "taskyard", *words], name=f"lead of team {wish.team}", grace=_GRACE)
    job = jobs_of(args).start(shell)
    said = f"Team {safe(wish.team)} is led by {job.id}: `taskyard logs -f {job.id}`, `taskyard stop {job.id}`."
    return answer(args, lambda: {"team": wish.team, "job": job.id}, lambda: [said], ids=[job.id])


UP = Command(
    _run,
    _arguments,
    "Found a team with a list of the same name, put a plan on it, and have agents work it: each claims tasks in\n"
    "order, works, completes, and looks again. Seen from here is who does what, who asks something and how to answer,\n"
    "who died and was replaced. When all is done the members are shut down, and a summary says what it took. The\n"
    "list stays.",
    examples=(
        "taskyard team up shop --plan plan.yaml --agents 3 --engine claude",
        "taskyard team up --plan plan.yaml --command 'my-agent --fast' --in tmux",
        "taskyard team up shop -d --until stopped",
    ),
    exits=(
        "0  done: every task is completed",
        "1  something could not be done, or a member did not come",
        "2  the plan, or what members are to run on, cannot be; says where",
        "5  there is such a team, and somebody lives in it",
        "2  acceptance commands are not trusted, and nobody can be asked: --yes",
        "130  Ctrl+C: every member was stopped, with proof",
    ),
)
