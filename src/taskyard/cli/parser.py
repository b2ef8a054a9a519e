"""
From words to arguments: one parser, for the one command that was named.

Beyond argparse: the options of every command may stand before or after its name; lists of ids
and words may be given as `1 2`, `1,2` or by repeating the option, and never swallow a subject
behind them; errors are raised, not printed.
"""

from __future__ import annotations

import argparse
import os

from taskyard.cli.values import id_list, is_id_list, word_list
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from taskyard.cli.command import Found

#: What every command may end with.
EXITS = (
    "0  done",
    "1  failed",
    "2  the request is malformed",
    "4  not found",
    "5  conflict: claimed, blocked, busy, refused",
    "75  locked by somebody: try again",
    "130  interrupted",
)


class Parser(argparse.ArgumentParser):
    """The arguments of one command."""

    def __init__(self, found: Found) -> None:
        command = found.command
        super().__init__(
            prog=found.prog,
            description=command.about or found.help + ".",
            epilog=_epilog(command.examples, command.exits),
            formatter_class=_formatter,
            allow_abbrev=False,
        )
        self.known: list[argparse.Action] = []  #: its own arguments, in the order of its help
        self._id_options: set[str] = set()
        if command.arguments is not None:
            command.arguments(self)
        self._add_common()

    def add(self, *names: str, **how: object) -> argparse.Action:
        """Add an argument, as `add_argument` would."""
        action = self.add_argument(*names, **how)  # type: ignore[arg-type]  # passed on as given
        self.known.append(action)
        return action

    def add_ids(self, *names: str, help: str, dest: str | None = None) -> None:
        """Add an option for ids: `1 2`, `1,2`, or repeated."""
        how: dict[str, object] = {"dest": dest} if dest else {}
        self.add(*names, action="extend", type=id_list, metavar="ID", default=[], help=help, **how)
        self._id_options.update(names)

    def add_words(self, *names: str, metavar: str, help: str, dest: str, default: object = None) -> None:
        """Add an option for words: `a,b`, or repeated."""
        self.add(*names, action="extend", type=word_list, metavar=metavar, default=default, help=help, dest=dest)

    @property
    def options(self) -> dict[str, argparse.Action]:
        """Every option by each of its names, those of every command included."""
        return {name: action for action in (*self.known, *self.common) for name in action.option_strings}

    def takes_ids(self, action: argparse.Action) -> bool:
        """Whether several ids may follow an option."""
        return not self._id_options.isdisjoint(action.option_strings)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The arguments in `words`.

        Raises:
            UsageError: they make no sense.
        """
        return self.parse_args(self._options_first(self._joined(self._with_values(words))))

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing: the edge reports."""
        raise UsageError(f"{message[:1].upper()}{message[1:]}. See `{self.prog} -h`.")

    def _with_values(self, words: Sequence[str]) -> list[str]:
        """`--timeout -5s` as `--timeout=-5s`: a number is a value, and whoever reads it says what is wrong with it.

        A command within the command is left as it is.
        """
        joined: list[str] = []
        known, at = self.options, 0
        has_command = any(action.nargs == argparse.REMAINDER for action in self.known)
        while at < len(words):
            word = words[at]
            if word == "--" or (has_command and not word.startswith("-")):
                break
            at += 1
            joined.append(word)
            action = known.get(word)
            if action is not None and action.nargs is None and at < len(words):
                joined[-1:] = [f"{word}={words[at]}"] if _is_negative(words[at]) else [word, words[at]]
                at += 1
        return [*joined, *words[at:]]

    def _joined(self, words: Sequence[str]) -> list[str]:
        """`--blocked-by 1 2,3 Subject` as `--blocked-by=1,2,3 Subject`."""
        joined: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                return [*joined, *words[at - 1 :]]
            if word in self._id_options:
                first = at
                while at < len(words) and is_id_list(words[at]):
                    at += 1
                if at > first:
                    word = f"{word}={','.join(words[first:at])}"
            joined.append(word)
        return joined

    def _options_first(self, words: list[str]) -> list[str]:
        """`JOB --eof TEXT` as `--eof JOB TEXT`: argparse takes no positional that may be missing behind an option.

        Where that could change a meaning, words stay as they are: of a command within the command, and of options that
        are unknown or take as many words as there are.
        """
        if any(action.nargs == argparse.REMAINDER for action in self.known):
            return words
        options: list[str] = []
        others: list[str] = []
        known, at = self.options, 0
        while at < len(words) and words[at] != "--":
            word = words[at]
            action = known.get(word.partition("=")[0]) if word.startswith("-") and len(word) > 1 else None
            if action is None:
                if word.startswith("-") and len(word) > 1:
                    return words
                others.append(word)
            elif action.nargs in ("?", "*", "+"):
                return words
            else:
                takes = action.nargs is None and "=" not in word
                if takes and (at + 1 == len(words) or words[at + 1] in known or words[at + 1] == "--"):
                    return words  # its value is missing, and nothing else must become it
                options += words[at : at + 1 + takes]
                at += takes
            at += 1
        return [*options, *others, *words[at:]]

    def _add_common(self) -> None:
        add = self.add_argument_group("options of every command").add_argument
        self.common = (
            add("--list", metavar="LIST", help="The list, if not the project's own."),
            add("--by", metavar="AGENT", help="Who acts; TASKYARD_AGENT if not given."),
            add("--tasks-dir", metavar="DIR", help="The folder of lists; Claude Code's if not given."),
            add("--json", dest="as_json", action="store_true", help="Answer in JSON, errors too."),
            add("-q", "--quiet", action="store_true", help="Bare ids instead of sentences."),
            add("-v", "--verbose", action="store_true", help="Say which list is used, and why."),
            add("--no-color", action="store_true", help="Without colours, as NO_COLOR=1."),
        )


def _is_negative(word: str) -> bool:
    return word.startswith("-") and word[1:2].isdigit()


def _formatter(prog: str) -> argparse.HelpFormatter:
    # The width is given because argparse would import shutil to find it, at each argument.
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() else 100
    return argparse.RawDescriptionHelpFormatter(prog, width=max(40, min(width, 100)), max_help_position=28)


def _epilog(examples: Sequence[str], exits: Sequence[str]) -> str:
    own = {line.partition("  ")[0]: line for line in exits}
    codes = [own.pop(line.partition("  ")[0], line) for line in EXITS]
    lines = ["exit codes:", *(f"  {line}" for line in (*codes, *own.values()))]
    if examples:
        lines = ["examples:", *(f"  {example}" for example in examples), "", *lines]
    return "\n".join(lines)
