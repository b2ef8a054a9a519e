"""Options that `team up` and `team join` share: what members run on, and how they go about it."""

from __future__ import annotations

import os
from contextlib import contextmanager

from taskyard.errors import UsageError

#: Seconds for which a team waits for a database that is away, unless a setting says so: its work is worth more.
_AWAY = 3600.0

_PATIENCE = "TASKYARD_DATABASE_PATIENCE"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.crew.wish import Wish


def add_options(parser: Parser) -> None:
    """What every member has in common."""
    parser.add("--engine", default="", metavar="ENGINE", help="What members run on: see `taskyard engines`.")
    parser.add("--command", default="", metavar="CMD", help="The program of an engine that is one, with its words.")
    parser.add("--model", metavar="MODEL", help="The model, where the engine lets one choose.")
    parser.add("--prompt", default="", metavar="TEXT", help="What each member is told before its tasks.")
    parser.add("--plan-first", action="store_true", help="Members ask for approval of a plan before each task.")
    parser.add_words("--can", metavar="SKILL", dest="can", help="What they can do, for tasks that require it.")
    parser.add(
        "--on-rate-limit",
        choices=("wait", "stop"),
        help="Wait for a rate limit to lift and continue, or stop; the setting `on_rate_limit` if not given.",
    )
    parser.add("--until", choices=("done", "stopped"), default="done", help="End with the last task, or wait for more.")


def wish_of(args: Args, team: str) -> Wish:
    """What the arguments ask for.

    Raises:
        UsageError: the command cannot be read.
    """
    import shlex

    from taskyard.crew.wish import Wish

    try:
        command = tuple(shlex.split(args.command))
    except ValueError as error:
        raise UsageError(f"--command cannot be read: {error}.") from error
    return Wish(
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
def patient() -> Generator[None]:
    """Have this process, and members that it starts, wait long for a database that is away."""
    if _PATIENCE in os.environ:
        yield
        return
    os.environ[_PATIENCE] = f"{_AWAY:g}"
    try:
        yield
    finally:
        os.environ.pop(_PATIENCE, None)
