"""`taskyard __sinks FILE`: tell one piece of news to every sink, in the process that `start_sinks` makes for it."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="As `taskyard.runtime.sinks.start_sinks` wrote it.")


def _run(args: Args) -> int:
    from taskyard.runtime.sink_delivery import tell

    failed = tell(args.file)
    if not args.as_json:
        for text in failed:
            warn(text)
    answer(args, lambda: {"failed": failed}, list)
    return 1 if failed else 0


SINKS = Command(_run, _arguments, "Tell one piece of news to every sink.")
