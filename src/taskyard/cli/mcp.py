"""`taskyard mcp`: the tools for any model's client."""

from __future__ import annotations

import sys

from taskyard.cli.command import Command
from taskyard.cli.output import is_terminal
from taskyard.errors import MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("--agent", metavar="NAME", help="The name the client acts under; its own if not given.")


def _run(args: Args) -> int:
    try:
        from taskyard.mcp_server import server
    except ModuleNotFoundError as error:
        raise MissingExtra("The MCP server", "mcp", error.name or "") from error
    if is_terminal(sys.stdin) and not args.quiet:
        sys.stderr.write("MCP is spoken here, on stdin and stdout: a client starts this by itself. Ctrl+C ends it.\n")
    server.serve_stdio(agent=args.agent or args.by, list=args.list, tasks_dir=args.tasks_dir)
    return 0


MCP = Command(
    _run,
    _arguments,
    "Serve the list, background jobs and mail as tools over MCP, to the client at stdin and stdout. A client starts it "
    "by itself: `taskyard install` sets that up.",
    examples=("taskyard mcp --agent ada", "claude mcp add taskyard -- taskyard mcp"),
)
