"""
What a command is: a row in a table that says where it lives, and the record that is there.

    COMMANDS = {"doctor": Row("taskyard.cli.doctor:DOCTOR", "Explain and repair what is wrong"),
                "team":   Row("taskyard.cli.team", "Teams of agents")}       a group

A row's target is `module:NAME` of a `Command`, or, for a group of verbs, the module whose `ROWS`
is a table like this one; a row under "" there is what the group does without a verb. Only what
is asked for is loaded: the help of a group costs one table. (Plain classes, since a named tuple
takes longer to define than most commands to run.)

    def _arguments(parser: Parser) -> None:
        parser.add("--fix", action="store_true", help="Repair what can be repaired.")

    def _run(args: Args) -> int:
        ...
        return 0

    DOCTOR = Command(_run, _arguments, "Look at a list's files …", examples=("taskyard doctor --fix",))
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace as Args
    from collections.abc import Callable, Mapping

    from taskyard.cli.parser import Parser

    __all__ = ["Args"]


class Row:
    """Where a command is, and what it is for, in one line."""

    __slots__ = ("help", "hidden", "target")

    def __init__(self, target: str, help: str, *, hidden: bool = False) -> None:
        """`hidden`: for programs, not for people; in no help and no completion."""
        self.target = target
        self.help = help
        self.hidden = hidden


class Command:
    """One thing a person can ask for."""

    __slots__ = ("about", "arguments", "examples", "exits", "run")

    def __init__(
        self,
        run: Callable[[Args], int],
        arguments: Callable[[Parser], None] | None = None,
        about: str = "",
        *,
        examples: tuple[str, ...] = (),
        exits: tuple[str, ...] = (),
    ) -> None:
        """Describe a command.

        Args:
            run: Does it, and answers the exit code; deliberate errors are raised.
            arguments: Adds what it takes beyond the options of every command.
            about: What it does, in a few sentences.
            examples: Command lines worth copying.
            exits: Exit codes with a meaning of their own here, such as "4  nothing is free".
        """
        self.run = run
        self.arguments = arguments
        self.about = about
        self.examples = examples
        self.exits = exits


class Found:
    """A command, and the words that led to it."""

    __slots__ = ("command", "help", "words")

    def __init__(self, words: tuple[str, ...], command: Command, help: str) -> None:
        self.words = words
        self.command = command
        self.help = help

    @property
    def prog(self) -> str:
        """As people type it."""
        return " ".join(("taskyard", *self.words))


def load(row: Row) -> Command | Mapping[str, Row]:
    """The command a row leads to, or the table of its verbs."""
    import importlib

    module, _, name = row.target.partition(":")
    found: Command | Mapping[str, Row] = getattr(importlib.import_module(module), name or "ROWS")
    return found
