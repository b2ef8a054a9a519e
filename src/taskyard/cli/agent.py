"""`taskyard agent` and `taskyard engines`: run an agent on a prompt, here or on a remote."""

from __future__ import annotations

import sys

from taskyard.agents.engines.engine import PERMISSIONS
from taskyard.cli.job import JOB_EXIT_CODES, map_own_errors, open_user_jobs, resolve_job_id, task_ref
from taskyard.cli.main import Command
from taskyard.cli.output import answer, is_terminal, print_info, print_line
from taskyard.cli.parser import dollars, integer, seconds
from taskyard.core.text import escape_control
from taskyard.core.values import as_object
from taskyard.errors import BadValue, UsageError
from taskyard.jobs.model import job_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.agents.agent.kind import Agent
    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.kinds.remote_agent import RemoteAgent
    from taskyard.jobs.model import Job


#: Options that apply only to an agent on this host.
_LOCAL_ONLY = (
    "engine",
    "model",
    "agent_type",
    "cwd",
    "main_session",
    "worktree",
    "max_tokens",
    "max_cost",
    "permissions",
)

#: Options that equal fields of a remote agent.
_AGENT_REMOTE_OPTIONS = ("name", "description", "timeout", "on_parent_exit", "session", "command")


def add_remote_arguments(parser: Parser) -> None:
    """Add the options of a remote agent."""
    from taskyard.jobs.remote.completion import SUBTYPES

    parser.add("--remote", metavar="REMOTE", help="Have it work elsewhere: a place of `taskyard remote list`.")
    parser.add("--remote-type", choices=SUBTYPES, help="What kind of work that is; remote-agent if not given.")
    parser.add(
        "--metadata", type=_pair, action="append", default=[], metavar="KEY=VALUE",
        help="Kept with the session elsewhere, and what completion checkers are asked with.",
    )  # fmt: skip


def _pair(text: str) -> tuple[str, str]:
    """Parse `KEY=VALUE`, both text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise BadValue("--metadata", text, "KEY=VALUE, such as prNumber=7")
    return key.strip(), value


def is_remote(args: Args) -> bool:
    """Return whether a remote agent is requested; a job to resume shows it by its id."""
    if args.remote is not None:
        return True
    if args.remote_type is not None or args.metadata:
        raise UsageError("--remote-type and --metadata are for an agent elsewhere: name the place with --remote.")
    return args.resume is not None and args.resume.startswith("r")


def remote_spec(args: Args, prompt: str, task: str | None) -> RemoteAgent:
    """Return the remote agent described by the arguments.

    Raises:
        UsageError: some of them apply only to an agent on this host.
        Conflict: the job to resume has no session.
    """
    from taskyard.jobs.kinds.remote_agent import RemoteAgent

    if odd := [name for name in _LOCAL_ONLY if getattr(args, name)]:
        option = {"agent_type": "type"}.get(odd[0], odd[0]).replace("_", "-")
        raise UsageError(f"--{option} is about an agent that works here; leave it out, or --remote.")
    given = {name: value for name in _AGENT_REMOTE_OPTIONS if (value := getattr(args, name))}
    given |= {"remote_task_type": args.remote_type} if args.remote_type is not None else {}
    given |= {"metadata": dict(args.metadata)} if args.metadata else {}
    given |= {"task": task} if task is not None else {}
    if args.resume is not None:
        given |= {"remote": args.remote} if args.remote is not None else {}
        return RemoteAgent.resume(args.resume, prompt)._replace(**given)
    return RemoteAgent(prompt, args.remote, **given)


def _arguments(parser: Parser) -> None:
    parser.add("prompt", metavar="PROMPT", help="What it is to do; - reads it from standard input.")
    parser.add("-d", "--detach", action="store_true", help="Leave it in the background, and print its id.")
    parser.add("--engine", default="", metavar="ENGINE", help="What it runs on: see `taskyard engines`.")
    parser.add("--command", default="", metavar="CMD", help="The program of an engine that is one, with its words.")
    parser.add("--model", metavar="MODEL", help="The model, where the engine lets one choose.")
    parser.add("--type", metavar="TYPE", dest="agent_type", help="What hooks match on; general-purpose if not given.")
    parser.add("--name", metavar="NAME", help="The name it acts under; its job's id if not given.")
    parser.add("--description", metavar="TEXT", help="What people see, if not the prompt's first line.")
    parser.add("--cwd", metavar="DIR", help="Where it works, if not here.")
    parser.add(
        "--resume",
        metavar="JOB",
        help="Go on with the work of an agent that is over: its engine, name, folder, session.",
    )
    parser.add("--main-session", action="store_true", help="It is a person's main conversation, put in the background.")
    parser.add("--session", metavar="ID", help="The conversation to go on with, as its engine or its place names it.")
    parser.add("--task", metavar="ID", help="The task it is for: what it takes is counted there.")
    parser.add("--worktree", action="store_true", help="It works in a git worktree of its own, kept if it leaves work.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="End it after this long: 90s, 10m.")
    parser.add("--max-tokens", type=integer, metavar="N", help="End it when it has used so many tokens.")
    parser.add(
        "--max-cost", type=dollars, metavar="USD", help="End it when it has cost so much, where its engine tells."
    )
    parser.add(
        "--permissions",
        choices=PERMISSIONS,
        help="What it may do without asking: the setting `agent_permissions` if not given.",
    )
    parser.add(
        "--on-rate-limit",
        choices=("wait", "stop"),
        help="Wait for a rate limit to lift and continue, or stop; the setting `on_rate_limit` if not given.",
    )
    parser.add("--on-parent-exit", choices=("kill", "keep"), help="When whoever started it ends.")
    add_remote_arguments(parser)


def _run(args: Args) -> int:
    spec = _spec(args)
    jobs = open_user_jobs(args)
    if args.detach:
        job = jobs.start(spec)
        return answer(args, lambda: job_json(job), lambda: [job.id], ids=[job.id])
    return map_own_errors(lambda args: _run_attached(args, jobs, spec))(args)


def _spec(args: Args) -> Agent | RemoteAgent:
    import shlex

    from taskyard.agents.agent.kind import MAIN_SESSION, Agent

    prompt = sys.stdin.read() if args.prompt == "-" else args.prompt
    if is_remote(args):
        return remote_spec(args, prompt, task_ref(args))
    try:
        command = tuple(shlex.split(args.command))
    except ValueError as error:
        raise UsageError(f"--command cannot be read: {error}.") from error
    if args.resume is not None and (args.engine or command):
        raise UsageError("--resume goes on with the engine and program of that job: leave out --engine and --command.")
    spec = (
        Agent(prompt)
        if args.resume is None
        else Agent.resume(resolve_job_id(open_user_jobs(args), args.resume), prompt)
    )
    given = {name: value for name in _AGENT_OPTIONS if (value := getattr(args, name))}
    given |= {"command": command} if command else {}
    given |= {"agent_type": MAIN_SESSION} if args.main_session else {}
    given |= {"task": task_ref(args)} if args.task is not None else {}
    return spec._replace(**given)


#: Options that equal fields of an agent; one that is not given leaves the field unchanged.
_AGENT_OPTIONS = (
    "engine", "agent_type", "name", "description", "model", "cwd", "timeout", "on_parent_exit", "session", "worktree",
    "max_tokens", "max_cost", "permissions", "on_rate_limit",
)  # fmt: skip


def _run_attached(args: Args, jobs: Jobs, spec: Agent | RemoteAgent) -> int:
    """Watch the agent: typed text is sent to it, Ctrl+B detaches, Ctrl+C stops it."""
    from taskyard.cli.attach import print_result, result_code, result_json, start_and_watch

    seen = start_and_watch(args, jobs, spec, reads=args.prompt != "-" and is_terminal(sys.stdin), shows=False)
    code = result_code(seen)
    found = jobs.output(seen.job.id) if seen.job.is_final else None
    text = None if found is None else str(found.job.facts.get("result") or found.output)
    if args.as_json:
        return answer(args, lambda: {**result_json(seen, code), "text": text}, list) or code
    if text:
        print_line(escape_control(text, lines=True).rstrip("\n"))
    end = seen.job.end
    if end is not None and end.cause == "error":
        sys.stderr.write(f"Error: {escape_control(end.error, lines=True)}\n")
    else:
        print_result(args, seen)
    _print_worktree(args, seen.job)
    return code


def _print_worktree(args: Args, job: Job) -> None:
    tree = as_object(job.facts.get("worktree")) or {}
    if "kept" in tree:
        print_info(
            args,
            escape_control(f"Its work is in {tree.get('path')} (branch {tree.get('branch')}): {tree.get('kept')}."),
        )


def _engines(args: Args) -> int:
    from taskyard.agents.engines.provider import list_engines

    found = list_engines()
    return answer(
        args,
        lambda: [{**one._asdict(), "ready": one.is_ready} for one in found],
        lambda: [f"{one.name:<14} {one.about}{'' if one.is_ready else f'  ({one.missing})'}" for one in found],
        ids=[one.name for one in found if one.is_ready],
    )


AGENT = Command(
    _run,
    _arguments,
    "Have an agent work on a prompt, as a job. What it says and does is its transcript (`taskyard logs JOB`); its\n"
    "answer is printed when it is done. What you type meanwhile is told it, where its engine listens; Ctrl+B and\n"
    "Ctrl+C work as in `taskyard run`. With -d it is left in the background, and its end is told by a notice. With\n"
    "--remote it works elsewhere, and goes on there whatever ends here; PROMPT is told to a --session that is there.",
    examples=(
        "taskyard agent 'Fix the failing test' --engine claude",
        "taskyard agent -d 'Summarise today' --command 'my-agent --fast'",
        "git diff | taskyard agent - --engine gemini",
        "taskyard agent 'Now the docs' --resume a1x9k2m4q",
        "taskyard agent -d 'Plan the release' --remote cluster --remote-type ultraplan",
        "taskyard agent 'Tidy up' --engine model --model anthropic:claude-sonnet-4-5",
    ),
    exits=(*JOB_EXIT_CODES, "130  Ctrl+C"),
)

ENGINES = Command(
    _engines,
    None,
    "What agents can run on here: the engines, and agents of others that are installed.",
    examples=("taskyard engines", "taskyard engines --json"),
)
