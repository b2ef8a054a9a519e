"""`taskyard agent --remote NAME`: an agent that works elsewhere, from the same words as one that works here."""

from __future__ import annotations

from taskyard.errors import BadValue, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.kinds.remote_agent import RemoteAgent

#: What only makes sense of an agent that works here.
_HERE = ("engine", "model", "agent_type", "cwd", "main_session", "worktree", "max_tokens", "max_cost", "permissions")

#: Options that are fields of an agent elsewhere under the same name.
_OPTIONS = ("name", "description", "timeout", "on_parent_exit", "session", "command")


def add_arguments(parser: Parser) -> None:
    """What an agent that works elsewhere takes beyond others."""
    from taskyard.remote.completion import SUBTYPES

    parser.add("--remote", metavar="REMOTE", help="Have it work elsewhere: a place of `taskyard remote list`.")
    parser.add("--remote-type", choices=SUBTYPES, help="What kind of work that is; remote-agent if not given.")
    parser.add(
        "--metadata", type=_pair, action="append", default=[], metavar="KEY=VALUE",
        help="Kept with the session elsewhere, and what completion checkers are asked with.",
    )  # fmt: skip


def _pair(text: str) -> tuple[str, str]:
    """`KEY=VALUE`, both text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise BadValue("--metadata", text, "KEY=VALUE, such as prNumber=7")
    return key.strip(), value


def is_remote(args: Args) -> bool:
    """Whether the words ask for an agent elsewhere; a job to go on with tells by its id."""
    if args.remote is not None:
        return True
    if args.remote_type is not None or args.metadata:
        raise UsageError("--remote-type and --metadata are for an agent elsewhere: name the place with --remote.")
    return args.resume is not None and args.resume.startswith("r")


def spec_of(args: Args, prompt: str, task: str | None) -> RemoteAgent:
    """The agent that the words ask for.

    Raises:
        UsageError: some of them are about an agent that works here.
        Conflict: the job to go on with has no session.
    """
    from taskyard.kinds.remote_agent import RemoteAgent

    if odd := [name for name in _HERE if getattr(args, name)]:
        option = {"agent_type": "type"}.get(odd[0], odd[0]).replace("_", "-")
        raise UsageError(f"--{option} is about an agent that works here; leave it out, or --remote.")
    given = {name: value for name in _OPTIONS if (value := getattr(args, name))}
    given |= {"remote_task_type": args.remote_type} if args.remote_type is not None else {}
    given |= {"metadata": dict(args.metadata)} if args.metadata else {}
    given |= {"task": task} if task is not None else {}
    if args.resume is not None:
        given |= {"remote": args.remote} if args.remote is not None else {}
        return RemoteAgent.resume(args.resume, prompt)._replace(**given)
    return RemoteAgent(prompt, args.remote, **given)
