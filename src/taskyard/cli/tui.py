"""`taskyard tui`: tasks, background jobs and one thing in detail, live in a terminal."""

from __future__ import annotations

import os
import sys

from taskyard.cli.command import Command
from taskyard.cli.output import answer, is_terminal, open_yard, say, style
from taskyard.errors import MissingExtra, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args


def _run(args: Args) -> int:
    if args.as_json:
        return _once(args)
    try:
        from taskyard.tui.showing import show
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("taskyard"):
            raise
        raise MissingExtra("The terminal view", "tui", error.name or "") from error
    is_able = os.environ.get("TERM") != "dumb"  # its cursor cannot be moved
    if not (is_able and is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError(
            f"The terminal view needs a terminal{'' if is_able else ' that is not dumb (TERM)'}. "
            "`taskyard tui --json` prints what it would show, once; `taskyard task list` and `taskyard ps` print lines."
        )
    with open_yard(args) as yard:
        said, code = show(yard, style(args), no_colour=args.no_color)
    if said:
        say(args, said)
    return code


def _once(args: Args) -> int:
    """What it would show, for programs."""
    from taskyard.live.showing import Live
    from taskyard.view.changes import whole

    with open_yard(args) as yard, Live(yard) as live:
        snapshot = live.watch().snapshot
        return answer(args, lambda: whole(snapshot), list)


TUI = Command(
    _run,
    None,
    "Show the list, the background jobs and one of them in detail, live, and act on them: ? shows the keys of where\n"
    "you are, Ctrl+P everything that can be done. Leaving it ends no job. With --json, what it shows is printed once.",
    examples=("taskyard tui", "taskyard tui --list release --by ada", "taskyard tui --json | jq .data.headline"),
)
