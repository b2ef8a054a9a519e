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

    parser.add("--remote", metavar="REMOTE", help="Run the agent on this remote; see `taskyard remote list`.")
    parser.add("--remote-type", choices=SUBTYPES, help="Type of the remote session; default: remote-agent.")
    parser.add(
        "--metadata", type=_pair, action="append", default=[], metavar="KEY=VALUE",
        help="Metadata stored with the remote session and passed to completion checkers.",
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
        raise UsageError("--remote-type and --metadata require --remote.")
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
        raise UsageError(f"--{option} applies to local agents only; omit it, or --remote.")
    given = {name: value for name in _AGENT_REMOTE_OPTIONS if (value := getattr(args, name))}
    given |= {"remote_task_type": args.remote_type} if args.remote_type is not None else {}
    given |= {"metadata": dict(args.metadata)} if args.metadata else {}
    given |= {"task": task} if task is not None else {}
    if args.resume is not None:
        given |= {"remote": args.remote} if args.remote is not None else {}
        return RemoteAgent.resume(args.resume, prompt)._replace(**given)
    return RemoteAgent(prompt, args.remote, **given)


def _arguments(parser: Parser) -> None:
    parser.add("prompt", metavar="PROMPT", help="Prompt for the agent; - reads standard input.")
    parser.add("-d", "--detach", action="store_true", help="Run in the background and print the job id.")
    parser.add("--engine", default="", metavar="ENGINE", help="Engine to run on; see `taskyard engines`.")
    parser.add("--command", default="", metavar="CMD", help="Program and arguments, for engines that run a program.")
    parser.add("--model", metavar="MODEL", help="Model, if the engine supports a choice.")
    parser.add(
        "--type", metavar="TYPE", dest="agent_type", help="Agent type that hooks match on; default: general-purpose."
    )
    parser.add("--name", metavar="NAME", help="Agent name; default: the job id.")
    parser.add(
        "--description", metavar="TEXT", help="Description shown for the job; default: the first line of the prompt."
    )
    parser.add("--cwd", metavar="DIR", help="Working directory; default: the current one.")
    parser.add(
        "--resume",
        metavar="JOB",
        help="Continue an ended agent job: same engine, name, directory and session.",
    )
    parser.add(
        "--main-session",
        action="store_true",
        help="Mark the job as a person's main session that was moved to the background.",
    )
    parser.add("--session", metavar="ID", help="Id of the session to continue, as known to the engine or remote.")
    parser.add("--task", metavar="ID", help="Task the agent works on; usage is added to the task.")
    parser.add("--worktree", action="store_true", help="Run in a new git worktree; it is kept if it contains changes.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="Stop the agent after this time: 90s, 10m.")
    parser.add("--max-tokens", type=integer, metavar="N", help="Stop the agent when it has used this many tokens.")
    parser.add(
        "--max-cost", type=dollars, metavar="USD", help="Stop the agent at this cost, if the engine reports costs."
    )
    parser.add(
        "--permissions",
        choices=PERMISSIONS,
        help="What the agent may do without asking; default: the setting `agent_permissions`.",
    )
    parser.add(
        "--on-rate-limit",
        choices=("wait", "stop"),
        help="Wait until a rate limit is lifted and continue, or stop; default: the setting `on_rate_limit`.",
    )
    parser.add(
        "--on-parent-exit",
        choices=("kill", "keep"),
        help="Kill or keep the agent when the process, agent or job that started it ends.",
    )
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
        raise UsageError(f"--command cannot be parsed: {error}.") from error
    if args.resume is not None and (args.engine or command):
        raise UsageError("--resume uses the engine and program of that job: omit --engine and --command.")
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
    "Run an agent on a prompt, as a job. Its transcript is the job's output (`taskyard logs JOB`); its answer "
    "is printed\n"
    "at the end. Text you type is sent to the agent if the engine accepts input; Ctrl+B and Ctrl+C work as "
    "in\n"
    "`taskyard run`. With -d the agent runs in the background, and a notice reports its end. With --remote it "
    "runs on\n"
    "a remote and continues there if the local job ends; with --session, PROMPT is sent to that remote "
    "session.",
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
    "List the engines that agents can run on, including installed third-party agents.",
    examples=("taskyard engines", "taskyard engines --json"),
)
