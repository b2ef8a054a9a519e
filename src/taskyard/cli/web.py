"""`taskyard web`: lists, tasks and jobs in a browser, live."""

from __future__ import annotations

import sys

from taskyard.cli.command import Command
from taskyard.errors import MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.web.serving import Ready


def _arguments(parser: Parser) -> None:
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


def _run(args: Args) -> int:
    try:
        from taskyard.web import serving
        from taskyard.web.site import Options
    except ModuleNotFoundError as error:
        raise MissingExtra("The web page", "web", error.name or "") from error
    wish = serving.Wish(
        args.port if args.port is not None else serving.PORT,
        agent=args.by,
        list=args.list,
        tasks_dir=args.tasks_dir,
        hosts=tuple(args.hosts),
        new_token=args.new_token,
        options=Options(allow_actions=args.allow_actions, everywhere=args.everywhere),
    )
    try:
        serving.serve(wish, lambda ready: _say(args, ready))
    finally:
        if args.open:
            from taskyard import paths
            from taskyard.web import redirect

            redirect.remove(paths.home())
    return 0


def _say(args: Args, ready: Ready) -> None:
    """Tell where it is, at once: whoever started it waits for that."""
    from taskyard.cli.output import answer
    from taskyard.view.text import safe

    may = "It may act" if ready.allow_actions else "It only shows (--allow-actions lets it act)"
    answer(
        args,
        lambda: {
            "url": ready.url,
            "token_file": ready.token_file,
            "list": ready.list,
            "allow_actions": ready.allow_actions,
        },
        lambda: [ready.url, f"List {safe(ready.list)}. {may}. Ctrl+C ends it."],
        ids=[ready.url],
    )
    sys.stdout.flush()
    if args.open:
        import threading
        import webbrowser

        from taskyard import paths
        from taskyard.web.redirect import redirect_file

        address = redirect_file(paths.home(), ready.url)  # not the url: other users can read a browser's arguments
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


WEB = Command(
    _run,
    _arguments,
    "Show every list and job of this user in a browser, live: board, graph, background jobs with their output,\n"
    "timeline. Prints the address to open; the secret behind its # is needed to see anything. Only this machine can\n"
    "reach it, and nothing can be changed from it unless --allow-actions says so.",
    examples=("taskyard web", "taskyard web --port 0 --allow-actions", "taskyard web --json | jq -r .data.url"),
)
