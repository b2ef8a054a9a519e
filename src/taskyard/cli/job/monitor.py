"""`taskyard monitor`: something watched as a job, and its events told while it runs."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, start_or_watch
from taskyard.cli.values import seconds
from taskyard.kinds.monitor import LEVELS, Monitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("--command", metavar="TEXT", dest="watched", help="Watch what this prints, in bash; a line is an event.")
    parser.add("--mcp-command", metavar="TEXT", help="Watch the MCP server that this starts, in bash.")
    parser.add("--mcp-url", metavar="URL", help="Watch the MCP server that listens there.")
    parser.add("--token-env", metavar="NAME", help="With --mcp-url: the variable that holds its token.")
    parser.add(
        "--resource",
        action="append",
        default=[],
        metavar="URI",
        dest="resources",
        help="Of an MCP server: changes of this resource are events; repeatable.",
    )
    parser.add("--logs", choices=LEVELS, help="Of an MCP server: log messages from this level on are events.")
    parser.add("--filter", metavar="RE", help="Tell only of lines in which this regular expression is found.")
    parser.add("--every", type=seconds, default=2.0, metavar="TIME", help="Between two notices at least: 2s.")
    parser.add("--silence", type=seconds, metavar="TIME", help="Tell if there is no event for this long: 10m.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="End it after this long: 1h. Pauses do not count.")
    parser.add("--reconnect", action="store_true", help="Try again if the source is lost, after 1s, 2s, 4s, … 60s.")
    parser.add("--no-notices", action="store_true", help="Tell nobody of events; they are in its output.")
    parser.add("--name", metavar="TEXT", help="What people see, if not the source.")
    parser.add("-d", "--detach", action="store_true", help="Leave it in the background, and print its id.")


def _run(args: Args) -> int:
    spec = Monitor(
        args.watched,
        args.mcp_command,
        args.mcp_url,
        args.token_env,
        args.resources,
        args.logs,
        args.filter,
        args.every,
        args.silence,
        args.timeout,
        args.reconnect,
        not args.no_notices,
        args.name,
    )
    return start_or_watch(args, spec)


MONITOR = Command(
    _run,
    _arguments,
    "Watch what a command prints, or an MCP server's resources and log messages, as a job. All of it is the job's\n"
    "output. With -d, whoever started it is told of events while it runs: at most one notice each two seconds and\n"
    "4 kB, with a count of the rest. Without -d it is watched from here, as `taskyard run` does.",
    examples=(
        "taskyard monitor -d --command 'tail -F app.log' --filter 'ERROR|panic' --silence 10m",
        "taskyard monitor -d --mcp-command 'my-server --stdio' --resource file:///build/status",
        "taskyard monitor -d --mcp-url http://127.0.0.1:8000/mcp --token-env API_TOKEN --logs warning --reconnect",
    ),
    exits=(*EXITS, "130  Ctrl+C"),
)
