"""`taskyard agent` and `taskyard engines`: an agent at work on a prompt, and what it can run on."""

from __future__ import annotations

import sys

from taskyard.cli import agent_remote
from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, as_our_fault, job_id, jobs_of, task_of
from taskyard.cli.output import answer, is_terminal, print_line, say
from taskyard.cli.values import dollars, seconds, whole
from taskyard.engines.engine import PERMISSIONS
from taskyard.errors import UsageError
from taskyard.shapes import as_object
from taskyard.view.job_records import job_json
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.kinds.agent import Agent
    from taskyard.kinds.remote_agent import RemoteAgent
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.model import Job


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
    parser.add("--max-tokens", type=whole, metavar="N", help="End it when it has used so many tokens.")
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
    agent_remote.add_arguments(parser)


def _run(args: Args) -> int:
    spec = _spec(args)
    jobs = jobs_of(args)
    if args.detach:
        job = jobs.start(spec)
        return answer(args, lambda: job_json(job), lambda: [job.id], ids=[job.id])
    return as_our_fault(lambda args: _watched(args, jobs, spec))(args)


def _spec(args: Args) -> Agent | RemoteAgent:
    import shlex

    from taskyard.kinds.agent import MAIN_SESSION, Agent

    prompt = sys.stdin.read() if args.prompt == "-" else args.prompt
    if agent_remote.is_remote(args):
        return agent_remote.spec_of(args, prompt, task_of(args))
    try:
        command = tuple(shlex.split(args.command))
    except ValueError as error:
        raise UsageError(f"--command cannot be read: {error}.") from error
    if args.resume is not None and (args.engine or command):
        raise UsageError("--resume goes on with the engine and program of that job: leave out --engine and --command.")
    spec = Agent(prompt) if args.resume is None else Agent.resume(job_id(jobs_of(args), args.resume), prompt)
    given = {name: value for name in _OPTIONS if (value := getattr(args, name))}
    given |= {"command": command} if command else {}
    given |= {"agent_type": MAIN_SESSION} if args.main_session else {}
    given |= {"task": task_of(args)} if args.task is not None else {}
    return spec._replace(**given)


#: Options that are fields of an agent under the same name; one that is not given leaves the field as it is.
_OPTIONS = (
    "engine", "agent_type", "name", "description", "model", "cwd", "timeout", "on_parent_exit", "session", "worktree",
    "max_tokens", "max_cost", "permissions", "on_rate_limit",
)  # fmt: skip


def _watched(args: Args, jobs: Jobs, spec: Agent | RemoteAgent) -> int:
    """Stay with it: what is typed is told it, Ctrl+B leaves it in the background, Ctrl+C stops it."""
    from taskyard.cli.job.foreground import code_of, seen_json, tell, watch

    seen = watch(args, jobs, spec, reads=args.prompt != "-" and is_terminal(sys.stdin), shows=False)
    code = code_of(seen)
    found = jobs.output(seen.job.id) if seen.job.is_final else None
    text = None if found is None else str(found.job.facts.get("result") or found.output)
    if args.as_json:
        return answer(args, lambda: {**seen_json(seen, code), "text": text}, list) or code
    if text:
        print_line(safe(text, lines=True).rstrip("\n"))
    end = seen.job.end
    if end is not None and end.cause == "error":
        sys.stderr.write(f"Error: {safe(end.error, lines=True)}\n")
    else:
        tell(args, seen)
    _tell_worktree(args, seen.job)
    return code


def _tell_worktree(args: Args, job: Job) -> None:
    tree = as_object(job.facts.get("worktree")) or {}
    if "kept" in tree:
        say(args, safe(f"Its work is in {tree.get('path')} (branch {tree.get('branch')}): {tree.get('kept')}."))


def _engines(args: Args) -> int:
    from taskyard.engines.installed import engines_here

    found = engines_here()
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
    exits=(*EXITS, "130  Ctrl+C"),
)

ENGINES = Command(
    _engines,
    None,
    "What agents can run on here: the engines, and agents of others that are installed.",
    examples=("taskyard engines", "taskyard engines --json"),
)
