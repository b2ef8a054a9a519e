"""
`taskyard task events`: what happened on a list, one JSON object a line.

Every line has the same shape. Its `cursor` resumes right behind it: `--since CURSOR`. For one list
that is the id of the change; for all lists it holds a place in each, and a list that it does not
name is told from its beginning, so one that is made later is never missed.
"""

from __future__ import annotations

import sys

from taskyard.cli.command import Command
from taskyard.cli.output import SCHEMA_VERSION, open_yard, print_line
from taskyard.cli.steady import Steady
from taskyard.errors import BadValue, UsageError
from taskyard.names import folder_name
from taskyard.view.records import change_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Change


def _arguments(parser: Parser) -> None:
    parser.add("-f", "--follow", action="store_true", help="Stay, and tell what happens.")
    parser.add("--since", metavar="CURSOR", help="Only what came after: an id, or a line's cursor.")
    parser.add("--all", action="store_true", help="Of every list there is.")
    parser.add("--now", action="store_true", help="With --follow: only what happens from now on.")


def _run(args: Args) -> int:
    if args.all and args.list is not None:
        raise UsageError("Either --list NAME or --all.")
    if args.now and args.since is not None:
        raise UsageError("Either --since CURSOR or --now.")
    with open_yard(args) as yard:
        stream = AllLists(args, yard) if args.all else OneList(args, yard)
        try:
            stream.tell()
            steady = Steady(args, yard.lists)
            while args.follow:
                sys.stdout.flush()
                stream.wait()
                steady.look(stream.tell)
        finally:
            stream.close()
    return 0


class OneList:
    """The events of one list."""

    def __init__(self, args: Args, yard: Yard) -> None:
        self._yard = yard
        self._next = 0 if args.since is None else _after(args.since, self._yard.tasks.name)
        if args.now:
            self._yard.tasks.list()  # what others did before now is logged now
            self._next = self._yard.tasks.store.position()

    def tell(self) -> None:
        """Print what came since last told."""
        self._yard.tasks.list()  # takes in what other programs changed
        for change in self._yard.tasks.log(since=self._next):
            self._next = change.id + 1
            if not change.aborted:
                _print(self._yard.tasks.name, change, str(change.id))

    def wait(self) -> None:
        """Sleep until something may have happened."""
        self._yard.tasks.store.wait(self._yard.settings.poll_interval)

    def close(self) -> None:
        """Nothing is open that is its own."""


class AllLists:
    """The events of every list, also of those made later."""

    def __init__(self, args: Args, yard: Yard) -> None:
        self._own = yard
        self._seen = _places(args.since) if args.since is not None else {}
        self._yards: dict[str, Yard] = {}
        self._following = yard.lists.follow(debounce=yard.settings.debounce)
        if args.now:
            for name in yard.lists.names():
                tasks = self._yard(name).tasks
                tasks.list()
                self._seen[name] = tasks.store.position() - 1

    def tell(self) -> None:
        """Print what came since last told, list by list, oldest first."""
        news = [(change.at, name, change) for name in self._own.lists.names() for change in self._news(name)]
        for _, name, change in sorted(news, key=lambda item: item[0]):
            self._seen[name] = change.id
            if not change.aborted:
                _print(name, change, _cursor(self._seen))

    def _news(self, name: str) -> Iterator[Change]:
        tasks = self._yard(name).tasks
        tasks.list()
        yield from tasks.log(since=self._seen.get(name, -1) + 1)

    def _yard(self, name: str) -> Yard:
        if name not in self._yards:
            self._yards[name] = self._own.beside(name)
        return self._yards[name]

    def wait(self) -> None:
        """Sleep until something may have happened in any list, or a list is made."""
        self._following.wait(self._own.settings.poll_interval)

    def close(self) -> None:
        """Let go of every list."""
        for yard in self._yards.values():
            yard.close()
        self._following.close()


def _print(name: str, change: Change, cursor: str) -> None:
    import json

    body = {"schema_version": SCHEMA_VERSION, "cursor": cursor, "list": name, **change_json(change)}
    print_line(json.dumps(body))


def _after(cursor: str, name: str) -> int:
    """Where to go on in one list."""
    if cursor.isascii() and cursor.isdigit():
        return int(cursor) + 1
    return _places(cursor).get(name, -1) + 1


def _cursor(seen: dict[str, int]) -> str:
    return ",".join(f"{name}:{place}" for name, place in sorted(seen.items()))


def _places(cursor: str) -> dict[str, int]:
    places: dict[str, int] = {}
    for part in filter(None, cursor.split(",")):
        name, _, place = part.rpartition(":")
        if not name or folder_name("a list", name) != name or not place.removeprefix("-").isdecimal():
            raise BadValue("--since", cursor, "an id, or the cursor of a line printed before")
        places[name] = int(place)
    return places


EVENTS = Command(
    _run,
    _arguments,
    "Print what happened on a list, one JSON object a line, oldest first. Each line's `cursor` resumes\n"
    "right behind it.",
    examples=(
        "taskyard task events -f",
        'taskyard task events --all --since "$(cat cursor)"',
        "taskyard task events | jq -c '[.id, .by, .cause]'",
    ),
)
