"""What there is to choose from: the help of `taskyard` and of its groups, and its version."""

from __future__ import annotations

from taskyard.cli.command import Row
from taskyard.cli.output import print_json, print_line
from taskyard.cli.parser import EXITS
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TITLE = "Taskyard: the task engine for teams of AI agents."
_EXAMPLES = (
    "taskyard task add 'Port the importer' --blocked-by 12",
    "taskyard task next --by ada --start",
    "taskyard task list --watch",
    "taskyard run -d -- npm test",
)
_COMMON = ("--list NAME", "--by AGENT", "--tasks-dir DIR", "--json", "-q", "-v", "--no-color")


def show(table: Mapping[str, Row], names: Sequence[str], options: Sequence[str]) -> int:
    """The overview of a table of commands, or the version.

    Raises:
        UsageError: a group was named without a verb.
    """
    if "--version" in options and not names:
        return _version("--json" in options)
    if names and not {"-h", "--help"}.intersection(options):
        prog = " ".join(("taskyard", *names))
        verbs = ", ".join(name for name, row in table.items() if not row.hidden)
        raise UsageError(f"{prog} needs a verb: {verbs}. See `{prog} -h`.")
    for line in _lines(table, names):
        print_line(line)
    return 0


def _lines(table: Mapping[str, Row], names: Sequence[str]) -> Iterator[str]:
    prog = " ".join(("taskyard", *names))
    yield f"usage: {prog} {'VERB' if names else 'COMMAND'} …"
    yield ""
    if not names:
        yield _TITLE
        yield ""
    yield "verbs:" if names else "commands:"
    shown = {name: row.help for name, row in table.items() if not row.hidden and name}
    width = max(map(len, shown))
    for name, text in shown.items():
        yield f"  {name:<{width}}  {text}"
    yield ""
    if not names:
        yield "examples:"
        yield from (f"  {example}" for example in _EXAMPLES)
        yield ""
    yield f"options of every command: {', '.join(_COMMON)}"
    yield "exit codes:"
    yield from (f"  {line}" for line in EXITS)
    yield ""
    yield f"`{prog} {'VERB' if names else 'COMMAND'} -h` tells more."


def _version(as_json: bool) -> int:
    from taskyard import __version__

    if as_json:
        print_json({"data": {"version": __version__}})
    else:
        print_line(f"taskyard {__version__}")
    return 0
