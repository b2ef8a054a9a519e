"""Commands that serve: `taskyard web`, `mcp`, `a2a serve | token | callers`, `relay` and `tui`."""

from __future__ import annotations

import os
import sys

from taskyard import config
from taskyard import yard as yard_module
from taskyard.cli.main import Command
from taskyard.cli.output import answer, is_terminal, open_yard, print_info, style
from taskyard.core.installation import GcPause
from taskyard.errors import MissingExtra, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.config import Settings
    from taskyard.servers.a2a.server import A2aServerInfo as ServerReady
    from taskyard.servers.a2a.skills import Skill
    from taskyard.servers.mcp.http import McpServerInfo as HttpReady
    from taskyard.ui.web.server import WebServerInfo


def _web_arguments(parser: Parser) -> None:
    parser.add(
        "--port",
        metavar="P",
        help="Address to listen on: a port, 127.0.0.1:PORT or [::1]:PORT; port 0 picks a free one. Default: 8787.",
    )
    parser.add("--allow-actions", action="store_true", help="Allow actions on the page: claim, complete, stop, answer.")
    parser.add("--everywhere", action="store_true", help="Show jobs of all projects, not only of this one.")
    parser.add("--new-token", action="store_true", help="Create a new token; addresses printed before become invalid.")
    parser.add("--open", action="store_true", help="Open the page in a browser.")
    parser.add_words(
        "--allow-host",
        metavar="NAME",
        dest="hosts",
        default=[],
        help="Host name that clients use, such as that of a proxy; with its port if it has one.",
    )


def _run_web(args: Args) -> int:
    try:
        from taskyard.ui.web import server
        from taskyard.ui.web.site import SiteOptions
    except ModuleNotFoundError as error:
        raise MissingExtra("The web page", "web", error.name or "") from error
    wish = server.WebServerOptions(
        args.port if args.port is not None else server.PORT,
        agent=args.by,
        list=args.list,
        tasks_dir=args.tasks_dir,
        hosts=tuple(args.hosts),
        new_token=args.new_token,
        options=SiteOptions(allow_actions=args.allow_actions, everywhere=args.everywhere),
    )
    try:
        server.serve(wish, lambda ready: _print_web_ready(args, ready))
    finally:
        if args.open:
            from taskyard import config
            from taskyard.ui.web import server

            server.remove_redirect_file(config.home())
    return 0


def _print_web_ready(args: Args, ready: WebServerInfo) -> None:
    """Print the address at once: the starting program waits for it."""
    from taskyard.cli.output import answer
    from taskyard.core.text import escape_control

    may = "Actions are allowed" if ready.allow_actions else "Read-only (--allow-actions allows actions)"
    answer(
        args,
        lambda: {
            "url": ready.url,
            "token_file": ready.token_file,
            "list": ready.list,
            "allow_actions": ready.allow_actions,
        },
        lambda: [ready.url, f"List {escape_control(ready.list)}. {may}. Ctrl+C stops it."],
        ids=[ready.url],
    )
    sys.stdout.flush()
    if args.open:
        import threading
        import webbrowser

        from taskyard import config
        from taskyard.ui.web.server import redirect_file

        address = redirect_file(config.home(), ready.url)  # not the url: other users can read a browser's arguments
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


WEB = Command(
    _run_web,
    _web_arguments,
    "Serve all lists and jobs of this user as a live web page: board, graph, background jobs with their "
    "output, timeline.\n"
    "Prints the address to open, which contains the required secret after the #. The page is only reachable "
    "from this\n"
    "machine and read-only unless --allow-actions is given.",
    examples=("taskyard web", "taskyard web --port 0 --allow-actions", "taskyard web --json | jq -r .data.url"),
)


#: Traces may be wanted if one of these is set.
_TRACE_VARIABLES = ("TASKYARD_OTEL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def _mcp_arguments(parser: Parser) -> None:
    parser.add("--agent", metavar="AGENT", help="Agent name of the client; default: the client's own name.")
    parser.add(
        "--http",
        metavar="ADDR",
        help="Serve several clients over HTTP: a port, 127.0.0.1:PORT or [::1]:PORT; port 0 picks a free one.",
    )
    parser.add(
        "--token-file",
        metavar="FILE",
        help="With --http: file with the token that clients must send; created if missing. Default: "
        "TASKYARD_MCP_TOKEN, else a file in TASKYARD_HOME.",
    )
    parser.add("--show-token", action="store_true", help="Print the token and exit.")
    parser.add(
        "--allow-remote",
        action="store_true",
        help="With --http: allow an address that other machines can reach. Any client with the token can run commands "
        "as you, and the connection is not encrypted.",
    )
    parser.add_words(
        "--allow-host",
        metavar="NAME",
        dest="hosts",
        default=[],
        help="With --http: host name or address that clients use, such as that of a proxy.",
    )


def _run_mcp(args: Args) -> int:
    if args.show_token:
        return _show_token(args)
    if args.http is None and (args.token_file or args.allow_remote or args.hosts):
        raise UsageError("--token-file, --allow-remote and --allow-host require --http.")
    return _serve_stdio(args) if args.http is None else _serve_http(args)


def _serve_stdio(args: Args) -> int:
    """Answer the handshake while the SDK loads: clients wait about a second for a server's tools."""
    from taskyard import config
    from taskyard.servers.mcp import front, manifest

    _check_installed()
    if is_terminal(sys.stdin) and not args.quiet:
        sys.stderr.write("MCP server on stdin and stdout, normally started by an MCP client. Ctrl+C stops it.\n")
    settings = config.load_settings()
    answers = front.HandshakeAnswers(
        manifest.load_manifest(manifest.load_offer(settings)), lambda: _resources(args, settings)
    )
    first = front.HandshakeServer(answers, _load_server)
    handover = first.run()
    if handover is None:
        if first.is_loading:
            os._exit(0)  # do not wait for the import to finish
        return 0
    from taskyard.servers.mcp import server

    server.serve_stdio(agent=args.agent or args.by, list=args.list, tasks_dir=args.tasks_dir, handover=handover)
    return 0


def _resources(args: Args, settings: Settings) -> list[dict[str, str]] | None:
    from taskyard.servers.mcp.resource_list import local_resources

    return local_resources(args.list, settings)


def _check_installed() -> None:
    """Refuse to start if a required library is missing, before anything is answered."""
    from importlib.util import find_spec

    for name in ("mcp", "mcp_types"):
        if find_spec(name) is None:
            raise MissingExtra("The MCP server", "mcp", name)
    if any(name in os.environ for name in _TRACE_VARIABLES):
        from taskyard.servers.mcp import telemetry

        telemetry.check_installed()


def _load_server() -> None:
    try:
        with GcPause():
            from importlib import import_module

            import_module("taskyard.servers.mcp.server")
    except ModuleNotFoundError as error:
        raise MissingExtra("The MCP server", "mcp", error.name or "") from error


def _serve_http(args: Args) -> int:
    try:
        with GcPause():
            from taskyard.servers.mcp import http
    except ModuleNotFoundError as error:
        raise MissingExtra("The MCP server", "mcp", error.name or "") from error
    wish = http.McpServerOptions(
        args.http,
        agent=args.agent or args.by,
        list=args.list,
        tasks_dir=args.tasks_dir,
        token_file=args.token_file,
        allow_remote=args.allow_remote,
        hosts=tuple(args.hosts),
    )
    http.serve(wish, lambda ready: _print_mcp_ready(args, ready))
    return 0


def _show_token(args: Args) -> int:
    from taskyard import config
    from taskyard.cli.output import answer
    from taskyard.servers.mcp import sdk_server as tokens

    found = tokens.find_token(config.home(), args.token_file)
    return answer(args, lambda: {"token": found.text, "token_file": found.file}, lambda: [found.text], ids=[found.text])


def _print_mcp_ready(args: Args, ready: HttpReady) -> None:
    """Print the address at once: the starting program waits for it."""
    from taskyard.cli.output import answer, warn
    from taskyard.core.text import escape_control

    token = f"in {ready.token_file}" if ready.token_file else "from TASKYARD_MCP_TOKEN"
    answer(
        args,
        lambda: {"url": ready.url, "token_file": ready.token_file, "list": ready.list},
        lambda: [
            f"Listening on {ready.url} (list {escape_control(ready.list)}). Its token is {escape_control(token)}."
        ],
        ids=[ready.url],
    )
    sys.stdout.flush()
    if not ready.address.is_local:
        warn(
            "Other machines can reach this server. Any client with the token can run commands as you, and the "
            "connection is not encrypted."
        )


MCP = Command(
    _run_mcp,
    _mcp_arguments,
    "Serve the list, background jobs and mail as MCP tools: on stdin and stdout to the client that started "
    "this command\n"
    "(`taskyard install` configures that), or with --http to several clients.",
    examples=(
        "taskyard mcp --agent ada",
        "claude mcp add taskyard -- taskyard mcp",
        "taskyard mcp --http 127.0.0.1:8765",
        "taskyard mcp --show-token",
    ),
)


#: Options that describe a skill; the names equal its fields.
_SKILL_OPTIONS = ("engine", "command", "model", "cwd", "description")


def _serve_arguments(parser: Parser) -> None:
    parser.add(
        "--port",
        metavar="P",
        help="Address to listen on: a port, 127.0.0.1:PORT or [::1]:PORT; port 0 picks a free one. Default: 8788.",
    )
    parser.add_words(
        "--skill", metavar="SKILL", dest="skills", default=[], help="Serve this skill of config.toml; default: all."
    )
    parser.add("--engine", metavar="ENGINE", help="Serve one skill, on this engine, instead of those in config.toml.")
    parser.add("--command", metavar="CMD", help="Program and arguments, for engines that run a program.")
    parser.add("--model", metavar="MODEL", help="Model, if the engine supports a choice.")
    parser.add("--cwd", metavar="DIR", help="Working directory; default: the current one.")
    parser.add("--description", metavar="TEXT", help="Description of the skill, shown to callers.")
    parser.add("--url", metavar="URL", help="Public URL in the agent card, if a proxy forwards requests.")
    parser.add_words(
        "--allow-host",
        metavar="HOST",
        dest="hosts",
        default=[],
        help="Further host name that callers use; with its port if it has one.",
    )
    parser.add(
        "--allow-remote",
        action="store_true",
        help="Allow an address that other machines can reach. The connection is not encrypted.",
    )


def _run_serve(args: Args) -> int:
    try:
        with GcPause():
            from taskyard.servers.a2a import server
    except ModuleNotFoundError as error:
        raise MissingExtra("The A2A server", "remote", error.name or "") from error
    wish = server.A2aServeOptions(
        args.port if args.port is not None else server.DEFAULT_PORT,
        own=_skill_from_options(args),
        skills=tuple(args.skills),
        url=args.url,
        hosts=tuple(args.hosts),
        allow_remote=args.allow_remote,
    )
    server.serve(wish, lambda ready: _print_a2a_ready(args, ready))
    return 0


def _skill_from_options(args: Args) -> Skill | None:
    """Return the skill described by the options, if any."""
    given = {name: value for name in _SKILL_OPTIONS if (value := getattr(args, name))}
    if not given:
        return None
    if args.skills:
        raise UsageError("--skill names a skill of config.toml: omit options that describe another, such as --engine.")
    from taskyard.agents.engines.provider import split_command
    from taskyard.servers.a2a.skills import DEFAULT_SKILL, Skill

    if "command" in given:
        given["command"] = split_command("--command", args.command)
    return Skill(DEFAULT_SKILL, **given)


def _print_a2a_ready(args: Args, ready: ServerReady) -> None:
    """Print the address at once: the starting program waits for it."""
    from taskyard.cli.output import answer, warn
    from taskyard.core.text import escape_control

    skills = ", ".join(ready.skills)
    answer(
        args,
        lambda: {
            "url": ready.url,
            "token_file": ready.token_file,
            "callers": ready.callers,
            "skills": ready.skills,
        },
        lambda: [
            f"Listening on {ready.url}. Skills: {escape_control(skills)}."
            f" Callers: {escape_control(', '.join(ready.callers))}.",
            f"The token of {escape_control(ready.callers[0])} is in {escape_control(ready.token_file)}. "
            "Ctrl+C stops the server; tasks continue.",
        ],
        ids=[ready.url],
    )
    sys.stdout.flush()
    if not ready.address.is_local:
        warn(
            "Other machines can reach this server. Any caller with a token can run agents as you, and the connection "
            "is not encrypted."
        )


SERVE = Command(
    _run_serve,
    _serve_arguments,
    "Serve agents of this machine over A2A. Each message starts a background job (`taskyard ps`), which "
    "continues if the\n"
    "server ends and is found again after a restart. Only configured skills can run: those in config.toml\n"
    "([a2a.skills.NAME]), or one given by options. The server is only reachable from this machine by default.",
    examples=(
        "taskyard a2a serve --command 'my-agent --json'",
        "taskyard a2a serve --skill review --skill summarise",
        "taskyard a2a serve --port 0 --engine claude --json",
        "taskyard a2a serve --url https://agents.example",
    ),
)


def _token_arguments(parser: Parser) -> None:
    parser.add("caller", nargs="?", metavar="CALLER", help="Caller name; default: `guest`.")
    parser.add("--new", action="store_true", help="Create a new token; the old one becomes invalid immediately.")
    parser.add("--remove", action="store_true", help="Revoke the token.")


def _token(args: Args) -> int:
    from taskyard import config
    from taskyard.cli.output import answer
    from taskyard.servers.a2a import skills as a2a_skills

    caller = args.caller or a2a_skills.DEFAULT_CALLER
    if args.remove:
        return _remove(args, caller)
    found = a2a_skills.caller_token(config.home(), caller, rotate=args.new)
    told = {"caller": caller, "token": found.text, "token_file": found.file}
    return answer(args, lambda: told, lambda: [found.text], ids=[found.text])


def _remove(args: Args, caller: str) -> int:
    from taskyard import config
    from taskyard.cli.output import answer
    from taskyard.core.text import escape_control
    from taskyard.servers.a2a import skills as a2a_skills

    if args.new:
        raise UsageError("Give either --new or --remove.")
    was_there = a2a_skills.remove_caller(config.home(), caller)
    said = (
        f"The token of {escape_control(caller)} is revoked." if was_there else f"{escape_control(caller)} has no token."
    )
    return answer(args, lambda: {"caller": caller, "removed": was_there}, lambda: [said], ids=[caller])


def _callers(args: Args) -> int:
    from taskyard import config
    from taskyard.cli.output import answer
    from taskyard.servers.a2a import skills as a2a_skills

    found = a2a_skills.list_callers(config.home())
    none = ["No callers yet. `taskyard a2a token NAME` creates a token for one."]
    return answer(args, lambda: [{"caller": name} for name in found], lambda: found or none, ids=found)


TOKEN = Command(
    _token,
    _token_arguments,
    "Print the token of a caller that may use agents of this machine; it is created if missing. Each caller "
    "sees only\n"
    "its own tasks, and can run a limited number at once (the setting a2a_tasks).",
    examples=("taskyard a2a token", "taskyard a2a token ada --new", "taskyard a2a token ada --remove"),
)

CALLERS = Command(
    _callers,
    None,
    "List the callers that may use agents of this machine.",
    examples=("taskyard a2a callers", "taskyard a2a callers --json"),
)


def _run_relay(args: Args) -> int:
    settings = config.load_settings()
    if not yard_module.is_replicated(settings):
        raise UsageError(
            "No database is configured, so there are no machines to relay to.",
            "Set TASKYARD_STORE=postgresql://user@host/database, or `store` in config.toml.",
        )
    from taskyard.postgres.relay.records import ensure_host
    from taskyard.postgres.relay.relay import run

    host = ensure_host(config.home(), settings)
    print_info(args, f"Relaying the jobs of {host.name}. Ctrl+C stops the relay; jobs keep running.")
    run(host, yard_module.open_database(settings), settings, stay=True)
    return answer(args, lambda: {"host": host.name, "id": host.id}, list)


RELAY = Command(
    _run_relay,
    None,
    "Relay events of this machine's jobs to other machines that share its database, and execute their "
    "requests, until\n"
    "interrupted. Running it manually is not required: any command that starts or reads jobs starts the "
    "relay, which\n"
    "stays while jobs run. As a service it also serves the output of ended jobs while no job runs.",
    examples=("taskyard relay", "systemd-run --user taskyard relay"),
)


def _run_tui(args: Args) -> int:
    if args.as_json:
        return _print_snapshot(args)
    try:
        from taskyard.ui.tui.app import run_tui
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("taskyard"):
            raise
        raise MissingExtra("The terminal view", "tui", error.name or "") from error
    is_able = os.environ.get("TERM") != "dumb"  # a dumb terminal cannot move its cursor
    if not (is_able and is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError(
            f"The terminal view needs a terminal{'' if is_able else ' that is not dumb (TERM)'}. "
            "`taskyard tui --json` prints what it would show, once; `taskyard task list` and `taskyard ps` print lines."
        )
    with open_yard(args) as yard:
        said, code = run_tui(yard, style(args), no_colour=args.no_color)
    if said:
        print_info(args, said)
    return code


def _print_snapshot(args: Args) -> int:
    """Print what it would show, as JSON."""
    from taskyard.ui.live import LiveFeed
    from taskyard.ui.snapshot import snapshot_json

    with open_yard(args) as yard, LiveFeed(yard) as live:
        snapshot = live.watch().snapshot
        return answer(args, lambda: snapshot_json(snapshot), list)


TUI = Command(
    _run_tui,
    None,
    "Open the terminal UI: the list, background jobs and details of one, live, with actions. ? shows the keys "
    "of the\n"
    "current view, Ctrl+P all commands. Leaving it stops no job. With --json, its content is printed once.",
    examples=("taskyard tui", "taskyard tui --list release --by ada", "taskyard tui --json | jq .data.headline"),
)
