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
        help="Where to listen: a port, 127.0.0.1:PORT or [::1]:PORT; 0 is any free one. 8787 if not given.",
    )
    parser.add("--allow-actions", action="store_true", help="Let the page claim, complete, stop and answer as well.")
    parser.add("--everywhere", action="store_true", help="Show jobs of every project, not only of this one.")
    parser.add(
        "--new-token", action="store_true", help="Make a new token: addresses that were printed before are void."
    )
    parser.add("--open", action="store_true", help="Open the page in a browser.")
    parser.add_words(
        "--allow-host",
        metavar="NAME",
        dest="hosts",
        default=[],
        help="A name under which it is asked for, such as that of a proxy; with its port where it has one.",
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

    may = "It may act" if ready.allow_actions else "It only shows (--allow-actions lets it act)"
    answer(
        args,
        lambda: {
            "url": ready.url,
            "token_file": ready.token_file,
            "list": ready.list,
            "allow_actions": ready.allow_actions,
        },
        lambda: [ready.url, f"List {escape_control(ready.list)}. {may}. Ctrl+C ends it."],
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
    "Show every list and job of this user in a browser, live: board, graph, background jobs with their output,\n"
    "timeline. Prints the address to open; the secret behind its # is needed to see anything. Only this machine can\n"
    "reach it, and nothing can be changed from it unless --allow-actions says so.",
    examples=("taskyard web", "taskyard web --port 0 --allow-actions", "taskyard web --json | jq -r .data.url"),
)


#: Traces may be wanted if one of these is set.
_TRACE_VARIABLES = ("TASKYARD_OTEL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def _mcp_arguments(parser: Parser) -> None:
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


def _run_mcp(args: Args) -> int:
    if args.show_token:
        return _show_token(args)
    if args.http is None and (args.token_file or args.allow_remote or args.hosts):
        raise UsageError("--token-file, --allow-remote and --allow-host are for a server with --http.")
    return _serve_stdio(args) if args.http is None else _serve_http(args)


def _serve_stdio(args: Args) -> int:
    """Answer the handshake while the SDK loads: clients wait about a second for a server's tools."""
    from taskyard import config
    from taskyard.servers.mcp import front, manifest

    _check_installed()
    if is_terminal(sys.stdin) and not args.quiet:
        sys.stderr.write("MCP is spoken here, on stdin and stdout: a client starts this by itself. Ctrl+C ends it.\n")
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
    from taskyard.servers.mcp.callers import local_resources

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
        warn("Other machines can reach it. Whoever has the token can run commands as you, and nothing is encrypted.")


MCP = Command(
    _run_mcp,
    _mcp_arguments,
    "Serve the list, background jobs and mail as tools over MCP: to the client at stdin and stdout, which starts it\n"
    "by itself (`taskyard install` sets that up), or with --http to any number of clients.",
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
        help="Where to listen: a port, 127.0.0.1:PORT or [::1]:PORT; 0 is any free one. 8788 if not given.",
    )
    parser.add_words(
        "--skill", metavar="SKILL", dest="skills", default=[], help="Offer this skill of config.toml; all if not given."
    )
    parser.add("--engine", metavar="ENGINE", help="Offer one skill, on this engine, instead of those in config.toml.")
    parser.add("--command", metavar="CMD", help="Its program, where the engine is one.")
    parser.add("--model", metavar="MODEL", help="Its model, where the engine lets one choose.")
    parser.add("--cwd", metavar="DIR", help="Where it works, if not here.")
    parser.add("--description", metavar="TEXT", help="What others are told of it.")
    parser.add("--url", metavar="URL", help="Where others reach it, if a proxy passes requests on: the card says so.")
    parser.add_words(
        "--allow-host",
        metavar="HOST",
        dest="hosts",
        default=[],
        help="A further name under which it is asked for; with its port where it has one.",
    )
    parser.add(
        "--allow-remote",
        action="store_true",
        help="Let it be an address that other machines can reach. Nothing is encrypted there.",
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
        raise UsageError("--skill names one of config.toml: leave out what describes another, such as --engine.")
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
            f"The token of {escape_control(ready.callers[0])} is in {escape_control(ready.token_file)}."
            " Ctrl+C ends it; tasks go on.",
        ],
        ids=[ready.url],
    )
    sys.stdout.flush()
    if not ready.address.is_local:
        warn("Other machines can reach it. Whoever has a token can have agents work as you, and nothing is encrypted.")


SERVE = Command(
    _run_serve,
    _serve_arguments,
    "Offer agents of this machine to others, over A2A. A message is a background job like any other (`taskyard ps`):\n"
    "it goes on when the server ends, and is found again when it is back. What may run is decided here: skills in\n"
    "config.toml ([a2a.skills.NAME]), or one by options. Only this machine can reach it unless told otherwise.",
    examples=(
        "taskyard a2a serve --command 'my-agent --json'",
        "taskyard a2a serve --skill review --skill summarise",
        "taskyard a2a serve --port 0 --engine claude --json",
        "taskyard a2a serve --url https://agents.example",
    ),
)


def _token_arguments(parser: Parser) -> None:
    parser.add("caller", nargs="?", metavar="CALLER", help="Whose; `guest` if not given.")
    parser.add("--new", action="store_true", help="Make a new one: the old one is void at once.")
    parser.add("--remove", action="store_true", help="Take it away: that caller may ask no more.")


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
        raise UsageError("--new and --remove at once make no sense.")
    was_there = a2a_skills.remove_caller(config.home(), caller)
    said = f"{escape_control(caller)} may ask no more." if was_there else f"{escape_control(caller)} has no token."
    return answer(args, lambda: {"caller": caller, "removed": was_there}, lambda: [said], ids=[caller])


def _callers(args: Args) -> int:
    from taskyard import config
    from taskyard.cli.output import answer
    from taskyard.servers.a2a import skills as a2a_skills

    found = a2a_skills.list_callers(config.home())
    none = ["Nobody may ask yet. `taskyard a2a token NAME` makes a token for somebody."]
    return answer(args, lambda: [{"caller": name} for name in found], lambda: found or none, ids=found)


TOKEN = Command(
    _token,
    _token_arguments,
    "Print the token of one who may ask for agents of this machine; it is made if there is none. Each caller sees\n"
    "its own tasks alone, and has a number of them at once (the setting a2a_tasks).",
    examples=("taskyard a2a token", "taskyard a2a token ada --new", "taskyard a2a token ada --remove"),
)

CALLERS = Command(
    _callers,
    None,
    "Everyone who may ask for agents of this machine, by name.",
    examples=("taskyard a2a callers", "taskyard a2a callers --json"),
)


def _run_relay(args: Args) -> int:
    settings = config.load_settings()
    if not yard_module.is_replicated(settings):
        raise UsageError(
            "No database is set up, so there is nobody to tell.",
            "Set TASKYARD_STORE=postgresql://user@host/database, or `store` in config.toml.",
        )
    from taskyard.postgres.relay.records import ensure_host
    from taskyard.postgres.relay.relay import run

    host = ensure_host(config.home(), settings)
    print_info(args, f"The jobs of {host.name} are within reach. Ctrl+C ends this; they go on.")
    run(host, yard_module.open_database(settings), settings, stay=True)
    return answer(args, lambda: {"host": host.name, "id": host.id}, list)


RELAY = Command(
    _run_relay,
    None,
    "Bring what happens to the jobs of this machine to others that share its database, and do to them what those ask,\n"
    "until interrupted. Nobody has to run it: whoever starts a job or looks at one starts it, and it stays while jobs\n"
    "run. As a service it keeps a machine in reach also when none does: for the output of jobs that are over.",
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
    "Show the list, the background jobs and one of them in detail, live, and act on them: ? shows the keys of where\n"
    "you are, Ctrl+P everything that can be done. Leaving it ends no job. With --json, what it shows is printed once.",
    examples=("taskyard tui", "taskyard tui --list release --by ada", "taskyard tui --json | jq .data.headline"),
)
