"""`taskyard uninstall CLIENT`: our parts out of another program's configuration, and nothing else."""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.cli.command import Command
from taskyard.cli.install import CLIENTS, carry_out, client_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args


def _run(args: Args) -> int:
    from taskyard.clients.planning import for_uninstall
    from taskyard.clients.starting import Start
    from taskyard.clients.target import Wanted

    where = Wanted(Start(("taskyard",), {}), args.scope, paths.project(os.getcwd()).root)
    plan = for_uninstall(args.client, where, os.environ, paths.home())
    return carry_out(args, plan, f"Take Taskyard out of {CLIENTS[args.client]} by these changes?", [])


UNINSTALL = Command(
    _run,
    client_arguments,
    "Take out of a program's configuration what `taskyard install` put there, and put back what it replaced. What you\n"
    "changed since stays. Shows what it will change and asks; a copy of each file is kept beside it.",
    examples=("taskyard uninstall claude-code", "taskyard uninstall codex --scope project --dry-run"),
    exits=(
        "1  a file cannot be changed safely: it is as it was",
        "2  nobody can be asked here: --yes",
        "130  you said no",
    ),
)
