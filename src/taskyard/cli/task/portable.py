"""`taskyard task import | export`."""

from __future__ import annotations

import os
import sys

from taskyard.cli.command import Command
from taskyard.cli.output import answer, open_yard, say
from taskyard.cli.task.shown import answer_tasks
from taskyard.errors import BadText, NotFound, StorageError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser

_ENDINGS = {".json": "json", ".md": "markdown", ".markdown": "markdown", ".csv": "csv"}
_READ = ("json", "markdown", "csv")
_NOTHING = "Nothing new: the file has no task that is not on the list already."
_WRITTEN = (*_READ, "dot", "mermaid")


def _import_arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="What to read; - is standard input.")
    parser.add("--format", choices=_READ, help="By the file's ending if not given; json from standard input.")
    parser.add(
        "--keep-ids", action="store_true", help="Into an empty list: each task as it was, with its id and its times."
    )


def _import(args: Args) -> int:
    text = _text(args.file)  # first: of a file that is not there nobody wants to hear about its ending
    format = args.format or _ENDINGS.get(os.path.splitext(args.file)[1].lower())
    if format is None:
        if args.file != "-":
            raise UsageError(f"What is in {args.file!r}? Its ending does not say: add --format {'|'.join(_READ)}.")
        format = "json"
    with open_yard(args) as yard:
        added = yard.tasks.import_(text, format, keep_ids=args.keep_ids)
        if args.keep_ids and added:
            count = "1 task" if len(added) == 1 else f"{len(added)} tasks"
            say(args, f"List {yard.tasks.name!r} has {count} now, each under its id, with its times and dependencies.")
        return answer_tasks(args, yard, added, nothing=_NOTHING)


def _text(path: str) -> str:
    from taskyard.tasklist.formats.imported import LARGEST_TEXT

    try:
        if path == "-":
            data = sys.stdin.buffer.read(LARGEST_TEXT + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(LARGEST_TEXT + 1)
    except FileNotFoundError:
        raise NotFound(f"No file {path!r}.") from None
    except OSError as error:
        raise StorageError(path, error.strerror or str(error)) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadText("file", "is no UTF-8") from None


def _export_arguments(parser: Parser) -> None:
    parser.add("--format", choices=_WRITTEN, default="json", help="json holds everything; the default.")


def _export(args: Args) -> int:
    with open_yard(args) as yard:
        text = yard.tasks.export(args.format)
    lines = [text.rstrip("\n")]
    return answer(args, lambda: {"format": args.format, "text": text}, lambda: lines, ids=lines)


IMPORT = Command(
    _import,
    _import_arguments,
    "Add the tasks of a file that are not on the list yet, dependencies included. Importing twice adds\n"
    "nothing. Hooks are asked about each, as when it is made by hand. --keep-ids moves a whole list, from one\n"
    "store to another: an empty list becomes the one that was exported, in one step.",
    examples=(
        "taskyard task import plan.md",
        "taskyard task export --list old | taskyard task import - --list new",
        "taskyard task export | TASKYARD_STORE=postgresql://db.example/yard taskyard task import - --keep-ids",
    ),
    exits=(
        "2  the file cannot be read as that; says where",
        "4  there is no such file",
        "5  its tasks wait for each other, a hook refused one, or the list is not empty (--keep-ids)",
    ),
)
EXPORT = Command(
    _export,
    _export_arguments,
    "Print the whole list: as JSON, a Markdown checklist, CSV, or as a graph in DOT or Mermaid.",
    examples=("taskyard task export --format markdown > plan.md", "taskyard task export --format dot | dot -Tsvg"),
)
