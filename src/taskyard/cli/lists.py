"""`taskyard lists`: every list there is, and how to make one current."""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.cli.command import Command, Row
from taskyard.cli.output import answer, say, wait_aloud
from taskyard.cli.which import why
from taskyard.errors import ListNotFound, UsageError
from taskyard.names import folder_name, nearest
from taskyard.view.text import duration, padded, safe, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.lists.protocol import Lists

    class ListFacts(TypedDict):
        """One list, as `--json` shows it."""

        name: str
        open: int
        done: int
        damaged: int
        changed_at: int | None
        current: bool
        why: str | None


ROWS = {
    "": Row("taskyard.cli.lists:LISTS", "All lists, and which one is current"),
    "use": Row("taskyard.cli.lists:USE", "Make a list the current one of this shell"),
}


def lists_of(args: Args) -> Lists:
    """The lists that are meant."""
    from taskyard.places import lists_here

    wait_aloud(args)
    return lists_here(args.tasks_dir)


def _run(args: Args) -> int:
    lists = lists_of(args)
    current = paths.list_name(args.list)
    found = [_facts(lists, name, current, args.list) for name in lists.names()]
    if not any(facts["current"] for facts in found):
        say(args, f"The current list is {current!r}, by {why(args.list)}. It has no tasks yet.")
    return answer(args, lambda: found, lambda: _lines(found), ids=(facts["name"] for facts in found))


def _facts(lists: Lists, name: str, current: str, chosen: str | None) -> ListFacts:
    found = lists.count(name)
    is_current = name == current
    return {
        "name": name,
        "open": found.open,
        "done": found.done,
        "damaged": found.damaged,
        "changed_at": found.changed_at,
        "current": is_current,
        "why": why(chosen) if is_current else None,
    }


def _lines(found: list[ListFacts]) -> Iterator[str]:
    from taskyard.clock import now_ms

    widest = max((width(facts["name"]) for facts in found), default=0)
    for facts in found:
        age = "" if facts["changed_at"] is None else f"{duration((now_ms() - facts['changed_at']) / 1000)} ago"
        damaged = f", {facts['damaged']} unreadable" if facts["damaged"] else ""
        counts = f"{facts['open']} open, {facts['done']} done{damaged}"
        reason = f"  current, by {facts['why']}" if facts["current"] else ""
        mark = "*" if facts["current"] else " "
        yield f"{mark} {padded(safe(facts['name']), widest)}  {padded(counts, 20)}  {age}{reason}".rstrip()


def _use_arguments(parser: Parser) -> None:
    parser.add("name", metavar="LIST", help="The list; need not exist yet.")
    parser.add("--shell", choices=("bash", "zsh", "fish"), default="bash", help="For which shell; bash if not given.")
    parser.add("--existing", action="store_true", help="Only a list that exists already.")


def _use(args: Args) -> int:
    if args.list is not None:
        raise UsageError("Name the list once: `taskyard lists use NAME`.")
    name = folder_name("a list", args.name)
    if args.existing and name not in (known := lists_of(args).names()):
        raise ListNotFound(name, nearest=nearest(name, known))
    # A folder name needs no quoting: letters, digits, _ and - alone.
    command = (
        f"set -gx CLAUDE_CODE_TASK_LIST_ID {name}"
        if args.shell == "fish"
        else f"export CLAUDE_CODE_TASK_LIST_ID={name}"
    )
    if os.environ.get("TASKYARD_LIST"):
        say(args, "TASKYARD_LIST is set and wins over it: unset that first.")
    return answer(args, lambda: {"list": name, "command": command}, lambda: [command], ids=[command])


LISTS = Command(
    _run,
    about="Show every list there is: what is open and done, when it last changed, which one is\n"
    "current, and why. `taskyard lists use NAME` makes one current.",
    examples=("taskyard lists", 'eval "$(taskyard lists use release)"'),
)
USE = Command(
    _use,
    _use_arguments,
    "Print the command that makes a list the current one of this shell, for Taskyard and Claude Code.",
    examples=('eval "$(taskyard lists use release)"', "taskyard lists use release --shell fish | source"),
)
