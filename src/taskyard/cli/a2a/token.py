"""`taskyard a2a token` and `callers`: who may ask for agents of this machine."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("caller", nargs="?", metavar="CALLER", help="Whose; `guest` if not given.")
    parser.add("--new", action="store_true", help="Make a new one: the old one is void at once.")
    parser.add("--remove", action="store_true", help="Take it away: that caller may ask no more.")


def _token(args: Args) -> int:
    from taskyard import paths
    from taskyard.a2a_server import tokens
    from taskyard.cli.output import answer

    caller = args.caller or tokens.USUAL
    if args.remove:
        return _remove(args, caller)
    found = tokens.token_of(paths.home(), caller, anew=args.new)
    told = {"caller": caller, "token": found.text, "token_file": found.file}
    return answer(args, lambda: told, lambda: [found.text], ids=[found.text])


def _remove(args: Args, caller: str) -> int:
    from taskyard import paths
    from taskyard.a2a_server import tokens
    from taskyard.cli.output import answer
    from taskyard.view.text import safe

    if args.new:
        raise UsageError("--new and --remove at once make no sense.")
    was_there = tokens.remove(paths.home(), caller)
    said = f"{safe(caller)} may ask no more." if was_there else f"{safe(caller)} has no token."
    return answer(args, lambda: {"caller": caller, "removed": was_there}, lambda: [said], ids=[caller])


def _callers(args: Args) -> int:
    from taskyard import paths
    from taskyard.a2a_server import tokens
    from taskyard.cli.output import answer

    found = tokens.callers(paths.home())
    none = ["Nobody may ask yet. `taskyard a2a token NAME` makes a token for somebody."]
    return answer(args, lambda: [{"caller": name} for name in found], lambda: found or none, ids=found)


TOKEN = Command(
    _token,
    _arguments,
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
