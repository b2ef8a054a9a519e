"""`taskyard mcp`: the tools for any model's client."""

from __future__ import annotations

import os
import sys

from taskyard.cli.command import Command
from taskyard.cli.output import is_terminal
from taskyard.errors import MissingExtra, UsageError
from taskyard.loading import Loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.config import Settings
    from taskyard.mcp_server.http.serving import Ready


#: With one of these in the environment, traces may be wanted.
_TRACED = ("TASKYARD_OTEL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def _arguments(parser: Parser) -> None:
    parser.add("--agent", metavar="AGENT", help="The name the client acts under; its own if not given.")
    parser.add(
        "--http",
        metavar="ADDR",
        help="Serve many clients over HTTP: a port, 127.0.0.1:PORT or [::1]:PORT; port 0 is any free one.",
    )
    parser.add(
        "--token-file",
        metavar="FILE",
        help="With --http: the file with the token that clients must bring; made if it is not there. "
        "If not given, TASKYARD_MCP_TOKEN, else a file in TASKYARD_HOME.",
    )
    parser.add("--show-token", action="store_true", help="Print that token, and serve nothing.")
    parser.add(
        "--allow-remote",
        action="store_true",
        help="With --http: let it be an address that other machines can reach. Whoever has the token can run commands "
        "as you, and nothing is encrypted.",
    )
    parser.add_words(
        "--allow-host",
        metavar="NAME",
        dest="hosts",
        default=[],
        help="With --http: a name or address under which clients ask for it, such as that of a proxy.",
    )


def _run(args: Args) -> int:
    if args.show_token:
        return _show_token(args)
    if args.http is None and (args.token_file or args.allow_remote or args.hosts):
        raise UsageError("--token-file, --allow-remote and --allow-host are for a server with --http.")
    return _serve_stdio(args) if args.http is None else _serve_http(args)


def _serve_stdio(args: Args) -> int:
    """Answer the handshake at once, and load the SDK meanwhile: clients wait about a second for a server's tools."""
    from taskyard import config
    from taskyard.mcp_server import front, manifest

    _check_installed()
    if is_terminal(sys.stdin) and not args.quiet:
        sys.stderr.write("MCP is spoken here, on stdin and stdout: a client starts this by itself. Ctrl+C ends it.\n")
    settings = config.load()
    answers = front.Answers(manifest.load(manifest.offer(settings)), lambda: _resources(args, settings))
    first = front.Front(answers, _load_server)
    handover = first.run()
    if handover is None:
        if first.is_loading:
            os._exit(0)  # nobody waits for what is being loaded
        return 0
    from taskyard.mcp_server import server

    server.serve_stdio(agent=args.agent or args.by, list=args.list, tasks_dir=args.tasks_dir, handover=handover)
    return 0


def _resources(args: Args, settings: Settings) -> list[dict[str, str]] | None:
    from taskyard.mcp_server.resource_list import here

    return here(args.list, settings)


def _check_installed() -> None:
    """Refuse to begin without the libraries it will need, before anything is answered."""
    from importlib.util import find_spec

    for name in ("mcp", "mcp_types"):
        if find_spec(name) is None:
            raise MissingExtra("The MCP server", "mcp", name)
    if any(name in os.environ for name in _TRACED):
        from taskyard.mcp_server import telemetry

        telemetry.check()


def _load_server() -> None:
    try:
        with Loading():
            from importlib import import_module

            import_module("taskyard.mcp_server.server")
    except ModuleNotFoundError as error:
        raise MissingExtra("The MCP server", "mcp", error.name or "") from error


def _serve_http(args: Args) -> int:
    try:
        with Loading():
            from taskyard.mcp_server.http import serving
    except ModuleNotFoundError as error:
        raise MissingExtra("The MCP server", "mcp", error.name or "") from error
    wish = serving.Wish(
        args.http,
        agent=args.agent or args.by,
        list=args.list,
        tasks_dir=args.tasks_dir,
        token_file=args.token_file,
        allow_remote=args.allow_remote,
        hosts=tuple(args.hosts),
    )
    serving.serve(wish, lambda ready: _say(args, ready))
    return 0


def _show_token(args: Args) -> int:
    from taskyard import paths
    from taskyard.cli.output import answer
    from taskyard.mcp_server.http import token as tokens

    found = tokens.find(paths.home(), args.token_file)
    return answer(args, lambda: {"token": found.text, "token_file": found.file}, lambda: [found.text], ids=[found.text])


def _say(args: Args, ready: Ready) -> None:
    """Tell where it is, at once: whoever started it waits for that."""
    from taskyard.cli.output import answer, warn
    from taskyard.view.text import safe

    token = f"in {ready.token_file}" if ready.token_file else "from TASKYARD_MCP_TOKEN"
    answer(
        args,
        lambda: {"url": ready.url, "token_file": ready.token_file, "list": ready.list},
        lambda: [f"Listening on {ready.url} (list {safe(ready.list)}). Its token is {safe(token)}."],
        ids=[ready.url],
    )
    sys.stdout.flush()
    if not ready.address.is_local:
        warn("Other machines can reach it. Whoever has the token can run commands as you, and nothing is encrypted.")


MCP = Command(
    _run,
    _arguments,
    "Serve the list, background jobs and mail as tools over MCP: to the client at stdin and stdout, which starts it\n"
    "by itself (`taskyard install` sets that up), or with --http to any number of clients.",
    examples=(
        "taskyard mcp --agent ada",
        "claude mcp add taskyard -- taskyard mcp",
        "taskyard mcp --http 127.0.0.1:8765",
        "taskyard mcp --show-token",
    ),
)
