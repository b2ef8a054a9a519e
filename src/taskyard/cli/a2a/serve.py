"""`taskyard a2a serve`: agents of this machine for others."""

from __future__ import annotations

import sys

from taskyard.cli.command import Command
from taskyard.errors import MissingExtra, UsageError
from taskyard.loading import Loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.a2a_server.serving import Ready
    from taskyard.a2a_server.skills import Skill
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser

#: Options that describe a skill, and are its fields under the same names.
_OF_A_SKILL = ("engine", "command", "model", "cwd", "description")


def _arguments(parser: Parser) -> None:
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


def _run(args: Args) -> int:
    try:
        with Loading():
            from taskyard.a2a_server import serving
    except ModuleNotFoundError as error:
        raise MissingExtra("The A2A server", "remote", error.name or "") from error
    wish = serving.Wish(
        args.port if args.port is not None else serving.PORT,
        own=_own(args),
        skills=tuple(args.skills),
        url=args.url,
        hosts=tuple(args.hosts),
        allow_remote=args.allow_remote,
    )
    serving.serve(wish, lambda ready: _say(args, ready))
    return 0


def _own(args: Args) -> Skill | None:
    """The skill that the options describe, if they do."""
    given = {name: value for name in _OF_A_SKILL if (value := getattr(args, name))}
    if not given:
        return None
    if args.skills:
        raise UsageError("--skill names one of config.toml: leave out what describes another, such as --engine.")
    from taskyard.a2a_server.skills import USUAL, Skill
    from taskyard.engines.choice import words_of

    if "command" in given:
        given["command"] = words_of("--command", args.command)
    return Skill(USUAL, **given)


def _say(args: Args, ready: Ready) -> None:
    """Tell where it is, at once: whoever started it waits for that."""
    from taskyard.cli.output import answer, warn
    from taskyard.view.text import safe

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
            f"Listening on {ready.url}. Skills: {safe(skills)}. Callers: {safe(', '.join(ready.callers))}.",
            f"The token of {safe(ready.callers[0])} is in {safe(ready.token_file)}. Ctrl+C ends it; tasks go on.",
        ],
        ids=[ready.url],
    )
    sys.stdout.flush()
    if not ready.address.is_local:
        warn("Other machines can reach it. Whoever has a token can have agents work as you, and nothing is encrypted.")


SERVE = Command(
    _run,
    _arguments,
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
