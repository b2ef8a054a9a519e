"""The fields of a task as options: the same for `add` and `edit`."""

from __future__ import annotations

import os
import sys

from taskyard.cli.output import is_typed_by_person, warn
from taskyard.cli.values import external, pair, seconds, task_id, whole
from taskyard.errors import BadText, TaskyardError, UsageError
from taskyard.names import LONGEST_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.list_core import Extras


def add_fields(parser: Parser) -> None:
    """The options that `extras` and `metadata` read back."""
    parser.add("--description", metavar="TEXT", help="What is to be done; - reads standard input.")
    parser.add("--active-form", metavar="TEXT", help="What a spinner says meanwhile: 'Porting the importer'.")
    parser.add("--owner", metavar="AGENT", help="Whose it is; a new owner gets mail.")
    parser.add("--priority", type=whole, metavar="1-9", help="1 comes first; 5 where none is set.")
    parser.add_words("--label", metavar="WORD", dest="labels", help="Labels: a,b or repeated.")
    parser.add("--due", metavar="WHEN", help="A date or time in ISO 8601.")
    parser.add("--parent", type=task_id, metavar="ID", help="The task this one is a part of.")
    parser.add("--external", type=external, metavar="SYSTEM:ID[:URL]", help="The same task in another system.")
    parser.add_words("--require", metavar="CAP", dest="requires", help="What its worker must be able to do: a,b.")
    parser.add("--path", action="append", metavar="GLOB", dest="paths", help="What it works on; may be repeated.")
    parser.add("--accept", metavar="CMD", help="The command that must succeed before it counts as done.")
    parser.add("--accept-cwd", metavar="DIR", help="Where that command runs; else the project's folder.")
    parser.add("--accept-timeout", type=seconds, metavar="TIME", help="How long it may take, such as 90s or 10m.")
    parser.add(
        "--metadata",
        action="append",
        type=pair,
        default=[],
        metavar="KEY=JSON",
        help="Anything else; KEY=null takes a key away. May be repeated.",
    )


def extras(args: Args) -> Extras:
    """The optional fields that were given."""
    found: Extras = {}
    if args.priority is not None:
        found["priority"] = args.priority
    if args.labels is not None:
        found["labels"] = args.labels
    if args.due is not None:
        found["due"] = args.due
    if args.parent is not None:
        found["parent"] = args.parent
    if args.external is not None:
        found["external"] = args.external
    if args.requires is not None:
        found["requires"] = args.requires
    if args.paths is not None:
        found["paths"] = args.paths
    if (acceptance := _acceptance(args)) is not None:
        found["acceptance"] = acceptance
    return found


def metadata(args: Args) -> dict[str, object] | None:
    """The `--metadata` pairs; None if there are none."""
    return dict(args.metadata) or None


def text_of(value: str | None, field: str) -> str | None:
    """An argument, or standard input if it is `-`.

    Raises:
        BadText: what came in is too long, or no UTF-8.
    """
    if value != "-":
        return value
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  # None if it was closed
        raise UsageError(f"The {field} is to come from standard input, which is closed.")
    data = sys.stdin.buffer.read(4 * LONGEST_TEXT + 1)
    try:
        return data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadText(field, "on standard input is no UTF-8") from None


def trust_typed(args: Args) -> None:
    """Allow the acceptance command of these arguments to run if a person typed it: nobody need show it to them."""
    spec = _acceptance(args)
    if spec is None or not is_typed_by_person(args):
        return
    from taskyard import trust
    from taskyard.acceptance import check_acceptance

    try:
        found = check_acceptance(spec, folder=os.getcwd())
        trust.trust_command(found.command, found.trusted_at, how="typed")
    except (OSError, TaskyardError) as error:
        warn(f"The acceptance command is not trusted yet, run `taskyard trust`: {error}")


def _acceptance(args: Args) -> dict[str, object] | None:
    if args.accept is None:
        if args.accept_cwd is not None or args.accept_timeout is not None:
            raise UsageError("--accept-cwd and --accept-timeout go with --accept, the command itself.")
        return None
    given = {"command": args.accept, "cwd": args.accept_cwd, "timeout": args.accept_timeout}
    return {name: value for name, value in given.items() if value is not None}
