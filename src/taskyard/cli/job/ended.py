"""`taskyard __job_ended ID`: run the hooks of a job's end, in the process that `job_hooks.tell_hooks` makes for it."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("id", metavar="ID", help="The job.")


def _run(args: Args) -> int:
    from taskyard import config, paths
    from taskyard.after_end import run_hooks

    runs = run_hooks(paths.home(), args.id, timeout=config.load().hook_timeout)
    answer(args, lambda: [run._asdict() for run in runs], lambda: [run.text for run in runs if run.text])
    return 0


ENDED = Command(_run, _arguments, "Run the hooks of a job's end.")
